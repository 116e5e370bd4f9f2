"""The judgement of a soak, on samples that are made up."""

import random

import pytest

from tests.soak.drift import ALLOWED, drifts, table

STEADY = 100.0


def run_with(name: str | None = None, growth: float = 0.0) -> list[dict[str, float]]:
    """Sixty samples that go up and down by a few per cent; one of them grows, by so much of itself over all."""
    chance = random.Random(1)
    samples = []
    for number in range(60):
        sample = {one: STEADY * chance.uniform(0.97, 1.03) for one in ALLOWED}
        sample |= {"threads": 8.0, "nothing p50, ms": 2.0, "nothing p99, ms": 20.0}
        if name is not None:
            sample[name] *= 1 + growth * number / 60
        samples.append(sample)
    return samples


def leaks(samples: list[dict[str, float]]) -> list[str]:
    return [one.name for one in drifts(samples) if one.is_leak]


def test_what_goes_up_and_down_is_no_leak() -> None:
    assert leaks(run_with()) == []


@pytest.mark.parametrize("name", ALLOWED)
def test_whatever_grows_without_end_is_found(name: str) -> None:
    assert leaks(run_with(name, growth=40.0)) == [name]


def test_a_leak_of_memory_that_would_double_it_in_a_while_is_found() -> None:
    assert leaks(run_with("memory, MiB", growth=0.5)) == ["memory, MiB"]


def test_what_fills_up_at_the_beginning_and_stays_is_no_leak() -> None:
    samples = run_with()
    for number, sample in enumerate(samples):
        sample["memory, MiB"] *= min(1.0, 0.2 + number / 15)
    assert leaks(samples) == []


def test_times_may_grow_with_those_of_a_request_for_nothing_but_not_beyond() -> None:
    samples = run_with("commit p50, ms", growth=40.0)
    for number, sample in enumerate(samples):
        sample["nothing p50, ms"] *= 1 + 40.0 * number / 60
    assert leaks(samples) == []
    for sample in samples[45:]:
        sample["commit p50, ms"] *= 2
    assert leaks(samples) == ["commit p50, ms"]


def test_the_table_names_what_grows() -> None:
    lines = table(drifts(run_with("groups", growth=40.0))).splitlines()
    assert [line for line in lines if line.endswith("GROWS")] == [line for line in lines if line.startswith("groups")]


def test_few_samples_tell_nothing() -> None:
    with pytest.raises(ValueError, match="too few"):
        drifts(run_with()[:7])
