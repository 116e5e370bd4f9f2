"""`python -m tests.mutation --count 150 --seed 1` tries so many mutants, a third of them in each area, two at a time.

Those that no test noticed are shown as diffs, each with the command that tries it once more.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from tests.mutation.areas import AREAS, PACKAGE, area_of
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.trial import Outcome, Trials

Choice = tuple[str, Mutant]
"""A module and one of its mutants."""

_AT_A_TIME = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", help=f"of {', '.join(AREAS)}; all of them if none are named")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=int, help="after so long no other mutant is begun")
    parser.add_argument(
        "--repeat", metavar="MODULE:NUMBER", help="try one mutant, as log/retention.py:17, and no other"
    )
    args = parser.parse_args()
    if unknown := set(args.areas) - set(AREAS):
        parser.error(f"no such area: {', '.join(unknown)}")
    chosen = _one(args.repeat) if args.repeat else _sample(args.areas or list(AREAS), args.count, args.seed)
    if not args.repeat:
        named = "".join(f"{area} " for area in args.areas)
        _say(f"to repeat it: python -m tests.mutation {named}--count {args.count} --seed {args.seed}")
    began, counts = time.monotonic(), Counter[tuple[str, Outcome]]()
    with tempfile.TemporaryDirectory(prefix="kohort-mutation-") as place:
        trials = Trials(Path(place), _AT_A_TIME)
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            list(pool.map(trials.check, {area_of(module).modules[0] for module, _ in chosen}))
            tried = {pool.submit(trials.run, module, mutant.source): (module, mutant) for module, mutant in chosen}
            for done in _until(began + args.seconds if args.seconds else None, tried):
                (module, mutant), outcome = tried[done], done.result()
                counts[module.partition("/")[0], outcome] += 1
                if outcome is Outcome.SURVIVED or args.repeat:
                    _tell(module, mutant, outcome)
    _tell_score(counts, time.monotonic() - began)


def _until(end: float | None, tried: Iterable["Future[Outcome]"]) -> Iterator["Future[Outcome]"]:
    """Those that were tried, as they come; what has not begun when the time is over never does."""
    waiting = set(tried)
    while waiting:
        left = None if end is None else max(0.0, end - time.monotonic())
        done, waiting = wait(waiting, left, FIRST_COMPLETED)
        yield from done
        if not done:
            waiting = {one for one in waiting if not one.cancel()}
            end = None


def _one(named: str) -> list[Choice]:
    module, _, number = named.rpartition(":")
    return [(module, mutant) for mutant in mutants((PACKAGE / module).read_text()) if mutant.number == int(number)]


def _sample(areas: list[str], count: int, seed: int) -> list[Choice]:
    """The same for the same seed and the same source."""
    chance = random.Random(seed)
    chosen: list[Choice] = []
    for name in areas:
        all_of_them = [
            (module, one) for module in AREAS[name].modules for one in mutants((PACKAGE / module).read_text())
        ]
        chosen += chance.sample(all_of_them, min(count // len(areas), len(all_of_them)))
    chance.shuffle(chosen)
    return chosen


def _tell(module: str, mutant: Mutant, outcome: Outcome) -> None:
    _say(f"\n{outcome.value}: {module}, line {mutant.line}")
    _say(mutant.diff((PACKAGE / module).read_text()))
    _say(f"to repeat it: python -m tests.mutation --repeat {module}:{mutant.number}")


def _tell_score(counts: Counter[tuple[str, Outcome]], seconds: float) -> None:
    _say("")
    for package in sorted({package for package, _ in counts}):
        _say(f"{package}: {_score({outcome: counts[package, outcome] for outcome in Outcome})}")
    total = {outcome: sum(counts[key] for key in counts if key[1] is outcome) for outcome in Outcome}
    _say(f"all: {_score(total)}, in {seconds:.0f} s")


def _score(counts: dict[Outcome, int]) -> str:
    tried = sum(counts.values())
    killed = tried - counts[Outcome.SURVIVED]
    return (
        f"{killed} of {tried} mutants killed ({counts[Outcome.TOO_LONG]} by time), {100 * killed / max(tried, 1):.1f} %"
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
