"""Progress is shown to somebody who waits at a terminal, and to nobody else."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from kohort.records.batch import read_batches
from tests.cli.conftest import Run
from tests.golden_sets import ROOT

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
    terminal, line = pty.openpty()
    with subprocess.Popen([KOHORT, "state", log], stdout=subprocess.DEVNULL, stderr=line) as process:
        os.close(line)
        shown = b""
        while chunk := _read(terminal):
            shown += chunk
        assert process.wait() == 0
    os.close(terminal)
    assert b"replay" in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's way of saying that the other end of a terminal is closed
        return b""
