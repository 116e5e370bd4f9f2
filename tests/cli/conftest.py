"""The command as people run it: arguments in, output and exit code out."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def kohort() -> Run:
    """Run the installed command in a process of its own."""

    def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
        command = Path(sys.executable).parent / "kohort"
        return subprocess.run([command, *args], capture_output=True, text=True, encoding="utf-8", check=False)

    return run
