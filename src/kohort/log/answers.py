"""What a log is asked and what it answers, as plain values."""

from enum import Enum
from typing import NamedTuple

from kohort.log.txn_index import AbortedTransaction


class ReadUpTo(Enum):
    """How far a reader sees."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    LAST_STABLE_OFFSET = "last stable offset"


class AppendInfo(NamedTuple):
    """Where an append went; for a repeated batch, where it went the first time."""

    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    size: int
    is_duplicate: bool = False

    @property
    def next_offset(self) -> int:
        """The append is durable when everything below this is."""
        return self.last_offset + 1


class Fetched(NamedTuple):
    """Whole batches, the first of which may begin before the wanted offset, and the state of the log with them."""

    records: bytes
    next_offset: int
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    aborted_transactions: tuple[AbortedTransaction, ...] = ()


class OffsetAndTimestamp(NamedTuple):
    """A record found by its time."""

    offset: int
    timestamp: int
    leader_epoch: int
