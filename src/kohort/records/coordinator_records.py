"""The record types 3 to 24 of newer coordinators: consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups.

Each type is a row of the table at the end: its number, its name, the fields of its key and of its value. Keys are never
flexible; values always are (compact strings and arrays, tagged fields with defaults). We read them all and write none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kohort.records.primitives import Malformed, Reader

Fields = dict[str, object]
FieldType = Callable[[Reader], object]


@dataclass(frozen=True, slots=True)
class Tag:
    """A tagged field: its name, its type, and what stands where it is absent."""

    name: str
    type: FieldType
    default: object


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in order, then tagged ones by number."""

    fields: dict[str, FieldType]
    tags: dict[int, Tag] = field(default_factory=dict)

    def __call__(self, reader: Reader) -> Fields:
        read: Fields = {name: read_field(reader) for name, read_field in self.fields.items()}
        found = reader.tags({number: tag.type for number, tag in self.tags.items()})
        for number, tag in self.tags.items():
            read[tag.name] = found.get(number, tag.default)
        return read


@dataclass(frozen=True, slots=True)
class RecordType:
    """One row of the table."""

    number: int
    name: str
    key: tuple[str, ...]
    value: Struct | None

    @property
    def has_value(self) -> bool:
        return self.value is not None

    def read_key(self, reader: Reader) -> Fields:
        return {name: reader.string() for name in self.key}

    def read_value(self, reader: Reader) -> Fields:
        if self.value is None:
            raise Malformed(f"{self.name} has no known value")
        return self.value(reader)


def array(item: FieldType) -> FieldType:
    return lambda reader: reader.compact_array(item)


def nullable(struct: Struct) -> FieldType:
    """A struct behind a byte that tells whether it is there: 1, or else -1, or 0 in a tagged field."""
    return lambda reader: struct(reader) if reader.int8() > 0 else None


def nullable_array(item: FieldType) -> FieldType:
    def read(reader: Reader) -> object:
        start = reader.position
        if reader.unsigned_varint() == 0:
            return None
        reader.position = start
        return reader.compact_array(item)

    return read


def uint16(reader: Reader) -> int:
    return reader.int16() & 0xFFFF


string = Reader.compact_string
optional = Reader.compact_nullable_string
blob = Reader.compact_blob
int8, int16, int32, int64, uuid = Reader.int8, Reader.int16, Reader.int32, Reader.int64, Reader.uuid

_METADATA_HASH = {0: Tag("metadata_hash", int64, 0)}
_ASSIGNMENT_METADATA = Struct({"assignment_epoch": int32}, {0: Tag("assignment_timestamp", int64, 0)})
_TOPIC_PARTITIONS = Struct({"topic_id": uuid, "partitions": array(int32)})
_ASSIGNED_PARTITIONS = Struct(
    {"topic_id": uuid, "partitions": array(int32)},
    {0: Tag("assignment_epochs", nullable_array(int32), None)},
)
_TARGET_MEMBER = Struct({"topic_partitions": array(_TOPIC_PARTITIONS)})
_PARTITION_METADATA = Struct(
    {
        "topics": array(
            Struct(
                {
                    "topic_id": uuid,
                    "topic_name": string,
                    "num_partitions": int32,
                    "partition_metadata": array(Struct({"partition": int32, "racks": array(string)})),
                }
            )
        )
    }
)
_CLASSIC_MEMBER = Struct(
    {
        "session_timeout_ms": int32,
        "supported_protocols": array(Struct({"name": string, "metadata": blob})),
    }
)
_SHARE_TOPIC = Struct({"topic_id": uuid, "topic_name": string, "partitions": array(int32)})
_KEY_VALUE = Struct({"key": string, "value": string})
_TASK_IDS = Struct({"subtopology_id": string, "partitions": array(int32)})
_CURRENT_TASK_IDS = Struct(
    {"subtopology_id": string, "partitions": array(int32)},
    {0: Tag("assignment_epochs", nullable_array(int32), None)},
)
_TOPIC_INFO = Struct(
    {"name": string, "partitions": int32, "replication_factor": int16, "topic_configs": array(_KEY_VALUE)}
)
_COPARTITION_GROUP = Struct(
    {
        "source_topics": array(int16),
        "source_topic_regex": array(int16),
        "repartition_source_topics": array(int16),
    }
)

_GROUP = ("group_id",)
_MEMBER = ("group_id", "member_id")

