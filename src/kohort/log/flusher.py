"""Group commit: one sync of a log serves everybody who waits for it.

Whoever has appended says whom to tell. A sync takes all who wait for its log; those who append meanwhile wait for the
next one, which forms while this one is at the disk. Under a light load a sync is for one append, under a heavy one for
hundreds: nobody is made to linger. Logs are synced in the order in which somebody began to wait for them, several at a
time if there are several threads: a disk does that faster than one after the other. Logs that have a keeper are safe
when that says so, which is one sync for all of them.

    always    whoever waits is told when the append is on the disk
    interval  everybody is told at once; dirty logs are synced every so often
    os        everybody is told at once; the operating system decides

A sync that fails is never tried again, for nobody can say what a second success would mean: everybody who waits gets
`StorageFailed`, and so does everybody who comes later.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from time import perf_counter

from kohort.clock import Clock
from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.log.durations import Durations
from kohort.log.keeper import Keeper
from kohort.log.partition import Log

Synced = Log | Keeper
Told = Callable[[StorageFailed | None], None]
"""Hears that an append is safe, or why it is not."""
Tell = Callable[[Sequence[Told], StorageFailed | None], None]
"""Sees to it that all of these hear of it, in this order."""

SYNCS_AT_A_TIME = 4


class Flusher:
    """The syncs of any number of logs. Any thread may call."""

    def __init__(self, mode: FlushMode, clock: Clock, *, keeper: Keeper | None = None, interval_ms: int = 1000) -> None:
        self.tell: Tell = _tell_at_once
        """Called by whoever has synced; whoever wants to be told elsewhere puts something else here at the start."""
        self._mode = mode
        self._keeper = keeper
        self._is_settling = False
        self._clock = clock
        self._interval_ms = interval_ms
        self._waiting: dict[Synced, list[tuple[int, Told]]] = {}
        self._syncing: set[Synced] = set()
        self._next_ms = clock.now_ms() + interval_ms
        self._changed = threading.Condition()
        self._failure: StorageFailed | None = None
        self._stopped = False
        self.flush_times = Durations()
        """Of every sync."""

    @property
    def failure(self) -> StorageFailed | None:
        """Why nothing is acknowledged any more."""
        return self._failure

    @property
    def is_prompt(self) -> bool:
        """Whether nobody ever waits."""
        return self._mode is FlushMode.OS

    def then(self, log: Log, offset: int, told: Told) -> None:
        """`told` hears when everything in `log` below `offset` is as durable as the mode promises: at once, or later
        from the thread that `tell` chooses."""
        self.then_all(((log, offset, told),))

    def then_all(self, appends: Iterable[tuple[Log, int, Told]]) -> None:
        """The same for several appends, which are synced together."""
        at_once: list[Told] = []
        to_wake = 0
        with self._changed:
            for log, offset, told in appends:
                target, end = (log, offset) if log.keeper is None else (log.keeper, log.keeper.end)
                if self._must_wait(target, end):
                    waiting = self._waiting.setdefault(target, [])
                    waiting.append((end, told))
                    # Behind others a thread was woken already, or will look when it is done.
                    to_wake += len(waiting) == 1 and target not in self._syncing
                else:
                    at_once.append(told)
            if to_wake:
                self._changed.notify(to_wake)
        if at_once:
            self.tell(at_once, self._failure)

    def _must_wait(self, log: Synced, offset: int) -> bool:
        """Also behind others who wait for the same log: all of them are told in the order in which they came."""
        if self._failure is not None or self.is_prompt:
            return False
        if self._mode is FlushMode.INTERVAL:
            self._waiting.setdefault(log, [])
            return False
        return log.recovery_point < offset or log in self._waiting or log in self._syncing

    def durable(self, log: Log, offset: int) -> "Future[None]":
        """The same as a future."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # from here on nobody can cancel it

        def told(failure: StorageFailed | None) -> None:
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)

        self.then(log, offset, told)
        return future

    def run_once(self) -> int:
        """Sync every log that somebody waits for, once, if that is due. Returns how many were told that all is well."""
        with self._changed:
            logs = self._due()
        told_well = sum(self._sync(log) for log in logs)
        self._settle_keeper()
        return told_well

    def run_next(self) -> None:
        """Sync one log that somebody waits for, if there is one that no other thread is at."""
        with self._changed:
            log = next(iter(self._due()), None)
            if log is not None:
                self._syncing.add(log)
        if log is None:
            self._settle_keeper()
            return
        try:
            self._sync(log)
        finally:
            with self._changed:
                self._syncing.discard(log)
                if self._work() > 1:  # this thread takes one piece of it
                    self._changed.notify()

    def _due(self) -> list[Synced]:
        """Which logs are to be synced now. In interval mode that is nothing, or all that are dirty."""
        if self._failure is not None:
            return []
        if self._mode is FlushMode.INTERVAL and not self._stopped:
            if self._clock.now_ms() < self._next_ms:
                return []
            if not self._waiting:
                self._next_ms = self._clock.now_ms() + self._interval_ms
        return [log for log in self._waiting if log not in self._syncing]

    def _sync(self, log: Synced) -> int:
        with self._changed:
            if self._failure is not None:
                return 0
            waiting = self._waiting.pop(log, [])
            if not self._waiting:
                self._next_ms = self._clock.now_ms() + self._interval_ms
        began = perf_counter()
        try:
            durable = log.flush()
        except StorageFailed as failure:
            self._fail(failure, waiting)
            return 0
        self.flush_times.record(perf_counter() - began)
        safe = [told for offset, told in waiting if offset <= durable]
        self.tell(safe, None)
        if len(safe) < len(waiting):
            late = [told for offset, told in waiting if offset > durable]
            self.tell(late, StorageFailed(f"{log.path} was closed at offset {durable}, before it was synced further"))
        return len(safe)

    def _settle_keeper(self) -> None:
        """Let the keeper do what nobody waits for, if no other thread is at it."""
        with self._changed:
            if self._keeper is None or self._is_settling or self._failure is not None:
                return
            self._is_settling = True
        try:
            self._keeper.settle()
        except StorageFailed as failure:
            self._fail(failure, [])
        finally:
            with self._changed:
                self._is_settling = False

    def _fail(self, failure: StorageFailed, waiting: list[tuple[int, Told]]) -> None:
        with self._changed:
            self._failure = self._failure or failure
            others, self._waiting = self._waiting, {}
            self._changed.notify_all()
        for them in (waiting, *others.values()):
            self.tell([told for _, told in them], failure)

    def wait_for_work(self) -> bool:
        """Sleep until somebody waits for a sync, or until one may be due; False when there will be no more."""
        timeout = self._interval_ms / 1000 if self._mode is FlushMode.INTERVAL else None
        with self._changed:
            self._changed.wait_for(self._has_work, timeout)
            return not self._stopped and self._failure is None

    def _has_work(self) -> bool:
        return self._stopped or self._failure is not None or self._work() > 0

    def _work(self) -> int:
        """In how many pieces work could be done now."""
        has_full = self._keeper is not None and self._keeper.is_to_settle and not self._is_settling
        return has_full + sum(bool(waiting) for log, waiting in self._waiting.items() if log not in self._syncing)

    def stop(self) -> None:
        """Wake whoever waits for work, for the last time."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _tell_at_once(them: Sequence[Told], failure: StorageFailed | None) -> None:
    for told in them:
        told(failure)


class FlusherThreads:
    """Threads that run a flusher. When the disk fails, `on_failure` is told once and the threads end."""

    def __init__(self, flusher: Flusher, on_failure: Callable[[StorageFailed], None], count: int = 1) -> None:
        self._flusher = flusher
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._has_told = False
        self._threads = [
            threading.Thread(target=self._run, name=f"kohort-flusher-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Let the syncs that are under way end, run one more for those who wait, and stop."""
        self._flusher.stop()
        for thread in self._threads:
            thread.join()
        self._flusher.run_once()
        self._tell_failure()

    def _run(self) -> None:
        while self._flusher.wait_for_work():
            self._flusher.run_next()
        self._tell_failure()

    def _tell_failure(self) -> None:
        with self._lock:
            failure = self._flusher.failure
            if failure is None or self._has_told:
                return
            self._has_told = True
        self._on_failure(failure)
