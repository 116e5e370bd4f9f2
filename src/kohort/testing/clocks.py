"""The broker's clock in the hands of a test."""

from collections.abc import Callable

from kohort.clock import Clock, VirtualClock
from kohort.testing.refusals import NotPossible


class BrokerClock:
    """Tells the broker's time, and moves it if it is virtual."""

    def __init__(self, clock: Clock, move: Callable[[VirtualClock, int], None]) -> None:
        self._clock = clock
        self._move = move

    @property
    def is_virtual(self) -> bool:
        return isinstance(self._clock, VirtualClock)

    def now_ms(self) -> int:
        """The time of day, in milliseconds since 1970."""
        return self._clock.now_ms()

    def advance(self, ms: int) -> None:
        """Time passes, and everything happens that happens meanwhile: sessions run out, timers fire, offsets expire.

        When this returns it has happened, and what it has written is safe.
        """
        if ms < 0:
            raise ValueError(f"{ms} ms: time does not go back")
        self._move(self._virtual(), ms)

    def jump(self, ms: int) -> None:
        """Somebody sets the time of day, forward or back; no time passes."""
        self._virtual().jump(ms)

    def _virtual(self) -> VirtualClock:
        if not isinstance(self._clock, VirtualClock):
            raise NotPossible('the broker runs on the real clock: Broker(clock="virtual") has one that can be moved')
        return self._clock
