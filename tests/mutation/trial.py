"""One mutant before the tests: a copy of the package with the mutant in it, and a process that runs the tests on it."""

import enum
import os
import queue
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.areas import PACKAGE, TOP, area_of

_CPU_S = 150
"""Of the processor: who is made to run without end is found out too."""
_PATIENCE_S = 300
"""Of the clock: for those who wait for what never comes."""
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=1")


class Outcome(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"
    TOO_LONG = "killed by time"
    SURVIVED = "survived"


class Trials:
    """Copies of the package, in each of which one module at a time is replaced."""

    def __init__(self, place: Path, copies: int) -> None:
        self._copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(copies):
            copy = place / str(number)
            shutil.copytree(PACKAGE, copy / "src" / "kohort")
            self._copies.put(copy)

    def run(self, module: str, source: str) -> Outcome:
        """Put a mutant into a copy that is free, run the tests up to the first that fails, and put the module back."""
        return self._run(module, source)[0]

    def check(self, module: str) -> None:
        """Tests that fail without any mutant would notice everything."""
        outcome, output = self._run(module, (PACKAGE / module).read_text())
        if outcome is not Outcome.SURVIVED:
            raise RuntimeError(f"{output}\nthe tests of {module} fail without any mutant")

    def _run(self, module: str, source: str) -> tuple[Outcome, str]:
        copy = self._copies.get()
        path, original = copy / "src" / "kohort" / module, copy / "original.py"
        shutil.copy2(path, original)
        path.write_text(source)
        try:
            return _outcome(copy, area_of(module).tests_of(module))
        finally:
            shutil.copy2(original, path)
            self._copies.put(copy)


def _outcome(copy: Path, tests: list[str]) -> tuple[Outcome, str]:
    """How the tests end on a copy, and what they say."""
    command = [sys.executable, "-m", "pytest", *_OPTIONS, f"--basetemp={copy / 'tmp'}", *tests]
    with subprocess.Popen(
        ["sh", "-c", f'ulimit -t {_CPU_S}; exec "$@"', "limited", *command],
        cwd=TOP,
        env=_environment(copy),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Outcome.TOO_LONG, process.communicate()[0]
    if process.returncode < 0:
        return Outcome.TOO_LONG, output
    if process.returncode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED) and "E  " not in output:
        raise RuntimeError(f"{output}\nno tests were run")
    return (Outcome.KILLED if process.returncode else Outcome.SURVIVED), output


def _environment(copy: Path) -> dict[str, str]:
    """The copy comes before the package that is installed, for the tests and for whatever they start."""
    return os.environ | {
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "hypothesis"),
    }
