"""Keys and values of `__transaction_state`, and every batch that a coordinator writes there.

Byte for byte as Kafka 2.6 writes them: key version 0 is the transactional id, value version 0 is

    version i16 · producer id i64 · producer epoch i16 · timeout i32 · state i8 · partitions, null if Empty:
    [topic, [partition i32]] · last update i64 · start i64

and no value is a tombstone. Topics and partitions stand in the order in which they joined the transaction; Kafka's
order is that of a hash set. Newer brokers write value version 1 (the same, compact, with tagged fields): it is read.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple, NewType

from kohort.errors import IllegalState, RecordTooLarge
from kohort.log.names import TopicPartition
from kohort.records.batch import Record, RecordBatch
from kohort.records.primitives import Malformed, Reader, Writer
from kohort.transaction.states import TransactionState

TransactionalId = NewType("TransactionalId", str)

NO_TIMESTAMP = -1

_KEY_VERSION = 0
_VALUE_VERSION = 0
_FLEXIBLE_VALUE_VERSION = 1

_STATES = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
)
"""A state is written as its place in this row."""


class TransactionValue(NamedTuple):
    """What stands in the log of a transactional id."""

    producer_id: int
    producer_epoch: int
    txn_timeout_ms: int
    state: TransactionState
    topic_partitions: tuple[TopicPartition, ...]
    txn_last_update_timestamp: int
    txn_start_timestamp: int = NO_TIMESTAMP


def encode_key(transactional_id: TransactionalId) -> bytes:
    return Writer().int16(_KEY_VERSION).string(transactional_id).done()


def decode_key(key: bytes) -> TransactionalId | None:
    """Whose record it is; None for a key of a version that nobody has heard of (KIP-915: such a record is skipped)."""
    reader = Reader(key)
    return TransactionalId(reader.string()) if reader.int16() == _KEY_VERSION else None


def encode_value(value: TransactionValue) -> bytes:
    """Version 0. An id without a transaction has no partitions, which is written as null."""
    is_empty = value.state is TransactionState.EMPTY
    if is_empty and value.topic_partitions:
        raise IllegalState(f"an Empty transaction with partitions: {value}")
    writer = Writer().int16(_VALUE_VERSION).int64(value.producer_id).int16(value.producer_epoch)
    writer.int32(value.txn_timeout_ms).raw(bytes([_STATES.index(value.state)]))
    if is_empty:
        writer.int32(-1)
    else:
        topics: dict[str, list[int]] = {}
        for topic, partition in value.topic_partitions:
            topics.setdefault(topic, []).append(partition)
        writer.int32(len(topics))
        for topic, partitions in topics.items():
            writer.string(topic).int32(len(partitions))
            for partition in partitions:
                writer.int32(partition)
    return writer.int64(value.txn_last_update_timestamp).int64(value.txn_start_timestamp).done()


def decode_value(value: bytes) -> TransactionValue:
    """Any version that is known; whatever else is `Malformed`."""
    reader = Reader(value)
    version = reader.int16()
    if version not in (_VALUE_VERSION, _FLEXIBLE_VALUE_VERSION):
        raise Malformed(f"a transaction's value of version {version}")
    is_flexible = version == _FLEXIBLE_VALUE_VERSION
    producer_id, producer_epoch, timeout = reader.int64(), reader.int16(), reader.int32()
    state = reader.int8()
    if not 0 <= state < len(_STATES):
        raise Malformed(f"a transaction in state {state}")
    topic_partitions = _flexible_partitions(reader) if is_flexible else _partitions(reader)
    last_update, start = reader.int64(), reader.int64()
    if is_flexible:
        reader.tags()
    if _STATES[state] is TransactionState.EMPTY:
        topic_partitions = ()
    return TransactionValue(producer_id, producer_epoch, timeout, _STATES[state], topic_partitions, last_update, start)


def _partitions(reader: Reader) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    for _ in range(reader.int32()):
        topic = reader.string()
        found += [TopicPartition(topic, partition) for partition in reader.array(Reader.int32)]
    return tuple(dict.fromkeys(found))


def _flexible_partitions(reader: Reader) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    for _ in range(reader.unsigned_varint() - 1):
        topic = reader.compact_string()
        found += [TopicPartition(topic, partition) for partition in reader.compact_array(Reader.int32)]
        reader.tags()
    return tuple(dict.fromkeys(found))


def transaction_batch(transactional_id: TransactionalId, value: TransactionValue, timestamp: int) -> bytes:
    """One record: the id as it shall be."""
    try:
        record = Record(0, timestamp, encode_key(transactional_id), encode_value(value))
    except struct.error as error:
        raise RecordTooLarge(f"the transaction of {transactional_id} does not fit into a record") from error
    return RecordBatch.build([record]).encode()


def tombstones(transactional_ids: Iterable[TransactionalId], timestamp: int) -> bytes:
    """The end of these ids."""
    keys = map(encode_key, transactional_ids)
    return RecordBatch.build([Record(number, timestamp, key, None) for number, key in enumerate(keys)]).encode()
