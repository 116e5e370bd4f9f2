"""A batch that was made here and needs nothing but its place in a log."""

from typing import NamedTuple


class FinishedBatch(NamedTuple):
    """Plain records, which no producer numbers, in the bytes of format 2, checksum and all.

    Whoever writes it to a log puts the base offset and the leader's epoch into `data`: they stand outside of the
    checksum.
    """

    data: bytearray
    record_count: int
    timestamp: int
    """Of all its records: when it was made."""
