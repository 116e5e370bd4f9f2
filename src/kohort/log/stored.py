"""Logs in files, to be looked at, not owned: a segment file, a partition directory or a whole log directory.

Nothing is locked, recovered or changed, so the files may be a dead broker's or a copy of a live one's. Memory stays
bounded by a window, whatever the size of a file.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kohort.errors import CorruptLog
from kohort.log.names import (
    CLEANED,
    LOG,
    SWAP,
    TopicPartition,
    offset_file,
    parse_offset_file,
    parse_partition_directory,
)
from kohort.log.place import LOCAL, Place
from kohort.log.source import BadSource, OnDamage, OnProgress
from kohort.records.batch import (
    BatchHeader,
    RecordBatch,
    read_batches,
    read_header,
    read_headers,
    resume_position,
    undecided,
)

if TYPE_CHECKING:
    from kohort.records.columns import Columns
    from kohort.records.key_table import KeyTable

UNKNOWN_PARTITION = -1
"""The partition of a segment file that stands in no partition's directory."""

_WINDOW = 16 * 1024 * 1024

_EXPECTED = "expected a segment file (*.log), a partition directory, a Kafka log directory or kafka://HOST:PORT"


class Frame(NamedTuple):
    """A batch as it stands, at `header.position` of `data`."""

    header: BatchHeader
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """The segment files of one partition, in order."""

    partition: int
    segments: tuple[str, ...]
    place: Place = LOCAL

    @property
    def size(self) -> int:
        return sum(self.place.size(path) for path in self.segments)

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[RecordBatch]:
        for path in self.segments:
            yield from _segment_batches(self.place, path, on_damage, on_progress)

    def frames(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[Frame]:
        """Every sound batch, unopened; each is good until the next one is asked for."""
        for path in self.segments:
            yield from _segment_frames(self.place, path, on_damage, on_progress)

    def columns(self, keys: "KeyTable", on_damage: OnDamage, on_progress: OnProgress) -> Iterator["Columns"]:
        for path in self.segments:
            yield from _segment_columns(self.place, path, keys, on_damage, on_progress)


def find_partitions(source: str, topic: str, place: Place = LOCAL) -> list[StoredPartition]:
    """The partitions that `source` holds, by number; of a log directory those of `topic`."""
    try:
        if place.is_directory(source):
            return _in_directory(place, os.path.normpath(source), topic)
        return [_single_file(place, source)]
    except OSError as error:
        raise BadSource(f"{error.filename or source}: {error.strerror}; {_EXPECTED}") from None


def _single_file(place: Place, path: str) -> StoredPartition:
    if place.size(path) == 0:
        raise BadSource(f"{path}: the file is empty; {_EXPECTED}")
    with place.open(path) as file:
        data = file.read(_WINDOW) or b""
    if not undecided(data, 0):
        try:
            read_header(data, verify=False)
        except CorruptLog as damage:
            if resume_position(data, 0) is None:
                raise BadSource(f"{path}: not a Kafka log ({damage.reason}); {_EXPECTED}") from None
    directory = parse_partition_directory(os.path.basename(os.path.dirname(os.path.abspath(path))))
    return StoredPartition(directory.partition if directory else UNKNOWN_PARTITION, (path,), place)


def _in_directory(place: Place, source: str, topic: str) -> list[StoredPartition]:
    if segments := segments_in(place, source):
        directory = parse_partition_directory(os.path.basename(os.path.abspath(source)))
        return [StoredPartition(directory.partition if directory else UNKNOWN_PARTITION, segments, place)]
    found: dict[TopicPartition, str] = {}
    for name in place.names(source):
        directory = parse_partition_directory(name)
        if directory is not None and place.is_directory(os.path.join(source, name)):
            found[directory] = os.path.join(source, name)
    chosen = sorted(partition for partition in found if partition.topic == topic)
    if not chosen:
        topics = sorted({partition.topic for partition in found})
        there = f"it holds the topics {', '.join(topics[:10])}" if topics else "there is no log in it"
        hint = "; choose one by --topic" if topics else f"; {_EXPECTED}"
        raise BadSource(f"{source}: no partition of {topic}: {there}{hint}")
    return [StoredPartition(partition.partition, segments_in(place, found[partition]), place) for partition in chosen]


def segments_in(place: Place, directory: str) -> tuple[str, ...]:
    """The segments in use, as the next start of a broker would find them.

    If a crash has interrupted the cleaner, that is: a `.swap` file stands for the old segments that it replaces, unless
    a `.cleaned` one at or before it says that the swap is void (`swap.py` tells the whole story).
    """
    files = [file for name in place.names(directory) if (file := parse_offset_file(name)) and file.kind == LOG]
    void_from = min((file.offset for file in files if file.state == CLEANED), default=None)
    found = {file.offset: os.path.join(directory, offset_file(*file)) for file in files if not file.state}
    swaps = [file for file in files if file.state == SWAP and (void_from is None or file.offset < void_from)]
    for swap in swaps:
        path = os.path.join(directory, offset_file(*swap))
        end = max(_end_offset(place, path), swap.offset + 1)
        found = {base: old for base, old in found.items() if not swap.offset <= base < end}
        found[swap.offset] = path
    return tuple(path for _, path in sorted(found.items()))


def _end_offset(place: Place, path: str) -> int:
    """The offset behind the last batch of a file that is sound."""
    end = 0
    for batch in _segment_batches(place, path, lambda _: None, lambda _: None):
        end = batch.header.next_offset
    return end


def _segment_batches(place: Place, path: str, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[RecordBatch]:
    """Every sound batch of a segment, decoded by the scalar codec."""
    with _Windows(place, path, on_damage, on_progress) as windows:
        while windows.fill():
            walk = yield from read_batches(windows.data, final=windows.final, on_damage=windows.tell)
            windows.consume(walk.position, walk.lost)


def _segment_frames(place: Place, path: str, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[Frame]:
    """Every sound batch of a segment, unopened."""
    with _Windows(place, path, on_damage, on_progress) as windows:
        while windows.fill():
            headers = read_headers(windows.data, final=windows.final, on_damage=windows.tell)
            while True:
                try:
                    header = next(headers)
                except StopIteration as end:
                    windows.consume(end.value.position, end.value.lost)
                    break
                yield Frame(header, windows.data)


def _segment_columns(
    place: Place, path: str, keys: "KeyTable", on_damage: OnDamage, on_progress: OnProgress
) -> Iterator["Columns"]:
    """Every sound batch of a segment as columns, a window at a time; each window's bytes make room for the next's."""
    from kohort.records.columns import Buffers, decode

    buffers = Buffers()
    with _Windows(place, path, on_damage, on_progress) as windows:
        while windows.fill():
            data = np.frombuffer(windows.data, np.uint8)
            window = decode(data, keys, final=windows.final, on_damage=windows.tell, buffers=buffers)
            yield window.columns
            windows.consume(window.consumed, window.lost)


class _Windows:
    """A file, a stretch of it at a time. What was not consumed begins the next stretch; if that was all, it grows.

    It is read, not mapped into memory: a file that a broker cuts meanwhile must not take this process with it.
    """

    def __init__(self, place: Place, path: str, on_damage: OnDamage, on_progress: OnProgress) -> None:
        self._path = path
        self._on_damage = on_damage
        self._on_progress = on_progress
        self._file = place.open(path)
        self._left = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        self._buffer = np.empty(min(_WINDOW, self._left), np.uint8).data  # on huge pages, unlike a bytearray
        self._kept = self._position = 0
        self.data = self._buffer[:0]

    def __enter__(self) -> "_Windows":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def final(self) -> bool:
        """Whether nothing follows `data`."""
        return self._left == 0

    def fill(self) -> bool:
        """Put the next bytes behind what was kept; False when there are none of either."""
        got = (self._file.readinto(self._buffer[self._kept :]) or 0) if self._left else 0
        self._left = self._left - got if got else 0
        self.data = self._buffer[: self._kept + got]
        return len(self.data) > 0

    def consume(self, count: int, lost: bool) -> None:
        """So many bytes are done with; with `lost`, so is the rest of the file."""
        self._on_progress(count + (self._left if lost else 0))
        if lost:
            count, self._left = len(self.data), 0
        rest = bytes(self.data[count:])
        if count == 0:
            self._buffer = np.empty(2 * len(self._buffer), np.uint8).data
        self._buffer[: len(rest)] = rest
        self._kept, self._position = len(rest), self._position + count

    def tell(self, damage: CorruptLog) -> None:
        """Pass on damage in `data`, told from the file."""
        self._on_damage(damage.within(self._path, self._position))
