"""Who waits for what to be safe on the disk, on the side of the event loop.

The flusher syncs in threads of its own; here whoever waits is told on the loop, all that have become safe meanwhile in
one go. Whoever reads a log hears that more of it may be read.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from kohort.errors import ErrorCode, StorageFailed
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
        self._thread = threading.get_ident()
        self._settled: deque[tuple[Log, Told, StorageFailed | None]] = deque()
        self._is_called = False

    def then(self, log: Log, offset: int, told: Told) -> None:
        """`told` hears when everything in the log below `offset` is safe, or that it is not."""
        if self._flusher.is_prompt:
            self._tell(log, told, None)
        else:
            self._flusher.then(log, offset, partial(self._hear, log, told))

    def _hear(self, log: Log, told: Told, failure: StorageFailed | None) -> None:
        if threading.get_ident() == self._thread and not self._settled:
            self._tell(log, told, failure)
            return
        self._settled.append((log, told, failure))
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon_threadsafe(self._tell_all)

    def _tell_all(self) -> None:
        self._is_called = False  # before anything is taken: whoever comes later calls again
        while self._settled:
            self._tell(*self._settled.popleft())
        self._afterwards()

    def _tell(self, log: Log, told: Told, failure: StorageFailed | None) -> None:
        if failure is None:
            self._on_progress(log)
        told(ErrorCode.NONE if failure is None else ErrorCode.KAFKA_STORAGE_ERROR)
