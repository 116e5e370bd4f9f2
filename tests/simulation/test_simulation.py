"""A broker that is crashed, cut off, moved and starved of disk, hundreds of times over, breaks none of its promises.

A failure tells its seed; `python -m tests.simulation SEED` repeats it.
"""

import pytest

from kohort.errors import KohortError
from tests.simulation.bugs import BUGS
from tests.simulation.ledger import Violation
from tests.simulation.world import World

SEEDS = 400
_AT_A_TIME = 20
_TWICE = 10
"""Every so manieth seed is run twice."""
_SEEDS_FOR_A_BUG = 200


@pytest.mark.parametrize("first", range(0, SEEDS, _AT_A_TIME))
def test_no_promise_is_broken(first: int) -> None:
    for seed in range(first, first + _AT_A_TIME):
        try:
            world = World(seed).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}; to repeat it: python -m tests.simulation {seed}") from error
        if seed % _TWICE == 0:
            assert World(seed).run().trace == world.trace, f"seed {seed} went another way the second time"


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_that_is_put_back_is_found(bug: str) -> None:
    for seed in range(_SEEDS_FOR_A_BUG):
        with BUGS[bug]():
            try:
                World(seed).run()
            except (Violation, KohortError):
                return
    raise AssertionError(f"{bug}: not found in {_SEEDS_FOR_A_BUG} seeds")
