"""What a coordinator needs of `__transaction_state`, and what the errors of that topic mean to its clients.

Whoever runs a coordinator brings the log along. Appends to one partition are answered in the order in which they were
made, at once or later, and always on the coordinator's own thread.
"""

from collections.abc import Callable
from typing import Protocol

from kohort.errors import ErrorCode, KohortError
from kohort.group.offsets_log import AppendCallback
from kohort.transaction.replaying import TransactionLogState

LoadCallback = Callable[[TransactionLogState | KohortError], None]
"""Told what a partition holds, or why nobody knows."""


class TransactionLog(Protocol):
    """The partitions of the transaction topic that this broker leads."""

    def append(self, partition: int, records: bytes, done: AppendCallback) -> None:
        """Write a batch. `done` hears when it is as durable as promised, or that it never will be.

        A partition that is led elsewhere is NOT_LEADER_OR_FOLLOWER, a disk that failed KAFKA_STORAGE_ERROR.
        """

    def load(self, partition: int, done: LoadCallback) -> None:
        """Replay a partition to its end: `replay_transactions` does that for a log on this broker."""


def append_error(error: ErrorCode) -> ErrorCode:
    """What a failed append means to whoever asked for it."""
    return _ERRORS.get(error, error)


_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
