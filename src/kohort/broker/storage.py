"""Where a broker keeps what it has: its topics' logs, and the small documents beside them."""

from collections.abc import Callable
from typing import Protocol

from kohort.broker.topics_file import INTERNAL_TOPICS
from kohort.clock import Clock
from kohort.config import FlushMode, LogConfig
from kohort.log.directory import LogDirectory
from kohort.log.documents import Documents, FileDocuments
from kohort.log.files import Files


class Storage(Protocol):
    """A place for one broker."""

    @property
    def documents(self) -> Documents: ...

    def open_directory(self, clock: Clock, config_of: Callable[[str], LogConfig]) -> LogDirectory:
        """All logs that are there. `StorageFailed` if another process has them, or if the place fails."""


class LocalStorage:
    """A directory on this machine."""

    def __init__(self, files: Files, path: str, *, broker_id: int, flush_mode: FlushMode) -> None:
        self._files = files
        self._path = path
        self._broker_id = broker_id
        self._flush_mode = flush_mode
        self.documents: Documents = FileDocuments(files, path)

    def open_directory(self, clock: Clock, config_of: Callable[[str], LogConfig]) -> LogDirectory:
        return LogDirectory(
            self._files,
            self._path,
            clock,
            config_of,
            broker_id=self._broker_id,
            flush_mode=self._flush_mode,
            journaled=INTERNAL_TOPICS,
        )
