"""Group commit: one sync serves everybody who waits for it.

Whoever has appended asks for a future. `run_once` takes all who wait, syncs each of their logs once and tells them;
those who append meanwhile wait for the next round, which forms while this one is at the disk. Under a light load a
round is one append, under a heavy one hundreds: nobody is made to linger.

    always    a future is done when its append is on the disk
    interval  futures are done at once; dirty logs are synced every so often
    os        futures are done at once; the operating system decides

A sync that fails is never tried again, for nobody can say what a second success would mean: everybody who waits gets
`StorageFailed`, and so does everybody who comes later.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter

from kohort.clock import Clock
from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.log.durations import Durations
from kohort.log.partition import Log


class Flusher:
    """The syncs of any number of logs. Any thread may call."""

    def __init__(self, mode: FlushMode, clock: Clock, *, interval_ms: int = 1000) -> None:
        self._mode = mode
        self._clock = clock
        self._interval_ms = interval_ms
        self._waiting: dict[Log, list[tuple[int, Future[None]]]] = {}
        self._next_ms = clock.now_ms() + interval_ms
        self._changed = threading.Condition()
        self._failure: StorageFailed | None = None
        self._stopped = False
        self.flush_times = Durations()
        """Of every log in every round."""

    @property
    def failure(self) -> StorageFailed | None:
        """Why nothing is acknowledged any more."""
        return self._failure

    def durable(self, log: Log, offset: int) -> "Future[None]":
        """A future that is done when everything in `log` below `offset` is as durable as the mode promises."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # from here on nobody can cancel it
        with self._changed:
            if self._failure is not None:
                future.set_exception(self._failure)
                return future
            if self._mode is FlushMode.OS or log.recovery_point >= offset:
                future.set_result(None)
                return future
            waiting = self._waiting.setdefault(log, [])
            if self._mode is FlushMode.INTERVAL:
                future.set_result(None)
            else:
                waiting.append((offset, future))
                self._changed.notify()
        return future

    def run_once(self) -> int:
        """Sync every log that somebody waits for, once, if that is due. Returns the number of futures completed."""
        with self._changed:
            if self._failure is not None or not self._is_due():
                return 0
            taken, self._waiting = self._waiting, {}
            self._next_ms = self._clock.now_ms() + self._interval_ms
        completed = 0
        for log, waiting in taken.items():
            began = perf_counter()
            try:
                durable = log.flush()
            except StorageFailed as failure:
                self._fail(failure, taken)
                return completed
            self.flush_times.record(perf_counter() - began)
            for offset, future in waiting:
                if offset <= durable:
                    future.set_result(None)
                    completed += 1
                else:
                    future.set_exception(StorageFailed(f"{log.path} was closed before offset {offset} was synced"))
        return completed

    def _is_due(self) -> bool:
        return self._mode is not FlushMode.INTERVAL or self._clock.now_ms() >= self._next_ms

    def _fail(self, failure: StorageFailed, taken: dict[Log, list[tuple[int, Future[None]]]]) -> None:
        with self._changed:
            self._failure = failure
            later, self._waiting = self._waiting, {}
        for waiting in (*taken.values(), *later.values()):
            for _, future in waiting:
                if not future.done():
                    future.set_exception(failure)

    def wait_for_work(self) -> bool:
        """Sleep until somebody waits for a sync, or until one may be due; False after `stop`."""
        timeout = self._interval_ms / 1000 if self._mode is FlushMode.INTERVAL else None
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or any(self._waiting.values()), timeout)
            return not self._stopped

    def stop(self) -> None:
        """Wake whoever waits for work, for the last time."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class FlusherThread:
    """A thread that runs a flusher. When the disk fails, `on_failure` is told and the thread ends."""

    def __init__(self, flusher: Flusher, on_failure: Callable[[StorageFailed], None]) -> None:
        self._flusher = flusher
        self._on_failure = on_failure
        self._thread = threading.Thread(target=self._run, name="kohort-flusher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let the round that is under way end, run one more for those who wait, and stop."""
        self._flusher.stop()
        self._thread.join()

    def _run(self) -> None:
        while self._flusher.failure is None and self._flusher.wait_for_work():
            self._flusher.run_once()
        self._flusher.run_once()
        if (failure := self._flusher.failure) is not None:
            self._on_failure(failure)
