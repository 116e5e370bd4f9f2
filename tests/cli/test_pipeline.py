"""`kohort pipeline` and `kohort restore` as people type them: usage, refusals, and a run in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.golden_sets import ROOT
from tests.slow import slow

GOLDEN = ROOT / "compressed-gzip"
KOHORT = Path(sys.executable).parent / "kohort"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pipeline"], "Missing argument 'SOURCE'"),
        (["pipeline", "log"], "Missing option '--out'"),
        (["pipeline", "log", "--out", "x", "--rule", "newest"], "'newest' is not one of 'position', 'kafka-2.6'"),
        (["pipeline", "log", "--out", "x", "--as-of", "noon"], "'noon' is neither ISO 8601"),
        (["pipeline", "log", "--out", "x", "--retention-minutes", "0"], "0 is not in the range"),
        (["pipeline", "log", "--out", "x", "--conf", "memory=1g"], "'memory=1g' is no setting of Spark's"),
        (["restore", "tables"], "Missing option '--as-of'"),
        (["restore", "tables", "--as-of", "2026-11-16T03:12", "--apply"], "--apply needs --bootstrap"),
        (["restore", "tables", "--as-of", "2026-11-16T03:12", "--clamp"], "--clamp needs --bootstrap"),
        (["restore", "tables", "--as-of", "2026-11-16T03:12", "--yes"], "--yes goes with --apply"),
    ],
)
def test_wrong_usage_is_exit_code_2(kohort: Run, arguments: list[str], told: str) -> None:
    done = kohort(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_what_cannot_be_done_is_told_in_one_line_before_spark_starts(kohort: Run, tmp_path: Path) -> None:
    empty, run = tmp_path / "empty", tmp_path / "run"
    empty.mkdir()
    run.mkdir()
    (run / "kohort.json").write_text("{")
    for arguments, told in (
        (["pipeline", tmp_path / "nowhere", "--out", tmp_path / "out"], "No such file or directory"),
        (["pipeline", empty, "--out", tmp_path / "out"], "there is no log in it"),
        (["pipeline", GOLDEN / "README.md", "--out", tmp_path / "out"], "not a Kafka log"),
        (["pipeline", GOLDEN, "--out", tmp_path / "out", "--topic", "orders"], "no partition of orders"),
        (["pipeline", GOLDEN, "--out", GOLDEN / "README.md"], "is not a directory"),
        (["restore", empty, "--as-of", "2026-11-16T03:12"], "no finished run of `kohort pipeline` is there"),
        (["restore", run, "--as-of", "2026-11-16T03:12"], "kohort.json: cannot be read"),
    ):
        done = kohort(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
        assert done.stderr.startswith("kohort: ")
        assert told in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("nonsense", "Spark did not start: Master must either be yarn or start with spark, k8s, or local"),
        ("local[x]", "Spark failed: Could not parse Master URL: 'local[x]'"),
    ],
)
def test_a_master_that_is_none_is_told_in_one_line(kohort: Run, tmp_path: Path, master: str, told: str) -> None:
    done = kohort("pipeline", GOLDEN, "--out", tmp_path / "out", "--master", master)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"kohort: {told}\n")
    assert not (tmp_path / "out").exists()


@slow
@pytest.mark.xdist_group("spark")
def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [KOHORT, "pipeline", GOLDEN, "--out", out, "--master", "local[1]"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("kohort: records: "):
                assert (out / ".kohort/new/records").is_dir()
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody hears it
    assert process.returncode == 130, lines
    assert lines[0].startswith("kohort: replay: ")
    assert all(line.startswith("kohort: ") for line in lines), lines
    assert lines[-1] == "kohort: interrupted\n"
    assert not list(out.iterdir())
