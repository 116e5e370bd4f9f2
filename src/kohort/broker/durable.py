"""Who waits for what to be safe on the disk, on the side of the event loop.

The flusher syncs in a thread of its own and tells futures; here their callbacks come back to the loop, all that one
sync has made safe in one go. Whoever reads a log hears that more of it may be read.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from kohort.errors import ErrorCode
from kohort.log.flusher import Flusher
from kohort.log.partition import Log

Told = Callable[[ErrorCode], None]


class Durable:
    """Calls back when an append is as safe as the flush mode promises."""

    def __init__(
        self,
        flusher: Flusher,
        loop: asyncio.AbstractEventLoop,
        on_progress: Callable[[Log], None],
        afterwards: Callable[[], None],
    ) -> None:
        self._flusher = flusher
        self._loop = loop
        self._on_progress = on_progress
        self._afterwards = afterwards
        self._settled: deque[Callable[[], None]] = deque()
        self._is_called = False

    def then(self, log: Log, offset: int, told: Told) -> None:
        """`told` hears when everything in the log below `offset` is safe, or that it is not."""
        future = self._flusher.durable(log, offset)
        if future.done():
            self._tell(log, told, future)
        else:
            future.add_done_callback(partial(self._from_thread, log, told))

    def _from_thread(self, log: Log, told: Told, future: "Future[None]") -> None:
        self._settled.append(partial(self._tell, log, told, future))
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon_threadsafe(self._tell_all)

    def _tell_all(self) -> None:
        self._is_called = False  # before anything is taken: whoever comes later calls again
        while self._settled:
            self._settled.popleft()()
        self._afterwards()

    def _tell(self, log: Log, told: Told, future: "Future[None]") -> None:
        failure = future.exception()
        if failure is None:
            self._on_progress(log)
        told(ErrorCode.NONE if failure is None else ErrorCode.KAFKA_STORAGE_ERROR)
