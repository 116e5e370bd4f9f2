"""Which batches of a log nobody sees who reads what was committed.

In a log that lies in files the marker that says so stands behind the batches that it is about, and no broker tells of
it before. So the log is looked through once for its markers, without opening other batches.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from kohort.errors import CorruptLog
from kohort.log.stored import Frame
from kohort.records.batch import BatchHeader, read_records
from kohort.records.control import ControlType, decode_marker


@dataclass(slots=True)
class Transactions:
    """How the transactions of a partition have ended."""

    log_end: int = 0
    """The offset behind the last batch."""
    open: dict[int, int] = field(default_factory=dict)
    """Where transactions begin that have not ended, by their producers."""
    _aborted: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Beginning and marker of each aborted transaction of a producer, in order."""

    @property
    def stable_end(self) -> int:
        """Kafka's last stable offset: before it, all has been decided."""
        return min(self.open.values(), default=self.log_end)

    def is_aborted(self, header: BatchHeader) -> bool:
        if not header.is_transactional or header.is_control:
            return False
        aborted = self._aborted.get(header.producer_id, ())
        before = bisect_right(aborted, header.base_offset, key=lambda one: one[0]) - 1
        return before >= 0 and header.base_offset < aborted[before][1]

    def follow(self, frame: Frame) -> None:
        """Take the next batch of the log."""
        header = frame.header
        self.log_end = max(self.log_end, header.next_offset)
        if header.is_control:
            self._end(frame)
        elif header.is_transactional and header.record_count:
            # Of an aborted transaction the cleaner leaves an empty batch, which begins nothing.
            self.open.setdefault(header.producer_id, header.base_offset)

    def _end(self, frame: Frame) -> None:
        header = frame.header
        try:
            records = read_records(header, frame.data)
        except CorruptLog:
            return  # whoever opens all batches tells of it
        marker = decode_marker(records[0]) if records else None
        if marker is None:
            return
        first = self.open.pop(header.producer_id, None)
        if first is not None and marker.type is ControlType.ABORT:
            self._aborted.setdefault(header.producer_id, []).append((first, header.base_offset))


def find_transactions(frames: Iterable[Frame]) -> Transactions:
    """Those of a whole partition."""
    found = Transactions()
    for frame in frames:
        found.follow(frame)
    return found
