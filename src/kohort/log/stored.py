"""Logs in files, to be looked at, not owned: a segment file, a partition directory or a whole log directory.

Nothing is locked, recovered or changed, so the files may be a dead broker's or a copy of a live one's. Memory stays
bounded by a window, whatever the size of a file.
"""

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from kohort.log.source import BadSource, OnDamage, OnProgress
from kohort.records.batch import MAX_BATCH_BYTES, RecordBatch, read_batches, read_header, resume_position, undecided

if TYPE_CHECKING:
    from kohort.records.columns import Columns
    from kohort.records.key_table import KeyTable

UNKNOWN_PARTITION = -1
"""The partition of a segment file that stands in no partition's directory."""

_WINDOW = 16 * 1024 * 1024
_LARGEST_WINDOW = 2 * MAX_BATCH_BYTES

_EXPECTED = "expected a segment file (*.log), a partition directory, a Kafka log directory or kafka://HOST:PORT"


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """The segment files of one partition, in order."""

    partition: int
    segments: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(os.path.getsize(path) for path in self.segments)

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[RecordBatch]:
        for path in self.segments:
            yield from _segment_batches(path, on_damage, on_progress)

    def columns(self, keys: "KeyTable", on_damage: OnDamage, on_progress: OnProgress) -> Iterator["Columns"]:
        for path in self.segments:
            yield from _segment_columns(path, keys, on_damage, on_progress)


def find_partitions(source: str, topic: str) -> list[StoredPartition]:
    """The partitions that `source` holds, by number; of a log directory those of `topic`."""
    try:
        if os.path.isdir(source):
            return _in_directory(os.path.normpath(source), topic)
        return [_single_file(source)]
    except OSError as error:
        raise BadSource(f"{error.filename or source}: {error.strerror}; {_EXPECTED}") from None


def _single_file(path: str) -> StoredPartition:
    if os.path.getsize(path) == 0:
        raise BadSource(f"{path}: the file is empty; {_EXPECTED}")
    with open(path, "rb") as file:
        data = file.read(_WINDOW)
    if not undecided(data, 0):
        try:
            read_header(data, verify=False)
        except CorruptLog as damage:
            if resume_position(data, 0) is None:
                raise BadSource(f"{path}: not a Kafka log ({damage.reason}); {_EXPECTED}") from None
    directory = parse_partition_directory(os.path.basename(os.path.dirname(os.path.abspath(path))))
    return StoredPartition(directory.partition if directory else UNKNOWN_PARTITION, (path,))


def _in_directory(source: str, topic: str) -> list[StoredPartition]:
    names = sorted(os.listdir(source))
    if segments := _segments(source, names):
        directory = parse_partition_directory(os.path.basename(os.path.abspath(source)))
        return [StoredPartition(directory.partition if directory else UNKNOWN_PARTITION, segments)]
    found: dict[TopicPartition, str] = {}
    for name in names:
        directory = parse_partition_directory(name)
        if directory is not None and os.path.isdir(os.path.join(source, name)):
            found[directory] = os.path.join(source, name)
    chosen = sorted(partition for partition in found if partition.topic == topic)
    if not chosen:
        topics = sorted({partition.topic for partition in found})
        there = f"it holds the topics {', '.join(topics[:10])}" if topics else "there is no log in it"
        hint = "; choose one by --topic" if topics else f"; {_EXPECTED}"
        raise BadSource(f"{source}: no partition of {topic}: {there}{hint}")
    return [
        StoredPartition(partition.partition, _segments(found[partition], sorted(os.listdir(found[partition]))))
        for partition in chosen
    ]


def _segments(directory: str, names: list[str]) -> tuple[str, ...]:
    """The segments in use, as the next start of a broker would find them.

    If a crash has interrupted the cleaner, that is: a `.swap` file stands for the old segments that it replaces, unless
    a `.cleaned` one at or before it says that the swap is void (`swap.py` tells the whole story).
    """
    files = [file for name in names if (file := parse_offset_file(name)) and file.kind == LOG]
    void_from = min((file.offset for file in files if file.state == CLEANED), default=None)
    found = {file.offset: os.path.join(directory, offset_file(*file)) for file in files if not file.state}
    swaps = [file for file in files if file.state == SWAP and (void_from is None or file.offset < void_from)]
    for swap in swaps:
        path = os.path.join(directory, offset_file(*swap))
        end = max(_end_offset(path), swap.offset + 1)
        found = {base: old for base, old in found.items() if not swap.offset <= base < end}
        found[swap.offset] = path
    return tuple(path for _, path in sorted(found.items()))


def _end_offset(path: str) -> int:
    """The offset behind the last batch of a file that is sound."""
    end = 0
    for batch in _segment_batches(path, lambda _: None, lambda _: None):
        end = batch.header.next_offset
    return end


def _segment_batches(path: str, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[RecordBatch]:
    """Every sound batch of a segment, decoded by the scalar codec.

    Read, not mapped into memory: a file that a broker cuts meanwhile must not take this process with it.
    """
    with open(path, "rb", buffering=0) as file:
        left = os.fstat(file.fileno()).st_size
        kept, position, wanted = b"", 0, _WINDOW
        while left or kept:
            got = file.read(min(wanted, left)) if left else b""
            left = left - len(got) if got else 0
            data = kept + got
            final = left == 0 or len(data) >= _LARGEST_WINDOW
            told = functools.partial(_tell, on_damage, path, position)
            walk = yield from read_batches(data, final=final, on_damage=told)
            on_progress(walk.position)
            if walk.lost:
                on_progress(left)
                return
            kept, position = data[walk.position :], position + walk.position
            wanted = len(data) if walk.position == 0 else _WINDOW


def _segment_columns(path: str, keys: "KeyTable", on_damage: OnDamage, on_progress: OnProgress) -> Iterator["Columns"]:
    """Every sound batch of a segment as columns, a window at a time; each window's bytes make room for the next's."""
    import numpy as np

    from kohort.records.columns import Buffers, decode

    with open(path, "rb", buffering=0) as file:
        left = os.fstat(file.fileno()).st_size
        buffer = np.empty(min(_WINDOW, left), np.uint8)
        buffers = Buffers()
        kept = position = 0
        while left or kept:
            got = file.readinto(buffer[kept:].data) if left else 0
            left = left - got if got else 0
            data = buffer[: kept + got]
            final = left == 0 or len(data) >= _LARGEST_WINDOW
            told = functools.partial(_tell, on_damage, path, position)
            window = decode(data, keys, final=final, on_damage=told, buffers=buffers)
            yield window.columns
            on_progress(window.consumed)
            if window.lost:
                on_progress(left)
                return
            position += window.consumed
            kept = len(data) - window.consumed
            if window.consumed == 0:
                buffer = np.concatenate([data, np.empty(len(data), np.uint8)])
            elif kept:
                buffer[:kept] = data[window.consumed :].copy()


def _tell(on_damage: OnDamage, path: str, position: int, damage: CorruptLog) -> None:
    on_damage(damage.within(path, position))
