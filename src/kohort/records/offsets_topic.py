"""Keys and values of `__consumer_offsets`, every version of them.

A key begins with its type: 0 and 1 are offset commits, 2 is a classic group, 3 and up belong to newer brokers and
stand in `coordinator_records.py`. A value begins with its version; no value is a tombstone. What cannot be read is a
value too (`UnknownKey`, `UnknownValue`, with the raw bytes and the reason), so that one odd record never ends a load.

Versions written follow the inter-broker protocol version exactly as Kafka 2.6 chooses them.
"""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple
from uuid import UUID

from kohort.records.coordinator_records import RECORD_TYPES
from kohort.records.primitives import Malformed, Reader, Writer, string_at, utf8

NO_EXPIRE_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
NO_REBALANCE_TIMEOUT = -1
NO_STATE_TIMESTAMP = -1

_OFFSET_KEYS = (0, 1)
_COMMON_OFFSET_KEY = 1
_GROUP_KEY = 2
HIGHEST_OFFSET_VALUE = 4
_COMMON_OFFSET_VALUE = 3
HIGHEST_GROUP_VALUE = 4

OFFSET_COMMIT = "offset_commit"

_NO_TOPIC_ID = UUID(int=0)
_OFFSET_AND_EPOCH = struct.Struct(">qi")
_VERSION_AND_LENGTH = struct.Struct(">hh")
_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")
_COMMON_HEAD = struct.Struct(">hqih")


class OffsetKey(NamedTuple):
    """An offset commit of one group for one partition."""

    group: str
    topic: str
    partition: int
    version: int = _COMMON_OFFSET_KEY

    @property
    def kind(self) -> str:
        return OFFSET_COMMIT


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A classic group's registration."""

    group: str
    version: int = 2

    kind = "group_metadata"


