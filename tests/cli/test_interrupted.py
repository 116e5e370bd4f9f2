"""Ctrl-C: one line, exit code 130, and nothing that is half written."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kohort.cli.whole_file import write_whole
from tests.cli.commands import ctrl_c_as_usual, interrupt_this_process, run_main, silent_broker
from tests.cli.test_progress import large_log

KOHORT = Path(sys.executable).parent / "kohort"
INTERRUPTED = (130, "kohort: interrupted\n")


def test_a_dump_ends_in_the_middle_of_its_lines(tmp_path: Path) -> None:
    command = [KOHORT, "dump", large_log(tmp_path / "00000000000000000000.log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("PART")  # and soon it waits for us to read on
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate()
    assert (process.returncode, told) == INTERRUPTED
    assert rest[-1:] in ("\n", "")


@pytest.mark.parametrize("command", ["dump", "state"])
def test_a_cluster_that_is_silent_need_not_be_waited_for(command: str) -> None:
    started: list[subprocess.Popen[str]] = []
    with silent_broker(lambda: started[0].send_signal(signal.SIGINT)) as address:
        arguments = [KOHORT, command, f"kafka://{address}"]
        started.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        shown, told = started[0].communicate()
    assert (started[0].returncode, told, shown) == (*INTERRUPTED, "")


@pytest.mark.parametrize("arguments", [("export", "--all-groups", "--out", "offsets.csv"), ("list",)])
def test_groups_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    with ctrl_c_as_usual(), silent_broker(interrupt_this_process) as address:
        done = run_main("groups", *arguments, "--bootstrap", address)
    assert (done.code, done.stderr, done.stdout) == (*INTERRUPTED, "")
    assert not list(tmp_path.iterdir())


@contextmanager
def interrupted_at(line: int) -> Iterator[list[int]]:
    """KeyboardInterrupt before the line-th line that is executed of the module; where it was comes out."""
    seen: list[int] = []

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename != write_whole.__code__.co_filename:
            return None
        if event == "line":
            seen.append(frame.f_lineno)
            if len(seen) == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)


# An interrupt between the opening of a file and its `with` leaves the closing to the garbage collector, which says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("there_before", [True, False])
def test_a_file_is_the_old_one_or_the_new_one_wherever_its_writing_is_interrupted(
    tmp_path: Path, there_before: bool
) -> None:
    ended = []
    for line in range(1, 100):
        path = tmp_path / f"{line}" / "plan.csv"
        path.parent.mkdir()
        if there_before:
            path.write_text("old")
        with interrupted_at(line) as seen, suppress(KeyboardInterrupt):
            write_whole(path, "new")
        left = {file.name: file.read_text() for file in path.parent.iterdir()}
        ended.append(left.get("plan.csv"))
        assert left in ({}, {"plan.csv": "new"}, {"plan.csv": "old"}), (seen, left)
        if len(seen) < line:
            break
    assert ended[0] == ("old" if there_before else None)
    assert ended[-1] == "new"
    assert len(ended) > 8
