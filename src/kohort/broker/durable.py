"""Who waits for what to be safe on the disk, on the side of the event loop.

The flusher syncs in threads of its own. What is appended in one turn of the loop is handed to it together, for threads
that take turns with the loop too often hold it up; and whoever waits is told on the loop, all that have become safe
meanwhile in one go. Whoever reads a log hears that more of it may be read.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kohort.errors import ErrorCode, StorageFailed
from kohort.log.flusher import Flusher
from kohort.log.flusher import Told as FlusherTold
from kohort.log.partition import Log

Told = Callable[[ErrorCode], None]

_MOST_TOGETHER = 64
"""So many are enough for a sync: the disk need not wait for the end of a long turn."""


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
        flusher.tell = self._hear
        self.is_prompt = flusher.is_prompt
        """Whether everything is safe enough as soon as it is appended."""
        self._loop = loop
        self.on_progress = on_progress
        self._afterwards = afterwards
        self._thread = threading.get_ident()
        self._unsafe: list[tuple[Log, int, FlusherTold]] = []
        """What the flusher has not heard of."""
        self._settled: deque[tuple[Iterator[FlusherTold], StorageFailed | None]] = deque()
        self._is_called = False

    def then(self, log: Log, offset: int, told: Told) -> None:
        """`told` hears when everything in the log below `offset` is safe, or that it is not."""
        if self.is_prompt:
            self._tell(log, told, None)
        else:
            self._unsafe.append((log, offset, partial(self._tell, log, told)))
            if len(self._unsafe) == 1:
                self._loop.call_soon(self.hand_over)
            elif len(self._unsafe) >= _MOST_TOGETHER:
                self.hand_over()

    def hand_over(self) -> None:
        """Let the flusher hear of everything that was appended."""
        if self._unsafe:
            appends, self._unsafe = self._unsafe, []
            self._flusher.then_all(appends)

    def _hear(self, them: Sequence[FlusherTold], failure: StorageFailed | None) -> None:
        """Called by any thread. Nobody is told before those who were heard of earlier."""
        if threading.get_ident() == self._thread and not self._settled:
            for told in them:
                told(failure)
            return
        self._settled.append((iter(them), failure))
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon_threadsafe(self._tell_all)

    def _tell_all(self) -> None:
        self._is_called = False  # before anything is taken: whoever comes later calls again
        while self._settled:
            them, failure = self._settled[0]
            for told in them:
                told(failure)
            self._settled.popleft()
        self._afterwards()

    def _tell(self, log: Log, told: Told, failure: StorageFailed | None) -> None:
        if failure is None:
            self.on_progress(log)
        told(ErrorCode.NONE if failure is None else ErrorCode.KAFKA_STORAGE_ERROR)
