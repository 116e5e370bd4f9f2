"""A segment: `<base offset>.log`, a run of batches, with the indexes that find an offset or a time in it.

The last segment of a log is the active one: it alone grows, and its indexes live in memory. When the log rolls, the
segment is sealed: synced, its indexes written. A sealed segment reads its indexes when they are first asked for, and
makes them again from the batches if they are missing, do not add up, or lead to a batch that does not fit.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kohort.errors import CorruptLog
from kohort.log.batch_table import BatchTable
from kohort.log.files import File, Files, join, read_whole, write_whole
from kohort.log.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset
from kohort.log.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, offset_file
from kohort.log.scan import WINDOW_BYTES, Pause, ScannedWindow, scan_segment
from kohort.log.txn_index import TransactionIndex
from kohort.records.batch import NO_TIMESTAMP, BatchHeader, moved, read_records

_LOOKUP_WINDOW = 16 * 1024
_REBUILT_INTERVAL = 4096
"""The distance of entries in an index that turns out to be bad when it is needed."""


class BatchNote(NamedTuple):
    """What a segment takes note of when a batch is written."""

    size: int
    last_offset: int
    next_offset: int
    max_timestamp: int


class SegmentRead(NamedTuple):
    """Whole batches, and the offset at which to read on."""

    records: bytes
    next_offset: int


class Segment:
    """One segment of a log. Made by `create` and `open`."""

    def __init__(self, files: Files, directory: str, base_offset: int, file: File, created_ms: int) -> None:
        self._files = files
        self._directory = directory
        self.base_offset = base_offset
        self.file = file
        self.created_ms = created_ms
        self.txn_index = TransactionIndex()
        self._offset_index: OffsetIndex | None = None
        self._time_index = TimeIndex(base_offset)
        self._indexes_were_read = False
        self.size = file.size()
        """Of what was appended; what a failed write has left behind it does not count."""
        self._next_offset: int | None = None
        self._first_timestamp: int | None = None
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        self._bytes_since_index = 0

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, now_ms: int) -> "Segment":
        """A new, empty segment, of which the directory knows durably."""
        return cls.begin(files, directory, base_offset, cls.make_file(files, directory, base_offset), now_ms)

    @staticmethod
    def make_file(files: Files, directory: str, base_offset: int) -> File:
        """The file that a segment begins with; if there is no room for one, nothing has changed."""
        return files.open(join(directory, offset_file(base_offset, LOG)), create=True)

    @classmethod
    def begin(cls, files: Files, directory: str, base_offset: int, file: File, now_ms: int) -> "Segment":
        file.truncate(0)
        file.sync()
        files.sync_dir(directory)
        segment = cls(files, directory, base_offset, file, now_ms)
        segment.reset_indexes()
        return segment

    @classmethod
    def open(cls, files: Files, directory: str, base_offset: int, now_ms: int) -> "Segment":
        file = files.open(join(directory, offset_file(base_offset, LOG)))
        return cls(files, directory, base_offset, file, now_ms)

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def offset_index(self) -> OffsetIndex:
        return self._indexes()[0]

    @property
    def time_index(self) -> TimeIndex:
        return self._indexes()[1]

    @property
    def next_offset(self) -> int:
        """The offset behind the last batch."""
        if self._next_offset is None:
            self._indexes()
            self.load_tail()
        assert self._next_offset is not None
        return self._next_offset

    @property
    def first_timestamp(self) -> int:
        """The time of the first batch, from which the age of an active segment counts; -1 if it has none."""
        if self._first_timestamp is None:
            first = next(self._headers(0), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first.max_timestamp
        return self._first_timestamp

    @property
    def max_timestamp(self) -> int:
        """The time of the youngest record; -1 if no record has one."""
        return max(self.time_index.last.timestamp, self._max_timestamp)

    def is_index_full(self, segment_index_bytes: int) -> bool:
        offset_index, time_index = self._indexes()
        return (
            len(offset_index) >= segment_index_bytes // OffsetIndex.ENTRY_SIZE
            or len(time_index) >= segment_index_bytes // TimeIndex.ENTRY_SIZE
        )

    def append(self, data: bytes, batches: Sequence[BatchNote], index_interval_bytes: int) -> None:
        """Write batches at the end: `data`, in which these follow on each other."""
        position = self.size
        self.file.append(data)
        self.size = position + len(data)
        for batch in batches:
            self.index_batch(batch, position, index_interval_bytes)
            position += batch.size

    def scan(
        self, start: int = 0, *, verify: bool = True, window_bytes: int = WINDOW_BYTES, pause: Pause | None = None
    ) -> Iterator[ScannedWindow]:
        return scan_segment(
            self.file,
            self.base_offset,
            start=start,
            end=self.size,
            verify=verify,
            window_bytes=window_bytes,
            pause=pause,
        )

    def batches(self, start: int = 0, *, pause: Pause | None = None) -> Iterator[tuple[BatchHeader, bytes]]:
        """Every batch from the byte `start` on, checked, with positions in the file. Damage is raised."""
        for window in self.scan(start, pause=pause):
            for header in window.headers:
                yield moved(header, window.position), window.batch(header)
            if window.damage is not None:
                raise window.damage

    def read(self, offset: int, max_bytes: int, *, min_one: bool, up_to: int) -> SegmentRead | None:
        """The batches from the one that holds `offset` on, all of them below `up_to`; None if they are all before it.

        `min_one` gives the first batch even if it alone is beyond `max_bytes`.
        """
        first = self._find(offset)
        if first is None:
            return None
        end = self.size
        if up_to < self.next_offset and (limit := self._find(up_to)) is not None:
            end = limit.position
        stop = min(first.position + max_bytes, end)
        if first.end > stop:
            if not min_one or first.end > end:
                return SegmentRead(b"", offset)
            return SegmentRead(self.file.read_at(first.position, first.size), first.next_offset)
        stop, next_offset = self._last_border(first, stop)
        return SegmentRead(self.file.read_at(first.position, stop - first.position), next_offset)

    def find_timestamp(self, timestamp: int, min_offset: int) -> TimestampOffset | None:
        """The first record from `min_offset` on that is as young as `timestamp`."""
        entry = self.time_index.lookup(timestamp)
        if not self._fits_time(entry):
            self.rebuild_indexes(_REBUILT_INTERVAL)
            entry = self.time_index.lookup(timestamp)
        near = max(entry.offset, min_offset)
        for header in self._headers_from(lambda index: index.lookup(near)):
            if header.max_timestamp < timestamp or header.last_offset < min_offset:
                continue
            data = self.file.read_at(header.position, header.size)
            for record in read_records(moved(header, -header.position), data):
                if record.timestamp >= timestamp and record.offset >= min_offset:
                    return TimestampOffset(record.timestamp, record.offset)
        return None

    def truncate_to(self, offset: int, index_interval_bytes: int) -> None:
        """Cut off the batch that holds `offset` and all behind it, durably; the segment is then an active one."""
        if (first := self._find(offset)) is not None:
            self.cut(first.position)
        self.txn_index.truncate_to(offset)
        self.rebuild_indexes(index_interval_bytes)

    def cut(self, position: int) -> None:
        """Cut the file at a byte, durably. The indexes are the caller's care."""
        self.file.truncate(position)
        self.file.sync()
        self.size = position

    def rebuild_indexes(self, index_interval_bytes: int, *, pause: Pause | None = None) -> None:
        """Make the indexes of offsets and times again from the batches; damage is raised."""
        self.reset_indexes()
        for window in self.scan(verify=False, pause=pause):
            for header in window.headers:
                self.index_batch(header, window.position + header.position, index_interval_bytes)
            if window.damage is not None:
                raise window.damage

    def reset_indexes(self) -> None:
        """Forget the indexes of offsets and times, to fill them again with `index_batch`."""
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._indexes_were_read = False
        self._next_offset = self.base_offset
        self._first_timestamp = None
        self._max_timestamp = NO_TIMESTAMP
        self._bytes_since_index = 0

    def index_window(self, window: ScannedWindow, index_interval_bytes: int) -> None:
        """Take note of the batches in a window, which follow those noted before."""
        if not isinstance(window.headers, BatchTable):
            for header in window.headers:
                self.index_batch(header, window.position + header.position, index_interval_bytes)
            return
        if window.position == 0:
            self._first_timestamp = window.headers[0].max_timestamp
        assert self._offset_index is not None
        found = window.headers.index_entries(
            self._bytes_since_index, index_interval_bytes, self._max_timestamp, self._offset_of_max_timestamp
        )
        for offset, position in zip(found.offsets, found.positions, strict=True):
            self._offset_index.append(offset, window.position + position)
        for timestamp, offset in found.times:
            self._time_index.maybe_append(timestamp, offset)
        self._bytes_since_index = found.bytes_since_index
        self._max_timestamp, self._offset_of_max_timestamp = found.max_timestamp, found.offset_of_max_timestamp
        self._next_offset = window.headers[-1].next_offset

    def index_batch(self, batch: BatchNote | BatchHeader, position: int, index_interval_bytes: int) -> None:
        """Take note of the next batch, which stands at `position`."""
        if position == 0:
            self._first_timestamp = batch.max_timestamp
        self._follow(batch)
        if self._bytes_since_index > index_interval_bytes:
            assert self._offset_index is not None
            self._offset_index.append(batch.last_offset, position)
            self._time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
            self._bytes_since_index = 0
        self._bytes_since_index += batch.size

    def load_tail(self) -> None:
        """Read on from the last index entry to the end; damage is raised."""
        if not self._fits(self.offset_index.last):
            self.rebuild_indexes(_REBUILT_INTERVAL)
        last = self.offset_index.last
        self._next_offset = self.base_offset
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last
        self._bytes_since_index = self.size - last.position
        for window in self.scan(last.position):
            for header in window.headers:
                self._follow(header)
            if window.damage is not None:
                raise window.damage

    def has_indexes(self) -> bool:
        """Whether the index files of offsets and times are there; what is in them is looked at later."""
        return all(self._files.exists(self._sibling(kind)) for kind in (INDEX, TIME_INDEX))

    def load_txn_index(self) -> bool:
        """Read the aborted transactions, and say whether there is a file of them at all. A bad one is `CorruptLog`."""
        path = self._sibling(TXN_INDEX)
        if not self._files.exists(path):
            return False
        self.txn_index = TransactionIndex.decode(read_whole(self._files, path), self.base_offset)
        return True

    def write_indexes(self) -> None:
        """Bring all indexes to the disk. The last time entry is for the youngest record of all."""
        self.time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
        write_whole(self._files, self._sibling(INDEX), self.offset_index.encode())
        write_whole(self._files, self._sibling(TIME_INDEX), self.time_index.encode())
        txn_path = self._sibling(TXN_INDEX)
        if len(self.txn_index):
            write_whole(self._files, txn_path, self.txn_index.encode())
        elif self._files.exists(txn_path):
            self._files.unlink(txn_path)
            self._files.sync_dir(self._directory)

    def seal(self) -> None:
        """Bring everything to the disk; nothing will be appended any more."""
        self.file.sync()
        self.write_indexes()

    def close(self) -> None:
        self.file.close()

    def _sibling(self, kind: str) -> str:
        return join(self._directory, offset_file(self.base_offset, kind))

    def _indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        if self._offset_index is None:
            try:
                data = read_whole(self._files, self._sibling(INDEX))
                offset_index = OffsetIndex.decode(data, self.base_offset, self.size)
                self._time_index = TimeIndex.decode(
                    read_whole(self._files, self._sibling(TIME_INDEX)), self.base_offset
                )
                self._offset_index = offset_index
                self._indexes_were_read = True
            except (CorruptLog, FileNotFoundError):
                self.rebuild_indexes(_REBUILT_INTERVAL)
            if not self._fits_time(self._time_index.last):
                self.rebuild_indexes(_REBUILT_INTERVAL)
        assert self._offset_index is not None
        return self._offset_index, self._time_index

    def _follow(self, batch: BatchNote | BatchHeader) -> None:
        self._next_offset = batch.next_offset
        if batch.max_timestamp > self._max_timestamp:
            self._max_timestamp = batch.max_timestamp
            self._offset_of_max_timestamp = batch.last_offset

    def _headers(self, start: int) -> Iterator[BatchHeader]:
        for window in self.scan(start, verify=False, window_bytes=_LOOKUP_WINDOW):
            for header in window.headers:
                yield moved(header, window.position)
            if window.damage is not None:
                raise window.damage

    def _headers_from(self, look_up: Callable[[OffsetIndex], OffsetPosition]) -> Iterator[BatchHeader]:
        """The batches from an index entry on. One that leads astray shows that the index is bad: it is made again."""
        entry = look_up(self.offset_index)
        if not self._fits(entry):
            self.rebuild_indexes(_REBUILT_INTERVAL)
            entry = look_up(self.offset_index)
        return self._headers(entry.position)

    def _fits(self, entry: OffsetPosition) -> bool:
        """Whether a sound batch begins where the entry says, and not behind the offset for which one would go there."""
        if entry.position == 0 or not self._indexes_were_read:
            return True
        window = next(self.scan(entry.position, window_bytes=_LOOKUP_WINDOW), None)
        return window is not None and bool(window.headers) and window.headers[0].base_offset <= entry.offset

    def _fits_time(self, entry: TimestampOffset) -> bool:
        """Whether the batch at the entry's offset has its time."""
        if entry.timestamp == NO_TIMESTAMP or not self._indexes_were_read:
            return True
        batch = self._find(entry.offset)
        return batch is not None and batch.max_timestamp == entry.timestamp

    def _find(self, offset: int) -> BatchHeader | None:
        """The first batch that reaches `offset`."""
        headers = self._headers_from(lambda index: index.lookup(offset))
        return next((header for header in headers if header.last_offset >= offset), None)

    def _last_border(self, first: BatchHeader, stop: int) -> tuple[int, int]:
        """The end of the last whole batch up to the byte `stop`, and the offset behind it; `first` ends before it."""
        border, next_offset = first.end, first.next_offset
        for header in self._headers_from(lambda index: index.lookup_position(stop)):
            if header.end > stop:
                return header.position, max(next_offset, header.base_offset)
            border, next_offset = header.end, header.next_offset
        return border, next_offset
