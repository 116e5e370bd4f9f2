"""Things that will happen unless something else happens first.

`Timers` is Kafka's purgatory without threads: whoever drives the coordinator asks for `next_due_ms` and calls
`run_due` then. Most timers never fire, they are put off again and again (every heartbeat does that), so putting off
only notes the new deadline; the entry in the heap moves when its old one is reached.

`Turns` is for work that is too long to be done at once: it is done bit by bit, so that nobody else has to wait long.
"""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count

from kohort.clock import Clock
from kohort.group.answers import Answers

_SPARE_ENTRIES = 1024


class Timer:
    """An action at a deadline; idle when it has none."""

    __slots__ = ("_action", "_arguments", "_entry_ms", "deadline_ms")

    def __init__(self, action: Callable[..., None], *arguments: object) -> None:
        self._action = action
        self._arguments = arguments
        self.deadline_ms: int | None = None
        self._entry_ms: int | None = None

    @property
    def is_idle(self) -> bool:
        return self.deadline_ms is None

    def fire(self) -> None:
        self.deadline_ms = None
        self._action(*self._arguments)

    def cancel(self) -> None:
        """It will not fire, unless it is scheduled again."""
        self.deadline_ms = None

    def discard(self) -> None:
        """It will never fire again, and keeps nothing alive while it waits to be swept out."""
        self.cancel()
        self._action, self._arguments = _nothing, ()


def _nothing() -> None:
    """What a discarded timer would do."""


class Timers:
    """All timers of one coordinator, on the clock's hand that never jumps."""

    def __init__(self, clock: Clock, answers: Answers | None = None) -> None:
        self._clock = clock
        self._answers = answers or Answers()
        self._heap: list[tuple[int, int, Timer]] = []
        self._numbers = count()
        self._live_at_least = 0

    def after(self, delay_ms: int, action: Callable[..., None], *arguments: object) -> Timer:
        """A new timer."""
        timer = Timer(action, *arguments)
        self.schedule(timer, delay_ms)
        return timer

    def schedule(self, timer: Timer, delay_ms: int) -> None:
        """The timer fires when more than the delay has passed from now on, whatever was planned before."""
        deadline = self._clock.monotonic_ms() + max(delay_ms, 0)
        timer.deadline_ms = deadline
        if timer._entry_ms is None or deadline < timer._entry_ms:
            self._push(timer, deadline)

    def next_due_ms(self) -> int | None:
        """When to call `run_due`, on the clock's monotonic hand: nothing is due before. It may be early, never late."""
        return self._heap[0][0] + 1 if self._heap else None

    def run_due(self) -> int:
        """Fire what is due, in the order of the deadlines, and tell how many fired.

        What these schedule in turn waits for another call, for it is not due before the clock has moved.
        """
        now = self._clock.monotonic_ms()
        fired = 0
        while self._heap and self._heap[0][0] < now:
            entry_ms, _, timer = heapq.heappop(self._heap)
            if entry_ms != timer._entry_ms:
                continue
            timer._entry_ms = None
            deadline = timer.deadline_ms
            if deadline is None:
                continue
            if deadline > entry_ms:
                self._push(timer, deadline)
                continue
            fired += 1
            with self._answers:
                timer.fire()
        return fired

    def _push(self, timer: Timer, deadline: int) -> None:
        timer._entry_ms = deadline
        heapq.heappush(self._heap, (deadline, next(self._numbers), timer))
        if len(self._heap) > 2 * self._live_at_least + _SPARE_ENTRIES:
            self._sweep()

    def _sweep(self) -> None:
        """Drop the entries of cancelled timers; happens once for as many pushes as there are live ones."""
        live = []
        for entry in self._heap:
            entry_ms, _, timer = entry
            if entry_ms == timer._entry_ms:
                if timer.deadline_ms is None:
                    timer._entry_ms = None
                else:
                    live.append(entry)
        heapq.heapify(live)
        self._heap = live
        self._live_at_least = len(live)


class Turns:
    """Work in small bits, each of which tells how much it was; after enough of them everybody else has a turn."""

    def __init__(self, clock: Clock, timers: Timers, *, work_a_turn: int) -> None:
        self._clock = clock
        self._timers = timers
        self._work_a_turn = work_a_turn
        self._waiting: deque[Callable[[], int]] = deque()
        self._turn_ms = -1
        self._done = 0
        self._is_running = False
        self._pause = Timer(self._run)

    def soon(self, bit: Callable[[], int]) -> None:
        """Do this bit now if it is not too much for this turn and nothing waits before it, else as soon as possible."""
        self._waiting.append(bit)
        if not self._is_running and self._pause.is_idle:
            self._run()

    def finish(self) -> None:
        """Do all that waits, at once: nobody will have another turn."""
        while self._waiting:
            self._waiting.popleft()()

    def _run(self) -> None:
        now = self._clock.monotonic_ms()
        if now != self._turn_ms:
            self._turn_ms, self._done = now, 0
        self._is_running = True
        try:
            while self._waiting and self._done < self._work_a_turn:
                self._done += self._waiting.popleft()()
        finally:
            self._is_running = False
            if self._waiting:
                self._timers.schedule(self._pause, 0)
