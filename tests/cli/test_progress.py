"""Progress is shown to somebody who waits at a terminal, and to nobody else."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from kohort.records.batch import read_batches
from tests.cli.conftest import Run
from tests.golden_sets import ROOT

COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-8][;m]")
KOHORT = Path(sys.executable).parent / "kohort"


def large_log(path: Path) -> Path:
    """The same commits again and again, well beyond what is read in a blink."""
    data = (ROOT / "fifty-partitions/__consumer_offsets-0/00000000000000000000.log").read_bytes()
    assert list(read_batches(data))
    path.write_bytes(data * (48 * 1024 * 1024 // len(data)))
    return path


def test_a_terminal_gets_a_bar_and_a_pipe_gets_nothing(kohort: Run, tmp_path: Path) -> None:
    log = large_log(tmp_path / "00000000000000000000.log")
    assert kohort("state", log).stderr == ""
    assert b"replay" in shown_on_a_terminal(log)


def test_no_color_is_respected(tmp_path: Path) -> None:
    log = large_log(tmp_path / "00000000000000000000.log")
    assert COLOUR.search(shown_on_a_terminal(log))
    assert not COLOUR.search(shown_on_a_terminal(log, NO_COLOR="1"))


def shown_on_a_terminal(log: Path, **variables: str) -> bytes:
    terminal, line = pty.openpty()
    environment = {"TERM": "xterm-256color", "PATH": os.environ["PATH"], **variables}
    command = [KOHORT, "state", log]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=line, env=environment) as process:
        os.close(line)
        shown = b""
        while chunk := _read(terminal):
            shown += chunk
        assert process.wait() == 0
    os.close(terminal)
    return shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's way of saying that the other end of a terminal is closed
        return b""
