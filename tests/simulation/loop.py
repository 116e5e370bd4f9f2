"""An event loop whose time passes only when there is nothing to do, and whose threads are none.

Whatever would be done in a thread (syncs, cleaning, making topics) is done by the loop itself, in one piece, after a
delay that the seed decides, and whoever waits hears of it after another. So everything happens in one order, which the
seed alone tells.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

_SLOW = 0.05
"""So much of the work in threads takes long."""


class _NoSelector:
    """Nothing ever comes from outside: to wait is to let time pass."""

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing will ever happen")
        self._loop.pass_time(timeout)
        return []

    def close(self) -> None:
        pass


class SimulatedLoop(asyncio.BaseEventLoop):
    """A loop for one run of one seed."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._now = 0.0
        self._clock_resolution = 1e-9
        self._selector = _NoSelector(self)
        self.before_waiting: list[Callable[[], None]] = []
        """Called at every turn: may find something to do."""

    def time(self) -> float:
        return self._now

    def pass_time(self, seconds: float) -> None:
        for look in self.before_waiting:
            look()
        if seconds > 0 and not self._ready:
            self._now += seconds

    def be_held_up(self) -> None:
        """Something that was to be done at once takes its time, and everybody waits."""
        self._now += self._random.uniform(0.0, 0.3)

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        told: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if executor is not None and executor._shutdown:
                told.cancel()
                return
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - whoever waits hears of it, whatever it is
                self.call_later(self.some_time(), _give, told.set_exception, told, error)
            else:
                self.call_later(self.some_time(), _give, told.set_result, told, result)

        self.call_later(self.some_time(), work)
        return told

    def some_time(self) -> float:
        """What something takes that is done elsewhere, in seconds."""
        if self._random.random() < _SLOW:
            return self._random.uniform(0.1, 3.0)
        return self._random.uniform(0.0001, 0.01)


def _give(give: Callable[[Any], None], told: "asyncio.Future[Any]", value: Any) -> None:
    if not told.done():
        give(value)
