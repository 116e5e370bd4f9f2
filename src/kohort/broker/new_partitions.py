"""Partitions that are being made: each takes the disk some milliseconds, and there may be thousands of them."""

import threading
from collections.abc import Sequence

from kohort.broker.topics_file import Topic
from kohort.config import LogConfig
from kohort.errors import ClientError, ErrorCode
from kohort.log.directory import LogDirectory
from kohort.log.names import TopicPartition
from kohort.log.partition import Log


class MakingStopped(ClientError):
    """Nobody wants these partitions any more: their topic was deleted while they were made."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class NewPartitions:
    """The partitions of a new topic, or those by which one grows. Any thread may make them, several at once too."""

    def __init__(
        self, topic: Topic, directory: LogDirectory, config: LogConfig, partitions: Sequence[TopicPartition]
    ) -> None:
        self.topic = topic
        self._directory = directory
        self._config = config
        self.count = len(partitions)
        self._left = list(reversed(partitions))
        self._changed = threading.Condition()
        self._at_work = 0
        self._is_stopped = False
        self.logs: list[Log] = []
        """Those that are made; for the owner of the directory, when all are or after a stop."""

    @property
    def is_topic_new(self) -> bool:
        return self.topic.made == 0

    def make(self) -> None:
        """Make all that are left, and wait for those that others make.

        `StorageFailed` if the disk fails, `MakingStopped` if nobody wants them any more.
        """
        self.help_making()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work)
        self.check_made()

    def help_making(self) -> None:
        """Make one after the other, as long as there is one that nobody makes. `StorageFailed` if the disk fails."""
        while (partition := self._take()) is not None:
            log = None
            try:
                log = self._directory.make_log(partition, self._config)
            finally:
                self._put(partition, log)

    def check_made(self) -> None:
        """`MakingStopped` if they are not all there."""
        with self._changed:
            if self._left or self._at_work or self._is_stopped:
                raise MakingStopped(f"topic {self.topic.name} is not made any further")

    def stop(self) -> None:
        """No more of them, from the moment that this returns."""
        with self._changed:
            self._is_stopped = True
            self._changed.wait_for(lambda: not self._at_work)

    def _take(self) -> TopicPartition | None:
        with self._changed:
            if self._is_stopped or not self._left:
                return None
            self._at_work += 1
            return self._left.pop()

    def _put(self, partition: TopicPartition, log: Log | None) -> None:
        with self._changed:
            self._at_work -= 1
            if log is None:
                self._left.append(partition)
                self._is_stopped = True
            else:
                self.logs.append(log)
            self._changed.notify_all()

    def abandon(self) -> None:
        """Let go of what was made."""
        self.stop()
        for log in self.logs:
            log.abandon()
        self.logs = []
