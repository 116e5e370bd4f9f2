"""One run of `kohort demo`, as people type it, for all tests that look at what it left."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

KOHORT = Path(sys.executable).parent / "kohort"


@dataclass(frozen=True)
class Played:
    out: Path
    stdout: str
    stderr: str
    left: list[str]


def processes_of(session: int) -> list[str]:
    """The command lines of what is still running of a session of processes."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return found


@contextlib.contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A command with all that it starts, which ends with the block at the latest."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    out = tmp_path_factory.mktemp("demo") / "shop"
    with running(KOHORT, "demo", "--out", out) as process:
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    return Played(out, stdout, stderr, processes_of(process.pid))
