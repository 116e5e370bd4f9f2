"""Work that is too much for one turn is done bit by bit."""

import pytest

from kohort.clock import VirtualClock
from kohort.group.delayed import Timers, Turns


class Bench:
    """Bits of work that note their names; ten units of work make a turn."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.timers = Timers(self.clock)
        self.done: list[str] = []
        self.turns = Turns(self.clock, self.timers, work_a_turn=10)

    def soon(self, name: str, work: int) -> None:
        def bit() -> int:
            self.done.append(name)
            return work

        self.turns.soon(bit)

    def sleep(self, ms: int) -> list[str]:
        """What is done then."""
        self.clock.advance(ms)
        self.done.clear()
        self.timers.run_due()
        return list(self.done)


def test_a_bit_of_work_is_done_at_once() -> None:
    bench = Bench()
    bench.soon("it", 1)
    assert bench.done == ["it"]
    assert bench.timers.next_due_ms() is None


def test_what_is_too_much_for_a_turn_waits_until_the_clock_has_moved() -> None:
    bench = Bench()
    for number in range(7):
        bench.soon(f"bit {number}", 4)
    assert bench.done == ["bit 0", "bit 1", "bit 2"]
    assert bench.sleep(0) == []
    assert bench.sleep(1) == ["bit 3", "bit 4", "bit 5"]
    assert bench.sleep(1) == ["bit 6"]


def test_each_turn_does_something_however_large_the_bits_are() -> None:
    bench = Bench()
    for number in range(3):
        bench.soon(f"bit {number}", 1_000_000)
    assert bench.done == ["bit 0"]
    assert [bench.sleep(1) for _ in range(3)] == [["bit 1"], ["bit 2"], []]


def test_another_millisecond_is_another_turn() -> None:
    bench = Bench()
    bench.soon("first", 10)
    bench.clock.advance(1)
    bench.soon("second", 10)
    assert bench.done == ["first", "second"]


def test_a_bit_that_asks_for_more_is_continued_behind_those_that_wait() -> None:
    bench = Bench()

    def first() -> int:
        bench.done.append("first")
        bench.soon("second half of first", 1)
        return 5

    bench.turns.soon(lambda: 10)
    bench.turns.soon(first)
    bench.soon("second", 1)
    assert bench.done == []
    assert bench.sleep(1) == ["first", "second", "second half of first"]


def test_a_bit_that_fails_does_not_hold_up_the_others_for_good() -> None:
    bench = Bench()

    def fail() -> int:
        raise ValueError("on purpose")

    bench.turns.soon(lambda: 10)
    bench.turns.soon(fail)
    bench.soon("another", 1)
    with pytest.raises(ValueError, match="on purpose"):
        bench.sleep(1)
    assert bench.sleep(1) == ["another"]
