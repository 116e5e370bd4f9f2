"""What logs need now and then: retention, cleaning, checkpoints, and files that nobody uses any more.

The event loop owns the logs: what changes them is done there, a little at a time. Whatever takes long (reading, writing
and removing files) is done in a thread of its own, which shares the interpreter with the loop: it works for a
millisecond and rests for as long, so that a request that comes meanwhile hardly waits.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from kohort.errors import KohortError
from kohort.log.cleaner import Cleaner, Cleaning, CleaningStopped
from kohort.log.directory import LogDirectory
from kohort.log.partition import Log

T = TypeVar("T")

logger = logging.getLogger(__name__)

_LEAST_REST_S = 0.1
_WORK_S = 0.001
_LOGS_PER_TURN = 100


class Pace:
    """Rests as long as it has worked, unless there is a hurry."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.is_hurried = False

    def rest(self) -> None:
        worked = time.perf_counter() - self._began
        if worked < _WORK_S:
            return
        if not self.is_hurried:
            time.sleep(min(worked, 10 * _WORK_S))
        self._began = time.perf_counter()


class Housekeeper:
    """Keeps the house of one data directory in order. Everything here is for the loop's thread."""

    def __init__(
        self,
        directory: LogDirectory,
        cleaner: Cleaner,
        loop: asyncio.AbstractEventLoop,
        backoff_ms: Callable[[], int],
    ) -> None:
        self._backoff_ms = backoff_ms
        self._directory = directory
        self._cleaner = cleaner
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kohort-housekeeper")
        self._pace = Pace()
        self._one_at_a_time = asyncio.Lock()
        self._cleaning: Cleaning | None = None
        self._life: asyncio.Task[None] | None = None

    def start(self) -> None:
        """From now on, every so often."""
        self._life = self._loop.create_task(self._live())
        self._life.add_done_callback(self._report)

    def close(self) -> None:
        """No more. What the thread is at is finished, or given up if it can be."""
        self._pace.is_hurried = True
        if self._cleaning is not None:
            self._cleaning.stop()
        if self._life is not None:
            self._life.cancel()
        self._thread.shutdown(cancel_futures=True)

    async def round(self) -> None:
        """Everything once."""
        async with self._one_at_a_time:
            for number, log in enumerate(self._sound_logs()):
                if number % _LOGS_PER_TURN == 0:
                    await asyncio.sleep(0)
                with _reported(log):
                    await self._tidy(log)
            with _reported():
                if doomed := self._directory.take_due_directories():
                    await self._in_thread(lambda: self._directory.remove_directories(doomed))
            with _reported():
                await self._in_thread(self._directory.checkpointing())
            await self._clean_the_dirty()

    async def clean(self, log: Log) -> None:
        """Clean a log, whether or not it is worth it."""
        async with self._one_at_a_time:
            await self._clean(log)

    async def _live(self) -> None:
        while True:
            await self.round()
            await asyncio.sleep(max(self._backoff_ms() / 1000, _LEAST_REST_S))

    def _report(self, life: "asyncio.Task[None]") -> None:
        if not life.cancelled() and (error := life.exception()) is not None:
            self._loop.call_exception_handler({"message": "housekeeping has ended", "exception": error})

    def _sound_logs(self) -> list[Log]:
        return [log for log in self._directory.logs.values() if log.failure is None]

    async def _tidy(self, log: Log) -> None:
        if log.is_closed:  # deleted since we began
            return
        while log.delete_old_segments(most=1):
            await asyncio.sleep(0)
        log.remove_expired_producers()
        if due := log.take_due_files():
            await self._in_thread(lambda: log.remove_files(due))

    async def _clean_the_dirty(self) -> None:
        """The filthiest first, until there is nothing that is worth it."""
        failed: set[Log] = set()
        while (log := self._cleaner.filthiest(log for log in self._sound_logs() if log not in failed)) is not None:
            failed.add(log)
            with _reported(log):
                await self._clean(log)
                failed.discard(log)

    async def _clean(self, log: Log) -> None:
        self._cleaning = cleaning = self._cleaner.begin(log, self._pace.rest)
        steps = cleaning.steps()
        try:
            while (step := await self._in_thread(lambda: next(steps, None))) is not None:
                log.replace(step)
                if log.is_copy:
                    await self._in_thread(partial(log.keep_replaced, step))
            await self._in_thread(lambda: self._cleaner.note(cleaning))
        finally:
            self._cleaning = None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._thread, work)


@contextlib.contextmanager
def _reported(log: Log | None = None) -> Iterator[None]:
    """What fails is told and does not keep the rest from being done. A log that was deleted meanwhile may fail."""
    try:
        yield
    except CleaningStopped:
        raise
    except KohortError as failure:
        if log is None or not log.is_closed:
            logger.error("housekeeping: %s", failure)
