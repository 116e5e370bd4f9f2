"""Targets: keys and values that coordinators keep in their topics, and what consumers write for each other.

A record of the offsets topic is never an error: what cannot be read is a value of its own. The others have `Malformed`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from kohort.records import offsets_topic
from kohort.records.batch import read_batches
from kohort.records.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    decode_topics,
    encode_assignment,
    encode_subscription,
)
from kohort.records.offsets_topic import GroupKey, GroupMetadataValue, OffsetCommitValue, OffsetKey
from kohort.records.primitives import Malformed
from kohort.transaction import records as transaction_records
from kohort.transaction.records import TransactionalId, TransactionValue
from kohort.transaction.states import TransactionState
from tests.fuzzing.target import target
from tests.golden_sets import GOLDEN

T = TypeVar("T")

_MOST_OF_A_SEGMENT = 1 << 16
_MOST_OF_A_VERSION = 4
_NO_VALUE = 0xFF


def _joined(key: bytes, value: bytes | None) -> bytes:
    """A key and a value as one input: the key's length (or that there is no value), the key, the value."""
    return bytes([_NO_VALUE]) + key if value is None else bytes([len(key)]) + key + value


def _parted(data: bytes) -> tuple[bytes, bytes | None]:
    if data[0] == _NO_VALUE:
        return data[1:], None
    return data[1 : 1 + data[0]], data[1 + data[0] :]


def _offsets_topic_seeds() -> Iterator[bytes]:
    """Of what real brokers wrote, some of each version of keys and values."""
    count = Counter[tuple[bytes, bytes | None]]()
    for golden in GOLDEN:
        for _, path in golden.segments():
            for batch in read_batches(path.read_bytes()[:_MOST_OF_A_SEGMENT], final=False):
                for record in batch.records:
                    if record.key is None or len(record.key) >= _NO_VALUE:
                        continue
                    versions = record.key[:2], None if record.value is None else record.value[:2]
                    count[versions] += 1
                    if count[versions] <= _MOST_OF_A_VERSION:
                        yield _joined(record.key, record.value)


@target("offsets-topic", _offsets_topic_seeds)
def fuzz_offsets_topic(data: bytes) -> None:
    if not data:
        return
    raw_key, raw_value = _parted(data)
    key = offsets_topic.decode_key(raw_key)
    value = offsets_topic.decode_value(key, raw_value)
    if isinstance(key, OffsetKey | GroupKey):
        assert offsets_topic.decode_key(offsets_topic.encode_key(key)) == key
    if isinstance(value, OffsetCommitValue | GroupMetadataValue):
        assert offsets_topic.decode_value(key, offsets_topic.encode_value(value)) == value


def _transaction_seeds() -> Iterator[bytes]:
    partitions = (transaction_records.TopicPartition("t", 1), transaction_records.TopicPartition("u", 0))
    key = transaction_records.encode_key(TransactionalId("tx"))
    for state in TransactionState:
        value = TransactionValue(7, 1, 60_000, state, () if state is TransactionState.EMPTY else partitions, 5, 4)
        raw = transaction_records.encode_value(value)
        yield _joined(key, raw)
        # Version 1 is only read: the same numbers, then compact partitions, two times and no tags.
        yield _joined(key, b"\0\1" + raw[2:17] + b"\2\2t\2\0\0\0\1\0" + bytes(16) + b"\0")
    yield _joined(key, None)


@target("transaction-log", _transaction_seeds)
def fuzz_transaction_log(data: bytes) -> None:
    if not data:
        return
    raw_key, raw_value = _parted(data)
    transactional_id = _or_malformed(transaction_records.decode_key, raw_key)
    if transactional_id is not None:
        assert transaction_records.decode_key(transaction_records.encode_key(transactional_id)) == transactional_id
    value = None if raw_value is None else _or_malformed(transaction_records.decode_value, raw_value)
    if value is not None:
        again = transaction_records.decode_value(transaction_records.encode_value(value))
        # What is written puts the partitions of a topic together.
        assert sorted(again.topic_partitions) == sorted(value.topic_partitions)
        assert again._replace(topic_partitions=()) == value._replace(topic_partitions=())


def _consumer_seeds() -> Iterator[bytes]:
    owned = (TopicPartitions("t", (0, 1)), TopicPartitions("u", ()))
    for version in range(4):
        for data in (None, b"", b"user"):
            yield b"\0" + encode_subscription(Subscription(("t", "ü"), data, owned, 5, "rack", version))
            yield b"\1" + encode_assignment(Assignment(owned, data, version))


@target("consumer-protocol", _consumer_seeds)
def fuzz_consumer_protocol(data: bytes) -> None:
    """The first byte chooses: a subscription or an assignment."""
    if not data:
        return
    raw = data[1:]
    if data[0] % 2:
        assignment = _or_malformed(decode_assignment, raw)
        assert assignment is None or decode_assignment(encode_assignment(assignment)) == assignment
        return
    subscription = _or_malformed(decode_subscription, raw)
    topics = _or_malformed(decode_topics, raw)
    if subscription is not None:
        assert topics == subscription.topics
        assert decode_subscription(encode_subscription(subscription)) == subscription


def _or_malformed(decode: Callable[[bytes], T], raw: bytes) -> T | None:
    try:
        return decode(raw)
    except Malformed:
        return None
