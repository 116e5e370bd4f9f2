"""How far a partition is on the disk, in a small file of its own (`flushed-offset`; Kafka passes over it).

After each sync of the log its new end is noted here, without a sync of its own: the offset, and where that is, as the
base offset of a segment and a byte position in it. A killed process loses nothing of it; a power cut may leave an older
note. It never names what was not synced, so what stands before it and is damaged was damaged later: that is refused,
not cut. Before a log is truncated the note is lowered and synced.

The file has two slots, written in turn: int64 number of the write, int64 offset, int64 base offset, int64 position,
CRC-32C of all that. A torn write spoils one slot; the other still holds. Lowering writes both, for an old, higher note
must not come back from the other slot.
"""

import struct
from typing import NamedTuple

from crc32c import crc32c

from kohort.log.files import DISK_FULL, File, Files

_BODY = struct.Struct(">qqqq")
_SLOT = struct.Struct(">qqqqI")
_SPACING = 512
"""The slots lie in different sectors."""


class LogEnd(NamedTuple):
    """An end of a log: the next offset, and the byte behind the last batch of the segment at `base_offset`."""

    offset: int
    base_offset: int
    position: int


NOTHING = LogEnd(0, 0, 0)


class FlushedOffset:
    """The note of one partition, open for writing."""

    def __init__(self, file: File) -> None:
        self._file = file
        slots = [slot for place in (0, 1) if (slot := _read_slot(file, place))]
        self._number, self._end = max(slots, default=(0, NOTHING))

    @classmethod
    def open(cls, files: Files, path: str) -> "FlushedOffset":
        return cls(files.open(path, create=True))

    @property
    def end(self) -> LogEnd:
        return self._end

    def note(self, end: LogEnd) -> None:
        """Remember that everything before `end` is on the disk. On one that is full an older note stays, which is as
        true."""
        self._number += 1
        self._end = end
        body = _BODY.pack(self._number, *end)
        try:
            self._file.write_at(_SPACING * (self._number % 2), body + crc32c(body).to_bytes(4, "big"))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise

    def lower(self, end: LogEnd) -> None:
        """Take back what was noted beyond `end`, durably."""
        if self._end.offset > end.offset:
            self.note(end)
            self.note(end)
            self._file.sync()

    def close(self) -> None:
        self._file.close()


def read_flushed_offset(files: Files, path: str) -> LogEnd:
    """The note in a file, without changing anything; `NOTHING` if there is none."""
    if not files.exists(path):
        return NOTHING
    note = FlushedOffset(files.open(path))
    note.close()
    return note.end


def _read_slot(file: File, place: int) -> tuple[int, LogEnd] | None:
    data = file.read_at(_SPACING * place, _SLOT.size)
    if len(data) < _SLOT.size:
        return None
    number, offset, base_offset, position, crc = _SLOT.unpack(data)
    return (number, LogEnd(offset, base_offset, position)) if crc32c(data[: _BODY.size]) == crc and number > 0 else None
