"""What a coordinator needs of `__consumer_offsets`, and what the errors of that topic mean to its clients.

Whoever runs a coordinator brings the log along. Appends to one partition are answered in the order in which they were
made, at once or later, and always on the coordinator's own thread.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kohort.errors import ErrorCode, KohortError
from kohort.records.finished_batch import FinishedBatch
from kohort.records.state import State

if TYPE_CHECKING:
    from kohort.group.waiting_commits import WaitingCommits

AppendCallback = Callable[[ErrorCode, int], None]
"""Told how an append went and at which offset it begins."""

LoadCallback = Callable[[State | KohortError], None]
"""Told what a partition holds, or why nobody knows."""


class OffsetsLog(Protocol):
    """The partitions of the offsets topic that this broker leads."""

    def append(self, partition: int, records: bytes | FinishedBatch, done: AppendCallback) -> None:
        """Write a batch. `done` hears when it is as durable as promised, or that it never will be.

        A partition that is led elsewhere is NOT_LEADER_OR_FOLLOWER, a disk that failed KAFKA_STORAGE_ERROR.
        """

    def append_at_once(self, partition: int, records: FinishedBatch) -> int | None:
        """Write a batch if nobody has to wait for it, and tell at which offset it begins.

        None if nothing was written, for whatever reason: `append` will tell.
        """

    def append_soon(self, partition: int, waiting: "WaitingCommits") -> bool:
        """Write commits, note where they begin, and settle them when they are as durable as promised.

        False if nothing was written, for whatever reason.
        """

    def load(self, partition: int, done: LoadCallback) -> None:
        """Replay a partition to its end, by the rule `position`."""


def commit_error(error: ErrorCode) -> ErrorCode:
    """What a failed append means to whoever commits offsets."""
    return _COMMIT_ERRORS.get(error, error)


def group_error(error: ErrorCode) -> ErrorCode:
    """What a failed append means to the members whose group was to be written."""
    return _GROUP_ERRORS.get(error, error)


_COMMON_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)

_COMMIT_ERRORS = _COMMON_ERRORS | dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)

_GROUP_ERRORS = (
    _COMMON_ERRORS
    | dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR)
    | {ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS}
)
