"""The blobs inside group metadata that consumers write for each other: subscription and assignment.

They are the clients' own format, so a reader takes newer versions as the newest it knows and lets the rest be, as the
Java client does. A group of another protocol type has opaque blobs: ask only where the type is "consumer".
"""

from dataclasses import dataclass

from kohort.records.primitives import Malformed, Reader, Writer

HIGHEST_VERSION = 3


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Some partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants (and, from version 1, what it owns)."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartitions, ...] = ()
    generation: int = -1
    rack: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member was given."""

    partitions: tuple[TopicPartitions, ...]
    user_data: bytes | None = None
    version: int = 0


def decode_subscription(raw: bytes) -> Subscription:
    """Raises `Malformed` where the bytes are not a subscription."""
    reader = Reader(raw)
    version = _version(reader)
    topics = tuple(reader.array(Reader.string))
    user_data = reader.nullable_blob()
    owned = tuple(reader.array(_topic_partitions)) if version >= 1 else ()
    generation = reader.int32() if version >= 2 else -1
    rack = reader.nullable_string() if version >= 3 else None
    return Subscription(topics, user_data, owned, generation, rack, version)


def decode_topics(raw: bytes) -> tuple[str, ...]:
    """The topics of a subscription of any version: the first fields are the same in all (KIP-496)."""
    reader = Reader(raw)
    reader.int16()
    topics = tuple(reader.array(Reader.string))
    reader.nullable_blob()
    return topics


def decode_assignment(raw: bytes) -> Assignment:
    """Raises `Malformed` where the bytes are not an assignment."""
    reader = Reader(raw)
    version = _version(reader)
    return Assignment(tuple(reader.array(_topic_partitions)), reader.nullable_blob(), version)


def encode_subscription(subscription: Subscription) -> bytes:
    writer = Writer().int16(subscription.version).int32(len(subscription.topics))
    for topic in subscription.topics:
        writer.string(topic)
    _put_user_data(writer, subscription.user_data)
    if subscription.version >= 1:
        _put_topic_partitions(writer, subscription.owned_partitions)
    if subscription.version >= 2:
        writer.int32(subscription.generation)
    if subscription.version >= 3:
        writer.nullable_string(subscription.rack)
    return writer.done()


def encode_assignment(assignment: Assignment) -> bytes:
    writer = Writer().int16(assignment.version)
    _put_topic_partitions(writer, assignment.partitions)
    _put_user_data(writer, assignment.user_data)
    return writer.done()


def _version(reader: Reader) -> int:
    version = reader.int16()
    if version < 0:
        raise Malformed(f"consumer protocol version {version}")
    return min(version, HIGHEST_VERSION)


def _topic_partitions(reader: Reader) -> TopicPartitions:
    return TopicPartitions(reader.string(), tuple(reader.array(Reader.int32)))


def _put_topic_partitions(writer: Writer, partitions: tuple[TopicPartitions, ...]) -> None:
    writer.int32(len(partitions))
    for topic in partitions:
        writer.string(topic.topic).int32(len(topic.partitions))
        for partition in topic.partitions:
            writer.int32(partition)


def _put_user_data(writer: Writer, user_data: bytes | None) -> None:
    if user_data is None:
        writer.int32(-1)
    else:
        writer.blob(user_data)
