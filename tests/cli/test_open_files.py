"""A broker takes as many open files as it may have."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="limits are read from /proc")

SERVE = [sys.executable, "-m", "kohort.cli.main", "serve", "--listen", "127.0.0.1:0", "--memory"]
LOW = 256


@contextmanager
def served(soft: int, hard: int) -> Iterator[int]:
    """`kohort serve` under a limit; gives its process id when it is ready."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    with subprocess.Popen(SERVE, stdout=subprocess.PIPE, text=True, preexec_fn=limit) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("kohort ready")
            yield process.pid
        finally:
            process.terminate()
    assert process.returncode == 0


def limits(pid: int) -> tuple[int, int]:
    (line,) = (one for one in Path(f"/proc/{pid}/limits").read_text().splitlines() if one.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    return int(soft), int(hard)


@pytest.mark.parametrize("hard", [LOW, 2_000])
def test_the_soft_limit_is_raised_to_the_hard_one(hard: int) -> None:
    with served(LOW, hard) as pid:
        assert limits(pid) == (hard, hard)


def test_a_limit_that_is_high_already_stays() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with served(hard, hard) as pid:
        assert limits(pid) == (hard, hard)
