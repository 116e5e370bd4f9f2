"""What is foretold says that it is, divides only what can be divided, and warns where the clock was disturbed."""

import pytest
from bench.cost_model import ONCE, Costs
from bench.outlook import (
    CLOCK,
    LEFT,
    ONE_PROCESS,
    PEAK,
    PROCESSOR,
    SHUFFLED,
    STAGES,
    Merging,
    Target,
    outlook,
    seconds_on,
)

CLOCKED = Costs({ONCE: 10.0, "bytes": 1e-9, "keys": 1e-6, "segments": 0.001})
BUSY = Costs({ONCE: 15.0, "bytes": 1.5e-9, "keys": 1e-6, "segments": 0.002})
SIZES = {"bytes": 1e12, "keys": 1e6, "segments": 10_000}
MERGING = Merging(once_mib=200, mib_per_key=0.001, bytes_per_entry=100, seconds_per_entry=1e-6)
COSTS = {
    **{(stage, CLOCK): CLOCKED for stage in STAGES},
    **{(stage, PROCESSOR): BUSY for stage in STAGES},
    **{(stage, SHUFFLED): CLOCKED for stage in STAGES},
    **{(stage, LEFT): CLOCKED for stage in STAGES},
    (ONE_PROCESS, PEAK): CLOCKED,
}


def test_cores_share_bytes_and_keys_but_not_what_is_done_once_nor_segments() -> None:
    least, most = seconds_on(4, SIZES, CLOCKED, BUSY, 0.0)
    assert most == pytest.approx(10 + 10 + (1000 + 1) * 2 / 4)
    assert least == pytest.approx(10 + 10 + (1500 + 1 + 20) / 4)
    assert seconds_on(1 << 30, SIZES, CLOCKED, BUSY, 0.0)[0] == pytest.approx(20, rel=0.01)


def test_more_work_takes_longer_either_way() -> None:
    without, behind = (seconds_on(8, SIZES, CLOCKED, BUSY, extra) for extra in (0.0, 800.0))
    assert behind == pytest.approx([seconds + 100 for seconds in without])


def test_each_piece_of_a_partition_has_all_of_its_keys_at_worst() -> None:
    assert Target("small", 1e6, 50, 1000).entries == 1000
    assert Target("large", 50 * 100 * 2**29, 50, 1000).entries == 100_000


def test_every_forecast_is_marked_and_its_assumptions_stand_above_it() -> None:
    told = [row["what"] for row in outlook(COSTS, MERGING, others=0.0)]
    marks = [number for number, what in enumerate(told) if what.startswith("EXTRAPOLATED")]
    assert len(marks) == 2
    assert any(what.startswith("assumed") for what in told[: marks[0]])
    assert all(what.startswith("...") for number, what in enumerate(told) if number > marks[0] and number not in marks)


@pytest.mark.parametrize(("others", "warned"), [(0.1, False), (1.5, True)])
def test_a_machine_that_is_not_quiet_is_told_of(others: float, warned: bool) -> None:
    told = [row["what"] for row in outlook(COSTS, MERGING, others)]
    assert ("NOT A QUIET MACHINE" in told) is warned
