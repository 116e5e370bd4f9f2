"""`python -m tests.simulation 17` runs a seed and tells what happened, `0-20000` runs many and tells which fail."""

import argparse
import logging
import sys
import time
from collections import Counter

from tests.simulation.bugs import BUGS
from tests.simulation.world import World


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", help="a seed, or the first and the one behind the last: 0-20000")
    parser.add_argument("--bug", choices=list(BUGS), help="with this bug put back")
    args = parser.parse_args()
    first, _, end = args.seeds.partition("-")
    seeds = range(int(first), int(end or int(first) + 1))
    if len(seeds) > 1:
        logging.disable(logging.CRITICAL)
    began, counts, failed = time.perf_counter(), Counter[str](), []
    for seed in seeds:
        world = World(seed)
        try:
            if args.bug:
                with BUGS[args.bug]():
                    world.run()
            else:
                world.run()
        except Exception as error:
            if len(seeds) == 1:
                raise
            failed.append(seed)
            _say(f"seed {seed}: {type(error).__name__}: {error}")
        counts.update(world.told())
    _say(f"{len(seeds)} seeds in {time.perf_counter() - began:.0f} s, {len(failed)} failed")
    _say(", ".join(f"{name} {count}" for name, count in counts.items()))
    sys.exit(bool(failed))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
