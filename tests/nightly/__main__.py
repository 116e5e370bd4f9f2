"""`python -m tests.nightly` tries all night what `make test` tries for minutes, a few things at a time.

What each of them prints is told when it has ended, and at the end how all of it went. What fails has printed the seed
or the input that it failed with, and the command that repeats it.
"""

import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from tests.fuzzing.targets import TARGETS

_SEEDS, _SEEDS_TOGETHER = 20_000, 5_000
_KILLS = 200
_FUZZING_S = 300
_AT_A_TIME = 4
"""Two more than there are cores as a rule: some of them wait for disks and clients, and fuzzing takes the rest."""


class Job(NamedTuple):
    name: str
    arguments: tuple[str, ...]


class Done(NamedTuple):
    job: Job
    is_well: bool
    seconds: float
    printed: str


def _jobs() -> list[Job]:
    """The longest first, so that none of them is left over at the end."""
    return [
        Job("kills", ("tests.killing", str(_KILLS))),
        *(
            Job(f"seeds from {first}", ("tests.simulation", f"{first}-{first + _SEEDS_TOGETHER}", "--processes", "1"))
            for first in range(0, _SEEDS, _SEEDS_TOGETHER)
        ),
        *(_pytest(name, path) for name, path in _TESTS.items()),
        *(Job(f"fuzzing {name}", ("tests.fuzzing", name, "--seconds", str(_FUZZING_S))) for name in TARGETS),
    ]


_TESTS = {
    "bugs put back": "tests/simulation",
    "power cuts while starting, every byte of real logs cut": "tests/log",
    "every byte of real logs cut, for readers": "tests/records",
    "the replay on Spark": "tests/spark/test_second_opinion.py",
}


def _pytest(name: str, path: str) -> Job:
    return Job(name, ("pytest", "-n", "0", "-m", "nightly", path))


def _run(job: Job) -> Done:
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", *job.arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Done(job, ended.returncode == 0, time.monotonic() - began, ended.stdout)


def main() -> None:
    began, failed = time.monotonic(), []
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        for done in as_completed(pool.submit(_run, job) for job in _jobs()):
            job, is_well, seconds, printed = done.result()
            _say(f"== {job.name}: {'well' if is_well else 'FAILED'}, {seconds:.0f} s\n{printed.rstrip()}\n")
            if not is_well:
                failed.append(job.name)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    _say(
        f"{len(_jobs())} parts in {(time.monotonic() - began) / 60:.0f} min, "
        f"{(used.ru_utime + used.ru_stime) / 60:.0f} min of the processor; failed: {', '.join(failed) or 'none'}"
    )
    sys.exit(bool(failed))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
