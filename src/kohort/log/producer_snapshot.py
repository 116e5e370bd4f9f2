"""Snapshots of the producers (`<offset>.snapshot`), so that opening a log need not read all of it.

Kafka's bytes, version 1: int16 version, CRC-32C of what follows it, int32 count, then for each producer int64 id, int16
epoch, int32 last sequence, int64 last offset, int32 offset delta, int64 timestamp, int32 coordinator epoch, int64 first
offset of the open transaction (-1: none). Of the five batches that are remembered only the last is kept.
"""

import struct
from collections.abc import Iterable

from crc32c import crc32c

from kohort.errors import CorruptLog
from kohort.log.files import Files, join, read_whole, write_whole
from kohort.log.names import SNAPSHOT, offset_file, parse_offset_file
from kohort.log.producer_entry import BatchMetadata, ProducerEntry
from kohort.records.batch import NO_SEQUENCE

_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1
_NONE = -1


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else BatchMetadata(NO_SEQUENCE, _NONE, 0, entry.last_timestamp)
        first_offset = entry.current_txn_first_offset
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                _NONE if first_offset is None else first_offset,
            )
        )
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers in a snapshot; `CorruptLog` if it is not whole."""
    if len(data) < _HEADER.size + _COUNT.size:
        raise CorruptLog(f"{len(data)} bytes are too few for a snapshot")
    version, crc = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptLog(f"unknown snapshot version {version}")
    body = data[_HEADER.size :]
    if crc32c(body) != crc:
        raise CorruptLog(f"checksum is {crc32c(body):08x}, the snapshot says {crc:08x}", position=2)
    (count,) = _COUNT.unpack_from(body)
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptLog(f"{count} producers claimed in {len(body)} bytes", position=_HEADER.size)
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, None if first_offset < 0 else first_offset)
    if last_offset >= 0:
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
    return entry


def write_snapshot(files: Files, directory: str, offset: int, entries: Iterable[ProducerEntry]) -> None:
    """Keep the producers as they are at `offset`."""
    write_whole(files, join(directory, offset_file(offset, SNAPSHOT)), encode_snapshot(entries))


def snapshot_offsets(files: Files, directory: str) -> list[int]:
    """The offsets for which there are snapshots, rising."""
    parsed = (parse_offset_file(name) for name in files.list_dir(directory))
    return [file.offset for file in parsed if file and file.kind == SNAPSHOT and not file.state]


def newest_snapshot(files: Files, directory: str, limit: int) -> tuple[int, list[ProducerEntry]] | None:
    """The newest whole snapshot at or before `limit`, as its offset and its producers."""
    for offset in reversed(snapshot_offsets(files, directory)):
        if offset > limit:
            continue
        try:
            return offset, decode_snapshot(read_whole(files, join(directory, offset_file(offset, SNAPSHOT))))
        except CorruptLog:
            continue
    return None


def delete_snapshots(files: Files, directory: str, *, before: int = 0, behind: int | None = None) -> None:
    """Remove the snapshots below `before`, and those above `behind`, durably."""
    doomed = [
        offset
        for offset in snapshot_offsets(files, directory)
        if offset < before or (behind is not None and offset > behind)
    ]
    for offset in doomed:
        files.unlink(join(directory, offset_file(offset, SNAPSHOT)))
    if doomed:
        files.sync_dir(directory)
