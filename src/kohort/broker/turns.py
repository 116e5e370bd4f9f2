"""Turns: no client keeps the event loop so busy that others miss their heartbeats.

All requests are served by one event loop, and some are much work: a batch that becomes a thousand times what it was, a
hundred thousand partitions. In one turn of the loop requests are begun until a time is over. Those that are left wait
for the next turn, and in between everything else happens that is due. Whoever was at work when a turn was over waits
behind those who were not, but one of each kind is served in every turn.

To know the time costs something, and it is known when a request is answered: so it is looked at then, and not before.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from time import perf_counter

A_TURN_S = 0.02

Serve = Callable[[], None]


class Turns:
    """Who is next."""

    __slots__ = ("_a_turn_s", "_heavy", "_is_running", "_is_scheduled", "_light", "_loop", "ends", "is_over")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._a_turn_s = A_TURN_S
        self.ends = 0.0
        """When this turn is over, or the last one was."""
        self.is_over = False
        """Nothing more is begun in this turn."""
        self._is_running = False
        self._is_scheduled = False
        self._light: deque[Serve] = deque()
        self._heavy: deque[Serve] = deque()

    def never_end(self) -> None:
        """The first turn is the last: what happens must not depend on how fast the machine is."""
        self._a_turn_s = self.ends = math.inf

    def end_of_one(self) -> float:
        """When a turn is over that begins now."""
        return perf_counter() + self._a_turn_s

    def mark(self, now: float) -> bool:
        """It is later than `ends`: a turn begins, or this one is over, which is what is told."""
        if not self._is_running:
            self._is_running = True
            self.ends = now + self._a_turn_s
            return False
        self._finish()
        return True

    def settle(self) -> None:
        """The loop has come around: whatever comes next is of another turn."""
        if not self.is_over:
            self._is_running = False

    def wait(self, serve: Serve, *, is_heavy: bool) -> None:
        """Call when it is his turn, which is over when `is_over` says so."""
        (self._heavy if is_heavy else self._light).append(serve)
        self._finish()

    def close(self) -> None:
        """Nobody has another turn."""
        self._light.clear()
        self._heavy.clear()

    def _finish(self) -> None:
        self.is_over = True
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        """One of each kind, then whoever there is time for, the light ones first."""
        self._is_scheduled, self._is_running = False, True
        for queue in (self._light, self._heavy):
            self.is_over, self.ends = False, self.end_of_one()
            if queue:
                queue.popleft()()
        while (waiting := self._light or self._heavy) and not self.is_over:
            waiting.popleft()()
        if waiting:
            self._finish()
        else:
            self.settle()
