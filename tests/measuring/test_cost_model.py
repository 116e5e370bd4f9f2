"""The model of costs finds what things cost where they do cost that, and is honest about the rest."""

import random

import pytest
from bench.cost_model import ONCE, CannotFit, Costs, Sizes, error_percent, fit

TRUE = Costs({ONCE: 5.0, "bytes": 3e-8, "keys": 2e-5, "segments": 0.004})
LOGS = [
    {"bytes": mebibytes * 2**20, "keys": keys, "segments": segments}
    for mebibytes, keys, segments in [
        (50, 16_000, 1),
        (200, 16_000, 2),
        (400, 140_000, 4),
        (200, 140_000, 200),
        (100, 4_000, 100),
        (300, 60_000, 3),
    ]
]
HUGE: Sizes = {"bytes": 1e12, "keys": 1e6, "segments": 10_000}


def test_costs_that_are_so_are_found_and_go_on_to_any_size() -> None:
    found = fit([(log, TRUE.of(log)) for log in LOGS])
    assert found.of(HUGE) == pytest.approx(TRUE.of(HUGE))
    assert found.parts(HUGE) == pytest.approx(TRUE.parts(HUGE))


def test_what_costs_nothing_gets_no_negative_cost_from_noise() -> None:
    rng = random.Random(3)
    free = Costs({ONCE: 5.0, "bytes": 3e-8, "keys": 0.0, "segments": 0.0})
    for _ in range(20):
        noisy = [(log, free.of(log) * rng.uniform(0.9, 1.1)) for log in LOGS]
        assert min(fit(noisy).each.values()) >= 0


def test_a_small_log_counts_as_much_as_a_large_one() -> None:
    """The largest is off by a second, which is little of it: the smallest is still told well."""
    smallest = min(LOGS, key=TRUE.of)
    largest = max(LOGS, key=TRUE.of)
    found = fit([(log, TRUE.of(log) + (log is largest)) for log in LOGS])
    assert abs(error_percent(found.of(smallest), TRUE.of(smallest))) < 2


def test_too_few_measurements_are_refused() -> None:
    with pytest.raises(CannotFit, match="4 measurements for 4 costs"):
        fit([(log, 1.0) for log in LOGS[:4]])


def test_an_error_says_in_which_direction() -> None:
    assert error_percent(12.0, 10.0) == pytest.approx(20)
    assert error_percent(9.0, 10.0) == pytest.approx(-10)
