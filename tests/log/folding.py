"""Batches to try logs with, and the plain fold that says what a reader makes of them.

The fold is written without any of the code that it judges: the record at the highest offset wins among plain records
and those of committed transactions, a tombstone removes its key and ends what is pending for it, and what belongs to an
open transaction is pending.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.compression import Codec

Entry = tuple[bytes | None, bytes | None]
"""A key and its value; a value of None is a tombstone."""

TIME = 1_600_000_000_000


def plain(entries: Sequence[Entry], *, codec: Codec = Codec.NONE, timestamp: int = TIME) -> bytes:
    """A batch of a producer without a name."""
    return RecordBatch.build(_records(entries, timestamp), codec=codec, base_sequence=0).encode()


def transactional(
    producer_id: int, entries: Sequence[Entry], *, codec: Codec = Codec.NONE, timestamp: int = TIME
) -> bytes:
    """A batch inside of a transaction, as a coordinator writes offsets: the sequence is always 0."""
    return RecordBatch.build(
        _records(entries, timestamp),
        codec=codec,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    ).encode()


def marker(producer_id: int, *, commit: bool, timestamp: int = TIME) -> bytes:
    """The end of a transaction."""
    record = Record(0, timestamp, b"\0\0\0\1" if commit else b"\0\0\0\0", bytes(6))
    return RecordBatch.build(
        [record], transactional=True, control=True, producer_id=producer_id, producer_epoch=0
    ).encode()


def _records(entries: Sequence[Entry], timestamp: int) -> list[Record]:
    return [Record(at, timestamp, key, value) for at, (key, value) in enumerate(entries)]


class Value(NamedTuple):
    offset: int
    value: bytes | None


class State(NamedTuple):
    """What a reader knows: the value of each key, and what is pending for each open transaction."""

    values: dict[bytes, Value]
    pending: dict[int, dict[bytes, Value]]


def fold(batches: Iterable[RecordBatch]) -> State:
    latest: dict[bytes, Value] = {}
    pending: dict[int, dict[bytes, Value]] = {}
    for header, records in ((batch.header, batch.records) for batch in batches):
        if header.is_control:
            ended = pending.pop(header.producer_id, {}) if records else {}
            if records and records[0].key == b"\0\0\0\1":
                for key, value in ended.items():
                    if key not in latest or latest[key].offset < value.offset:
                        latest[key] = value
            continue
        for record in records:
            if record.key is None:
                continue
            if header.is_transactional:
                pending.setdefault(header.producer_id, {})[record.key] = Value(record.offset, record.value)
                continue
            latest[record.key] = Value(record.offset, record.value)
            if record.value is None:
                for open_transaction in pending.values():
                    open_transaction.pop(record.key, None)
    return State(
        {key: value for key, value in sorted(latest.items()) if value.value is not None},
        {producer_id: keys for producer_id, keys in sorted(pending.items()) if keys},
    )


def fold_bytes(*segments: bytes) -> State:
    return fold(batch for segment in segments for batch in read_batches(segment))
