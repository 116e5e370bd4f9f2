"""`python -m tests.simulation 17` runs a seed and tells what happened, `0-20000` runs many and tells which fail."""

import argparse
import contextlib
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from functools import partial

from tests.simulation.bugs import BUGS
from tests.simulation.world import World

_AT_A_TIME = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="a seed, or the first and the one behind the last: 0-20000")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many seeds run side by side")
    parser.add_argument("--bug", choices=list(BUGS), help="with this bug put back")
    args = parser.parse_args()
    first, _, end = args.seeds.partition("-")
    if not end:
        _say(_counts(_lived(args.bug, int(first)).told()))
        return
    seeds = range(int(first), int(end))
    began, counts, failed = time.perf_counter(), Counter[str](), 0
    with multiprocessing.Pool(args.processes, logging.disable, (logging.CRITICAL,)) as pool:
        for told, failure in pool.imap_unordered(partial(_tried, args.bug), seeds, _AT_A_TIME):
            counts.update(told)
            if failure:
                failed += 1
                _say(failure)
    _say(f"{len(seeds)} seeds in {time.perf_counter() - began:.0f} s, {failed} failed")
    _say(_counts(counts))
    sys.exit(bool(failed))


def _lived(bug: str | None, seed: int) -> World:
    with BUGS[bug]() if bug else contextlib.nullcontext():
        return World(seed).run()


def _tried(bug: str | None, seed: int) -> tuple[Counter[str], str | None]:
    """What happened with a seed, and how it failed if it did."""
    try:
        return Counter(_lived(bug, seed).told()), None
    except Exception as error:  # noqa: BLE001  # whatever a seed dies of is told with the seed
        return Counter(), f"seed {seed}: {type(error).__name__}: {error}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
