"""The two sparse indexes of a segment, in Kafka's bytes: where is an offset, and when was a time.

`.index`: int32 offset relative to the base, int32 byte position. An entry names the last offset of the batch at that
position. `.timeindex`: int64 timestamp, int32 relative offset: up to that offset no record is younger than that
timestamp. Entries rise strictly, so both are searched by bisection. An index can always be made again from its
segment; `decode` therefore refuses (`CorruptLog`) whatever does not add up, and the caller rebuilds.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from kohort.errors import CorruptLog
from kohort.records.batch import NO_TIMESTAMP

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class OffsetIndex:
    """Offsets of a segment and the byte positions of their batches."""

    ENTRY_SIZE = _OFFSET_ENTRY.size

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("q")
        self._positions = array("q")

    def __len__(self) -> int:
        return len(self._offsets)

    def entries(self) -> list[OffsetPosition]:
        return [OffsetPosition(*entry) for entry in zip(self._offsets, self._positions, strict=True)]

    @property
    def last(self) -> OffsetPosition:
        return self._at(len(self) - 1)

    def append(self, offset: int, position: int) -> None:
        self._offsets.append(offset)
        self._positions.append(position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry that does not lie behind `offset`, or the segment's beginning."""
        return self._at(bisect_right(self._offsets, offset) - 1)

    def lookup_position(self, position: int) -> OffsetPosition:
        """The last entry whose batch begins at or before `position`, or the segment's beginning."""
        return self._at(bisect_right(self._positions, position) - 1)

    def truncate_to(self, offset: int) -> None:
        """Forget the entries for `offset` and all behind it."""
        keep = bisect_left(self._offsets, offset)
        del self._offsets[keep:], self._positions[keep:]

    def _at(self, number: int) -> OffsetPosition:
        if number < 0:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self._offsets[number], self._positions[number])

    def encode(self) -> bytes:
        entries = zip(self._offsets, self._positions, strict=True)
        return b"".join(_OFFSET_ENTRY.pack(offset - self.base_offset, position) for offset, position in entries)

    @classmethod
    def decode(cls, data: bytes, base_offset: int, log_size: int) -> "OffsetIndex":
        if len(data) % cls.ENTRY_SIZE:
            raise CorruptLog(f"{len(data)} bytes are no whole number of entries")
        index = cls(base_offset)
        last_relative = last_position = -1
        for number, (relative, position) in enumerate(_OFFSET_ENTRY.iter_unpack(data)):
            if relative <= last_relative or not last_position < position < log_size:
                raise CorruptLog(
                    f"entry {relative} -> {position} behind {last_relative} -> {last_position}, "
                    f"in a segment of {log_size} bytes",
                    position=number * cls.ENTRY_SIZE,
                )
            index.append(base_offset + relative, position)
            last_relative, last_position = relative, position
        return index


class TimeIndex:
    """The times of a segment, each with the offset at which it was first reached."""

    ENTRY_SIZE = _TIME_ENTRY.size

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._timestamps)

    def entries(self) -> list[TimestampOffset]:
        return [TimestampOffset(*entry) for entry in zip(self._timestamps, self._offsets, strict=True)]

    @property
    def last(self) -> TimestampOffset:
        return self._at(len(self) - 1)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the time has moved on since the last one."""
        if timestamp > self.last.timestamp:
            self._timestamps.append(timestamp)
            self._offsets.append(offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry that is not younger than `timestamp`, or the segment's beginning."""
        return self._at(bisect_right(self._timestamps, timestamp) - 1)

    def truncate_to(self, offset: int) -> None:
        """Forget the entries for `offset` and all behind it."""
        keep = bisect_left(self._offsets, offset)
        del self._timestamps[keep:], self._offsets[keep:]

    def _at(self, number: int) -> TimestampOffset:
        if number < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(self._timestamps[number], self._offsets[number])

    def encode(self) -> bytes:
        entries = zip(self._timestamps, self._offsets, strict=True)
        return b"".join(_TIME_ENTRY.pack(timestamp, offset - self.base_offset) for timestamp, offset in entries)

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "TimeIndex":
        if len(data) % cls.ENTRY_SIZE:
            raise CorruptLog(f"{len(data)} bytes are no whole number of entries")
        index = cls(base_offset)
        last_timestamp, last_relative = NO_TIMESTAMP, 0
        for number, (timestamp, relative) in enumerate(_TIME_ENTRY.iter_unpack(data)):
            if timestamp <= last_timestamp or relative < last_relative:
                raise CorruptLog(
                    f"entry {timestamp} -> {relative} behind {last_timestamp} -> {last_relative}",
                    position=number * cls.ENTRY_SIZE,
                )
            index.maybe_append(timestamp, base_offset + relative)
            last_timestamp, last_relative = timestamp, relative
        return index
