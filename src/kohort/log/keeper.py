"""Who makes appends safe elsewhere than in the files of their logs, for many logs at once.

On a disk that is the journal: one sync for all logs, whose own files are synced later. It may also be another place
altogether, of which the files are a copy.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.log.partition import Log
    from kohort.log.segment import Segment


class Keeper(Protocol):
    """What is put is safe when `flush` has come so far. Logs hear from it how far they are safe (`note_durable`)."""

    @property
    def has_originals(self) -> bool:
        """Whether a log's own files are a copy: that they are synced makes nothing safe."""

    @property
    def path(self) -> str:
        """What people are told when it fails."""

    # What the owner of the logs calls

    def put(self, log: "Log", batches: bytes) -> None:
        """Something was appended to a log."""

    def forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Logs were deleted or cut, durably: nothing that was said of them counts."""

    def replace(self, log: "Log", begin: int, end: int, segment: "Segment | None") -> None:
        """What a log has between two offsets was cleaned, and stands in this segment now. In any thread."""

    @property
    def end(self) -> int:
        """How much was put."""

    # What the flusher calls

    @property
    def recovery_point(self) -> int:
        """How much of what was put is safe."""

    def flush(self) -> int:
        """Make safe what was put before the call, and tell how much that is. `StorageFailed` if that is not known."""

    @property
    def is_to_settle(self) -> bool:
        """Whether there is something to do that nobody waits for."""

    def settle(self) -> None:
        """Do it, while others go on."""
