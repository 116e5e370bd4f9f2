"""Rates are measured as Kafka measures what it limits: over the last windows, which cover no less than all but one."""

import pytest

from kohort.broker.rates import Rate


def test_what_comes_at_once_is_spread_over_all_windows_but_one() -> None:
    rate = Rate(11, 1000)
    rate.record(500, 0)
    assert rate.per_second(0) == 50
    assert rate.per_second(999) == pytest.approx(500 / 10.999)


def test_what_is_older_than_all_windows_does_not_count() -> None:
    rate = Rate(11, 1000)
    rate.record(500, 0)
    rate.record(100, 5_000)
    assert rate.per_second(10_999) == pytest.approx(600 / 10.999)
    assert rate.per_second(11_000) == pytest.approx(100 / 10)
    assert not rate.is_over(15_999)
    assert rate.is_over(16_000)


def test_a_steady_rate_is_what_it_is() -> None:
    rate = Rate(11, 1000)
    for second in range(100):
        rate.record(70, second * 1000)
    assert 70 <= rate.per_second(99_999) <= 77


def test_the_delay_brings_the_rate_down_to_what_is_allowed() -> None:
    rate = Rate(11, 1000)
    rate.record(2_000, 0)
    assert rate.delay_ms(100, 0) == 10_000  # 2,000 in 20 s are 100 a second
    assert rate.delay_ms(200, 0) == 0
    assert rate.delay_ms(201, 0) == 0