RECORD_TYPES: dict[int, RecordType] = {
    row.number: row
    for row in (
        RecordType(3, "consumer_group_metadata", _GROUP, Struct({"epoch": int32}, _METADATA_HASH)),
        RecordType(4, "consumer_group_partition_metadata", _GROUP, _PARTITION_METADATA),
        RecordType(
            5,
            "consumer_group_member_metadata",
            _MEMBER,
            Struct(
                {
                    "instance_id": optional,
                    "rack_id": optional,
                    "client_id": string,
                    "client_host": string,
                    "subscribed_topic_names": array(string),
                    "subscribed_topic_regex": optional,
                    "rebalance_timeout_ms": int32,
                    "server_assignor": optional,
                },
                {0: Tag("classic_member_metadata", nullable(_CLASSIC_MEMBER), None)},
            ),
        ),
        RecordType(6, "consumer_group_target_assignment_metadata", _GROUP, _ASSIGNMENT_METADATA),
        RecordType(7, "consumer_group_target_assignment_member", _MEMBER, _TARGET_MEMBER),
        RecordType(
            8,
            "consumer_group_current_member_assignment",
            _MEMBER,
            Struct(
                {
                    "member_epoch": int32,
                    "previous_member_epoch": int32,
                    "state": int8,
                    "assigned_partitions": array(_ASSIGNED_PARTITIONS),
                    "partitions_pending_revocation": array(_ASSIGNED_PARTITIONS),
                }
            ),
        ),
        RecordType(9, "share_group_partition_metadata", _GROUP, _PARTITION_METADATA),
        RecordType(
            10,
            "share_group_member_metadata",
            _MEMBER,
            Struct(
                {
                    "rack_id": optional,
                    "client_id": string,
                    "client_host": string,
                    "subscribed_topic_names": array(string),
                }
            ),
        ),
        RecordType(11, "share_group_metadata", _GROUP, Struct({"epoch": int32, "metadata_hash": int64})),
        RecordType(12, "share_group_target_assignment_metadata", _GROUP, _ASSIGNMENT_METADATA),
        RecordType(13, "share_group_target_assignment_member", _MEMBER, _TARGET_MEMBER),
        RecordType(
            14,
            "share_group_current_member_assignment",
            _MEMBER,
            Struct(
                {
                    "member_epoch": int32,
                    "previous_member_epoch": int32,
                    "state": int8,
                    "assigned_partitions": array(_TOPIC_PARTITIONS),
                }
            ),
        ),
        RecordType(
            15,
            "share_group_state_partition_metadata",
            _GROUP,
            Struct(
                {
                    "initializing_topics": array(_SHARE_TOPIC),
                    "initialized_topics": array(_SHARE_TOPIC),
                    "deleting_topics": array(Struct({"topic_id": uuid, "topic_name": string})),
                }
            ),
        ),
        RecordType(
            16,
            "consumer_group_regular_expression",
            ("group_id", "regular_expression"),
            Struct({"topics": array(string), "version": int64, "timestamp": int64}),
        ),
        RecordType(
            17,
            "streams_group_metadata",
            _GROUP,
            Struct(
                {"epoch": int32, "metadata_hash": int64},
                {
                    0: Tag("validated_topology_epoch", int32, -1),
                    1: Tag("last_assignment_configs", nullable_array(_KEY_VALUE), None),
                    2: Tag("stored_description_topology_epoch", int32, -1),
                    3: Tag("failed_description_topology_epoch", int32, -1),
                },
            ),
        ),
        # Type 18 was taken back before a release wrote it: its key can be read, its value is nobody's to know.
        RecordType(18, "streams_group_partition_metadata", _GROUP, None),
        RecordType(
            19,
            "streams_group_member_metadata",
            _MEMBER,
            Struct(
                {
                    "instance_id": optional,
                    "rack_id": optional,
                    "client_id": string,
                    "client_host": string,
                    "rebalance_timeout_ms": int32,
                    "topology_epoch": int32,
                    "process_id": string,
                    "user_endpoint": nullable(Struct({"host": string, "port": uint16})),
                    "client_tags": array(_KEY_VALUE),
                }
            ),
        ),
        RecordType(20, "streams_group_target_assignment_metadata", _GROUP, _ASSIGNMENT_METADATA),
        RecordType(
            21,
            "streams_group_target_assignment_member",
            _MEMBER,
            Struct(
                {
                    "active_tasks": array(_TASK_IDS),
                    "standby_tasks": array(_TASK_IDS),
                    "warmup_tasks": array(_TASK_IDS),
                }
            ),
        ),
        RecordType(
            22,
            "streams_group_current_member_assignment",
            _MEMBER,
            Struct(
                {
                    "member_epoch": int32,
                    "previous_member_epoch": int32,
                    "state": int8,
                    "active_tasks": array(_CURRENT_TASK_IDS),
                    "standby_tasks": array(_CURRENT_TASK_IDS),
                    "warmup_tasks": array(_CURRENT_TASK_IDS),
                    "active_tasks_pending_revocation": array(_CURRENT_TASK_IDS),
                    "standby_tasks_pending_revocation": array(_CURRENT_TASK_IDS),
                    "warmup_tasks_pending_revocation": array(_CURRENT_TASK_IDS),
                }
            ),
        ),
        RecordType(
            23,
            "streams_group_topology",
            _GROUP,
            Struct(
                {
                    "epoch": int32,
                    "subtopologies": array(
                        Struct(
                            {
                                "subtopology_id": string,
                                "source_topics": array(string),
                                "source_topic_regex": array(string),
                                "state_changelog_topics": array(_TOPIC_INFO),
                                "repartition_sink_topics": array(string),
                                "repartition_source_topics": array(_TOPIC_INFO),
                                "copartition_groups": array(_COPARTITION_GROUP),
                            }
                        )
                    ),
                }
            ),
        ),
        RecordType(
            24,
            "streams_group_target_assignment_resolved_topic_ids",
            _GROUP,
            Struct(
                {
                    "assignment_epoch": int32,
                    "resolved_topic_ids_by_subtopology": array(
                        Struct({"subtopology_id": string, "topic_ids": array(uuid)})
                    ),
                }
            ),
        ),
    )
}