@dataclass(frozen=True, slots=True)
class CoordinatorKey:
    """A record of a newer coordinator: consumer (KIP-848), share (KIP-932) or streams (KIP-1071) groups."""

    version: int
    kind: str
    fields: dict[str, object]

    @property
    def group(self) -> str:
        return str(self.fields["group_id"])


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of a type nobody told us about, or one that is not what it claims."""

    version: int | None
    raw: bytes | None
    reason: str

    kind = "unknown"


Key = OffsetKey | GroupKey | CoordinatorKey | UnknownKey


class OffsetCommitValue(NamedTuple):
    """What was committed."""

    offset: int
    metadata: str
    commit_timestamp: int
    leader_epoch: int = NO_LEADER_EPOCH
    expire_timestamp: int = NO_EXPIRE_TIMESTAMP
    topic_id: UUID | None = None
    version: int = 3


@dataclass(frozen=True, slots=True)
class MemberValue:
    """A member as the group's record keeps it."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout: int
    subscription: bytes
    assignment: bytes
    rebalance_timeout: int = NO_REBALANCE_TIMEOUT
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """A classic group between two rebalances."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[MemberValue, ...] = ()
    current_state_timestamp: int = NO_STATE_TIMESTAMP
    version: int = 3


@dataclass(frozen=True, slots=True)
class CoordinatorValue:
    """The value of a newer coordinator's record, by field names."""

    version: int
    fields: dict[str, object]


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A value of a version nobody told us about, or one that is not what it claims."""

    version: int | None
    raw: bytes
    reason: str


Value = OffsetCommitValue | GroupMetadataValue | CoordinatorValue | UnknownValue


@total_ordering
@dataclass(frozen=True, slots=True)
class InterBrokerVersion:
    """`inter.broker.protocol.version`, such as 2.6, 2.1-IV1 or 0.10.0; without IV it is the last one of its release."""

    release: tuple[int, ...]
    internal: float

    @classmethod
    def parse(cls, version: str) -> "InterBrokerVersion":
        found = re.fullmatch(r"(\d+(?:\.\d+){1,3})(?:-IV(\d+))?", version)
        if found is None:
            raise ValueError(f"not an inter-broker protocol version: {version!r}")
        numbers = tuple(int(n) for n in found[1].split("."))
        release = numbers[:3] if numbers[0] == 0 else numbers[:2]
        return cls(release, float("inf") if found[2] is None else int(found[2]))

    def __lt__(self, other: "InterBrokerVersion") -> bool:
        return (self.release, self.internal) < (other.release, other.internal)


KAFKA_0_10_1_IV0 = InterBrokerVersion.parse("0.10.1-IV0")
KAFKA_2_1_IV0 = InterBrokerVersion.parse("2.1-IV0")
KAFKA_2_1_IV1 = InterBrokerVersion.parse("2.1-IV1")
KAFKA_2_3_IV0 = InterBrokerVersion.parse("2.3-IV0")


def offset_value_version(ibp: InterBrokerVersion, expire_timestamp: int) -> int:
    """An explicit expiry needs version 1 on every release: later ones have no field for it."""
    if ibp < KAFKA_2_1_IV0 or expire_timestamp != NO_EXPIRE_TIMESTAMP:
        return 1
    return 2 if ibp < KAFKA_2_1_IV1 else 3


def group_value_version(ibp: InterBrokerVersion) -> int:
    if ibp < KAFKA_0_10_1_IV0:
        return 0
    if ibp < KAFKA_2_1_IV0:
        return 1
    return 2 if ibp < KAFKA_2_3_IV0 else 3


def encode_key(key: OffsetKey | GroupKey) -> bytes:
    writer = Writer().int16(key.version).string(key.group)
    if isinstance(key, OffsetKey):
        writer.string(key.topic).int32(key.partition)
    return writer.done()


def encode_offset_keys(group: str, partitions: Iterable[tuple[str, int]]) -> list[bytes]:
    """What `encode_key` makes of each, for those who need many keys of one group at a time."""
    name = utf8(group)
    head = _VERSION_AND_LENGTH.pack(_COMMON_OFFSET_KEY, len(name)) + name
    heads: dict[str, bytes] = {}
    keys = []
    for topic, partition in partitions:
        head_of_topic = heads.get(topic)
        if head_of_topic is None:
            name = utf8(topic)
            head_of_topic = heads[topic] = head + _LENGTH.pack(len(name)) + name
        keys.append(head_of_topic + _PARTITION.pack(partition))
    return keys


def decode_key(raw: bytes | None) -> Key:
    """Bytes behind the last field are passed over, as Kafka does."""
    if raw is None:
        return UnknownKey(None, None, "no key")
    if len(raw) < 2:
        return UnknownKey(None, raw, "a key of fewer than 2 bytes")
    version = int.from_bytes(raw[:2], "big", signed=True)
    try:
        if version in _OFFSET_KEYS:
            group, at = string_at(raw, 2)
            topic, at = string_at(raw, at)
            return OffsetKey(group, topic, _int32_at(raw, at), version)
        if version == _GROUP_KEY:
            return GroupKey(string_at(raw, 2)[0], version)
        if version in RECORD_TYPES:
            record_type = RECORD_TYPES[version]
            return CoordinatorKey(version, record_type.name, record_type.read_key(Reader(raw, 2)))
    except Malformed as error:
        return UnknownKey(version, raw, f"malformed: {error}")
    return UnknownKey(version, raw, f"unknown key type {version}")


def _int32_at(raw: bytes, at: int) -> int:
    if len(raw) - at < 4:
        raise Malformed(f"4 bytes wanted, {len(raw) - at} left")
    return int.from_bytes(raw[at : at + 4], "big", signed=True)


def encode_value(value: OffsetCommitValue | GroupMetadataValue) -> bytes:
    """The bytes of a value in the version that it names."""
    if isinstance(value, OffsetCommitValue):
        return _encode_offset_value(value)
    return _encode_group_value(value)


def decode_value(key: Key, raw: bytes | None) -> Value | None:
    """The value that belongs to `key`; None is a tombstone."""
    if raw is None:
        return None
    if len(raw) < 2:
        return UnknownValue(None, raw, "a value of fewer than 2 bytes")
    version = int.from_bytes(raw[:2], "big", signed=True)
    try:
        if isinstance(key, OffsetKey):
            if version == _COMMON_OFFSET_VALUE:
                return _decode_common_offset_value(raw)
            if 0 <= version <= HIGHEST_OFFSET_VALUE:
                return _decode_offset_value(Reader(raw, 2), version)
        elif isinstance(key, GroupKey):
            if 0 <= version <= HIGHEST_GROUP_VALUE:
                return _decode_group_value(Reader(raw, 2), version)
        elif isinstance(key, CoordinatorKey) and version == 0 and RECORD_TYPES[key.version].has_value:
            return CoordinatorValue(version, RECORD_TYPES[key.version].read_value(Reader(raw, 2)))
    except Malformed as error:
        return UnknownValue(version, raw, f"malformed: {error}")
    return UnknownValue(version, raw, f"unknown value version {version}")


def _encode_offset_value(value: OffsetCommitValue) -> bytes:
    version = value.version
    if version == _COMMON_OFFSET_VALUE:
        metadata = utf8(value.metadata)
        head = _COMMON_HEAD.pack(version, value.offset, value.leader_epoch, len(metadata))
        return head + metadata + _TIMESTAMP.pack(value.commit_timestamp)
    writer = Writer().int16(version).int64(value.offset)
    if version >= 3:
        writer.int32(value.leader_epoch)
    if version >= 4:
        writer.compact_string(value.metadata).int64(value.commit_timestamp)
        if value.topic_id is None:
            return writer.unsigned_varint(0).done()
        return writer.raw(b"\x01\x00\x10").raw(value.topic_id.bytes).done()
    writer.string(value.metadata).int64(value.commit_timestamp)
    if version == 1:
        writer.int64(value.expire_timestamp)
    return writer.done()


def _decode_common_offset_value(raw: bytes) -> OffsetCommitValue:
    """Version 3, which 2.1 to 4.0 write: by far the most common value of all."""
    if len(raw) < _OFFSET_AND_EPOCH.size + 2:
        raise Malformed(f"{len(raw)} bytes are too few")
    offset, leader_epoch = _OFFSET_AND_EPOCH.unpack_from(raw, 2)
    metadata, at = string_at(raw, 2 + _OFFSET_AND_EPOCH.size)
    if len(raw) - at < 8:
        raise Malformed(f"8 bytes wanted, {len(raw) - at} left")
    return OffsetCommitValue(offset, metadata, int.from_bytes(raw[at : at + 8], "big", signed=True), leader_epoch)


def _decode_offset_value(reader: Reader, version: int) -> OffsetCommitValue:
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else NO_LEADER_EPOCH
    metadata = reader.compact_string() if version >= 4 else reader.string()
    commit_timestamp = reader.int64()
    expire_timestamp = reader.int64() if version == 1 else NO_EXPIRE_TIMESTAMP
    topic_id = None
    if version >= 4:
        found = reader.tags({0: Reader.uuid}).get(0)
        topic_id = found if isinstance(found, UUID) and found != _NO_TOPIC_ID else None
    return OffsetCommitValue(offset, metadata, commit_timestamp, leader_epoch, expire_timestamp, topic_id, version)


def _encode_group_value(value: GroupMetadataValue) -> bytes:
    version = value.version
    writer = Writer().int16(version)
    string, nullable = (
        (writer.compact_string, writer.compact_nullable_string)
        if version >= 4
        else (writer.string, writer.nullable_string)
    )
    blob = writer.compact_blob if version >= 4 else writer.blob
    string(value.protocol_type).int32(value.generation)
    nullable(value.protocol)
    nullable(value.leader)
    if version >= 2:
        writer.int64(value.current_state_timestamp)
    if version >= 4:
        writer.unsigned_varint(len(value.members) + 1)
    else:
        writer.int32(len(value.members))
    for member in value.members:
        string(member.member_id)
        if version >= 3:
            nullable(member.group_instance_id)
        string(member.client_id)
        string(member.client_host)
        if version >= 1:
            writer.int32(member.rebalance_timeout)
        writer.int32(member.session_timeout)
        blob(member.subscription)
        blob(member.assignment)
        if version >= 4:
            writer.unsigned_varint(0)
    if version >= 4:
        writer.unsigned_varint(0)
    return writer.done()


def _decode_group_value(reader: Reader, version: int) -> GroupMetadataValue:
    flexible = version >= 4
    string = Reader.compact_string if flexible else Reader.string
    nullable = Reader.compact_nullable_string if flexible else Reader.nullable_string
    blob = Reader.compact_blob if flexible else Reader.blob

    def member(r: Reader) -> MemberValue:
        member_id = string(r)
        instance_id = nullable(r) if version >= 3 else None
        client_id, client_host = string(r), string(r)
        rebalance_timeout = r.int32() if version >= 1 else NO_REBALANCE_TIMEOUT
        session_timeout = r.int32()
        subscription, assignment = blob(r), blob(r)
        if flexible:
            r.tags()
        return MemberValue(
            member_id, client_id, client_host, session_timeout, subscription, assignment, rebalance_timeout, instance_id
        )

    protocol_type, generation = string(reader), reader.int32()
    protocol, leader = nullable(reader), nullable(reader)
    state_timestamp = reader.int64() if version >= 2 else NO_STATE_TIMESTAMP
    members = reader.compact_array(member) if flexible else reader.array(member)
    if flexible:
        reader.tags()
    return GroupMetadataValue(protocol_type, generation, protocol, leader, tuple(members), state_timestamp, version)
