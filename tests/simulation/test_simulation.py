"""A broker that is crashed, cut off, moved and starved of disk, a thousand times over, breaks none of its promises.

A failure tells its seed; `python -m tests.simulation SEED` repeats it.
"""

from collections import Counter
from collections.abc import Callable

import pytest

from kohort.errors import KohortError
from tests.simulation.bugs import BUGS
from tests.simulation.ledger import Violation
from tests.simulation.world import World
from tests.slow import nightly

SEEDS = 1000
_AT_A_TIME = 20
_SEEDS_FOR_A_BUG = 600


@pytest.mark.parametrize("first", range(0, SEEDS, _AT_A_TIME))
def test_no_promise_is_broken(first: int, record_property: Callable[[str, object], None]) -> None:
    counts = Counter[str]()
    for seed in range(first, first + _AT_A_TIME):
        try:
            world = World(seed).run()
            counts.update(world.told())
            again = World(seed).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}; to repeat it: python -m tests.simulation {seed}") from error
        assert again.trace == world.trace, f"seed {seed} went another way the second time"
    for name, count in counts.items():
        record_property(name, count)


@nightly
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_that_is_put_back_is_found(bug: str) -> None:
    for seed in range(_SEEDS_FOR_A_BUG):
        with BUGS[bug]():
            try:
                World(seed).run()
            except (Violation, KohortError):
                return
    raise AssertionError(
        f"{bug}: not found in {_SEEDS_FOR_A_BUG} seeds; python -m tests.simulation --bug {bug!r} 0-2000"
    )
