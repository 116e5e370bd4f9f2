"""Timers: what happens when, in which order, and what it costs to put things off."""

from collections.abc import Callable

import pytest

from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.group.delayed import Timer, Timers
from tests.group.context import GROUP, INITIAL_DELAY, SESSION_TIMEOUT, Context

YEAR_MS = 365 * 86_400_000


class Bench:
    """Timers on a virtual clock that note who fired."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.timers = Timers(self.clock)
        self.fired: list[str] = []

    def timer(self, name: str) -> Timer:
        return Timer(self.note(name))

    def note(self, name: str) -> Callable[[], None]:
        return lambda: self.fired.append(name)

    def after(self, delay_ms: int, name: str) -> Timer:
        return self.timers.after(delay_ms, self.note(name))

    def sleep(self, ms: int) -> list[str]:
        """Whoever fires then."""
        self.clock.advance(ms)
        self.fired.clear()
        assert self.timers.run_due() == len(self.fired)
        return list(self.fired)

    @property
    def entries(self) -> int:
        return len(self.timers._heap)


def test_a_timer_fires_once_when_more_than_its_delay_has_passed() -> None:
    bench = Bench()
    timer = bench.after(100, "it")
    assert bench.sleep(99) == []
    assert bench.sleep(1) == []
    assert not timer.is_idle
    assert bench.sleep(1) == ["it"]
    assert timer.is_idle
    assert bench.sleep(1_000) == []


def test_a_delay_of_nothing_waits_until_the_clock_moves() -> None:
    bench = Bench()
    bench.after(0, "it")
    assert bench.sleep(0) == []
    assert bench.sleep(1) == ["it"]


def test_timers_fire_in_the_order_of_their_deadlines() -> None:
    bench = Bench()
    for delay in (300, 100, 200):
        bench.after(delay, f"at {delay}")
    assert bench.sleep(1_000) == ["at 100", "at 200", "at 300"]


def test_timers_of_one_deadline_fire_in_the_order_in_which_they_were_set() -> None:
    bench = Bench()
    for name in ("first", "second", "third"):
        bench.after(100, name)
    assert bench.sleep(101) == ["first", "second", "third"]


def test_whatever_is_due_later_waits() -> None:
    bench = Bench()
    bench.after(100, "early")
    bench.after(200, "late")
    assert bench.sleep(150) == ["early"]
    assert bench.sleep(51) == ["late"]


def test_a_timer_that_is_put_off_fires_at_its_last_deadline_only() -> None:
    bench = Bench()
    timer = bench.after(100, "it")
    for _ in range(5):
        assert bench.sleep(90) == []
        bench.timers.schedule(timer, 100)
    assert bench.sleep(100) == []
    assert bench.sleep(1) == ["it"]
    assert bench.sleep(1_000) == []


def test_a_timer_that_is_put_off_takes_its_new_place_among_the_others() -> None:
    bench = Bench()
    timer = bench.after(100, "put off")
    bench.after(200, "at 200")
    bench.timers.schedule(timer, 300)
    bench.after(400, "at 400")
    assert bench.sleep(1_000) == ["at 200", "put off", "at 400"]


def test_a_timer_that_is_brought_forward_fires_earlier_and_once() -> None:
    bench = Bench()
    timer = bench.after(1_000, "it")
    bench.timers.schedule(timer, 100)
    assert bench.sleep(101) == ["it"]
    assert bench.sleep(1_000) == []


def test_a_timer_that_is_brought_forward_and_put_off_again_fires_at_the_end() -> None:
    bench = Bench()
    timer = bench.after(1_000, "it")
    for delay in (100, 2_000, 50, 500):
        bench.timers.schedule(timer, delay)
    assert bench.sleep(500) == []
    assert bench.sleep(1) == ["it"]
    assert bench.sleep(2_000) == []


def test_a_timer_that_has_fired_can_be_set_to_the_moment_that_it_was_once_meant_for() -> None:
    bench = Bench()
    timer = bench.after(1_000, "it")
    bench.timers.schedule(timer, 100)
    assert bench.sleep(200) == ["it"]
    bench.timers.schedule(timer, 800)
    assert bench.sleep(800) == []
    assert bench.sleep(1) == ["it"]
    assert bench.sleep(1_000) == []


def test_a_cancelled_timer_does_not_fire() -> None:
    bench = Bench()
    timer = bench.after(100, "it")
    bench.after(100, "another")
    timer.cancel()
    assert timer.is_idle
    assert bench.sleep(101) == ["another"]


@pytest.mark.parametrize("delay", [50, 100, 150])
def test_a_cancelled_timer_can_be_set_again(delay: int) -> None:
    bench = Bench()
    timer = bench.after(100, "it")
    timer.cancel()
    bench.timers.schedule(timer, delay)
    assert bench.sleep(delay) == []
    assert bench.sleep(1) == ["it"]
    assert bench.sleep(1_000) == []


def test_a_timer_can_cancel_one_that_is_due_with_it() -> None:
    bench = Bench()
    bench.timers.after(100, lambda: victim.cancel())
    victim = bench.after(100, "victim")
    bench.clock.advance(101)
    assert bench.timers.run_due() == 1
    assert bench.fired == []


def test_what_a_firing_timer_sets_waits_for_the_next_call() -> None:
    bench = Bench()

    def parent() -> None:
        bench.fired.append("parent")
        bench.after(0, "child")

    bench.timers.after(100, parent)
    assert bench.sleep(10_000) == ["parent"]
    assert bench.sleep(0) == []
    assert bench.sleep(1) == ["child"]


def test_a_timer_that_sets_itself_again_fires_once_in_each_call() -> None:
    bench = Bench()

    def tick() -> None:
        bench.fired.append("tick")
        bench.timers.schedule(timer, 10)

    timer = bench.timers.after(10, tick)
    assert [bench.sleep(ms) for ms in (11, 11, 1_000, 10, 1)] == [["tick"], ["tick"], ["tick"], [], ["tick"]]


def test_a_timer_that_sets_itself_into_the_past_fires_once_in_each_call() -> None:
    bench = Bench()

    def tick() -> None:
        bench.fired.append("tick")
        assert len(bench.fired) < 10, "it goes on and on"
        bench.timers.schedule(timer, -10)

    timer = bench.timers.after(10, tick)
    assert bench.sleep(11) == ["tick"]
    assert bench.sleep(0) == []
    assert bench.sleep(1) == ["tick"]


def test_a_timer_that_fails_does_not_hold_up_the_others_for_good() -> None:
    bench = Bench()

    def fail() -> None:
        raise ValueError("on purpose")

    bench.timers.after(100, fail)
    bench.after(200, "another")
    bench.clock.advance(1_000)
    with pytest.raises(ValueError, match="on purpose"):
        bench.timers.run_due()
    assert bench.sleep(0) == ["another"]


def test_nothing_is_due_before_the_next_deadline_has_passed() -> None:
    bench = Bench()
    assert bench.timers.next_due_ms() is None
    bench.after(200, "late")
    timer = bench.after(100, "early")
    assert bench.timers.next_due_ms() == 101
    bench.timers.schedule(timer, 300)
    assert bench.timers.next_due_ms() <= 201
    bench.timers.schedule(timer, 50)
    assert bench.timers.next_due_ms() == 51
    bench.sleep(201)
    assert bench.timers.next_due_ms() is None


@pytest.mark.parametrize("years", [10, -10])
def test_setting_the_time_of_day_moves_no_deadline(years: int) -> None:
    bench = Bench()
    bench.after(100, "it")
    bench.clock.jump(years * YEAR_MS)
    assert bench.sleep(100) == []
    bench.clock.jump(years * YEAR_MS)
    assert bench.sleep(1) == ["it"]


@pytest.mark.parametrize("years", [10, -10])
def test_setting_the_time_of_day_ends_no_session_and_prolongs_none(years: int) -> None:
    c = Context()
    member = c.stable_group()
    c.sleep(SESSION_TIMEOUT)
    c.clock.jump(years * YEAR_MS)
    c.sleep(0)
    assert c.heartbeat(GROUP, member.member_id, 1) is ErrorCode.NONE
    c.clock.jump(years * YEAR_MS)
    c.sleep(SESSION_TIMEOUT)
    assert c.state() == "Stable"
    c.sleep(1)
    assert c.state() == "Empty"
    assert c.heartbeat(GROUP, member.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("years", [10, -10])
def test_setting_the_time_of_day_does_not_disturb_a_rebalance(years: int) -> None:
    c = Context()
    joining = c.join()
    c.clock.jump(years * YEAR_MS)
    c.sleep(INITIAL_DELAY)
    assert not joining.is_done
    c.sleep(1)
    assert joining.result.error is ErrorCode.NONE


def test_a_million_heartbeats_keep_one_entry() -> None:
    bench = Bench()
    timer = bench.after(500, "it")
    schedule, advance, run_due = bench.timers.schedule, bench.clock.advance, bench.timers.run_due
    for number in range(1_000_000):
        schedule(timer, 500)
        if number % 1_000 == 0:
            advance(400)
            run_due()
    assert bench.fired == []
    assert bench.entries == 1
    assert bench.sleep(501) == ["it"]
    assert bench.entries == 0


def test_timers_that_are_set_and_cancelled_leave_little_behind() -> None:
    bench = Bench()
    kept = [bench.timer(f"kept {number}") for number in range(100)]
    for timer in kept:
        bench.timers.schedule(timer, 10_000)
    for _ in range(100_000):
        bench.after(5_000, "cancelled").cancel()
    assert bench.entries < 2_000
    assert bench.sleep(20_000) == [f"kept {number}" for number in range(100)]
    assert bench.entries == 0


def test_a_timer_that_is_brought_forward_again_and_again_leaves_little_behind() -> None:
    bench = Bench()
    timer = bench.timer("it")
    for delay in range(100_000, 0, -1):
        bench.timers.schedule(timer, delay)
    assert bench.entries < 2_000
    assert bench.sleep(1) == []
    assert bench.sleep(1) == ["it"]
    assert bench.sleep(100_000) == []
    assert bench.entries == 0


def test_what_a_timer_leaves_behind_when_it_is_brought_forward_is_gone_when_its_time_has_come() -> None:
    bench = Bench()
    timer = bench.timer("it")
    for _ in range(1_000):
        for delay in (100, 5, 100):
            bench.timers.schedule(timer, delay)
        assert bench.sleep(10) == []
    assert bench.entries < 30
    assert bench.sleep(90) == []
    assert bench.sleep(1) == ["it"]
    assert bench.entries == 0


def test_a_timer_whose_entry_was_swept_away_can_be_set_again() -> None:
    bench = Bench()
    timer = bench.after(5_000, "it")
    timer.cancel()
    for _ in range(10_000):
        bench.after(5_000, "cancelled").cancel()
    bench.timers.schedule(timer, 6_000)
    assert bench.sleep(6_000) == []
    assert bench.sleep(1) == ["it"]
