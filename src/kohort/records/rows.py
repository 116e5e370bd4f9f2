"""A record as a row: what `kohort dump` prints and what the columns of `arrow.py` hold, defined once."""

from typing import Any

from kohort.records.batch import BatchHeader, Record
from kohort.records.consumer_protocol import decode_assignment, decode_subscription
from kohort.records.control import ControlType, decode_control_type, decode_marker
from kohort.records.modern_groups import kafka_uuid
from kohort.records.offsets_topic import (
    CoordinatorKey,
    CoordinatorValue,
    GroupKey,
    GroupMetadataValue,
    Key,
    MemberValue,
    OffsetCommitValue,
    OffsetKey,
    UnknownKey,
    UnknownValue,
    Value,
    decode_key,
    decode_value,
)
from kohort.records.primitives import Malformed

Row = dict[str, Any]

ROW_KEYS = (
    "partition",
    "offset",
    "timestamp",
    "kind",
    "key_version",
    "value_version",
    "tombstone",
    "producer_id",
    "producer_epoch",
    "transactional",
    "control",
    "group",
    "topic",
    "topic_partition",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp",
    "expire_timestamp",
    "topic_id",
    "protocol_type",
    "generation",
    "protocol",
    "leader",
    "state_timestamp",
    "members",
    "control_type",
    "coordinator_epoch",
    "key",
    "value",
    "raw_key",
    "raw_value",
    "reason",
)
"""Every key that a row can have, in the order of the columns."""

_CONTROL_NAMES = {int(ControlType.ABORT): "abort", int(ControlType.COMMIT): "commit"}


def describe(partition: int, header: BatchHeader, record: Record) -> Row:
    """The row of one record of the offsets topic; which keys it has depends on its kind."""
    row: Row = {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "kind": "control",
        "key_version": None,
        "value_version": None,
        "tombstone": False,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }
    if header.is_control:
        return row | _control(record)
    key = decode_key(record.key)
    value = decode_value(key, record.value)
    row["kind"] = key.kind
    row["key_version"] = key.version
    row["value_version"] = value.version if value is not None else None
    row["tombstone"] = record.value is None
    return row | _key_fields(key) | _value_fields(key, value)


def _control(record: Record) -> Row:
    control_type = decode_control_type(record.key)
    marker = decode_marker(record)
    return {
        "control_type": None if control_type is None else _CONTROL_NAMES.get(control_type, str(control_type)),
        "coordinator_epoch": marker.coordinator_epoch if marker else None,
    }


def _key_fields(key: Key) -> Row:
    match key:
        case OffsetKey():
            return {"group": key.group, "topic": key.topic, "topic_partition": key.partition}
        case GroupKey():
            return {"group": key.group}
        case CoordinatorKey():
            return {"group": key.group, "key": key.fields}
        case UnknownKey():
            return {"reason": key.reason, "raw_key": key.raw}


def _value_fields(key: Key, value: Value | None) -> Row:
    match value:
        case OffsetCommitValue():
            return {
                "committed_offset": value.offset,
                "leader_epoch": value.leader_epoch,
                "metadata": value.metadata,
                "commit_timestamp": value.commit_timestamp,
                "expire_timestamp": value.expire_timestamp,
                "topic_id": kafka_uuid(value.topic_id) if value.topic_id else None,
            }
        case GroupMetadataValue():
            return {
                "protocol_type": value.protocol_type,
                "generation": value.generation,
                "protocol": value.protocol,
                "leader": value.leader,
                "state_timestamp": value.current_state_timestamp,
                "members": [member_row(value.protocol_type, member) for member in value.members],
            }
        case CoordinatorValue():
            return {"value": value.fields}
        case UnknownValue():
            # Where the key could not be read either, its reason is the one to give.
            told = {} if isinstance(key, UnknownKey) else {"reason": value.reason}
            return told | {"raw_value": value.raw}
        case None:
            return {}


def member_row(protocol_type: str, member: MemberValue) -> Row:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "instance_id": member.group_instance_id,
        "rebalance_timeout": member.rebalance_timeout,
        "session_timeout": member.session_timeout,
        "subscription": subscribed_topics(protocol_type, member.subscription),
        "assignment": assigned_partitions(protocol_type, member.assignment),
        "subscription_raw": member.subscription,
        "assignment_raw": member.assignment,
    }


def subscribed_topics(protocol_type: str, raw: bytes) -> list[str] | None:
    """The topics in a consumer's subscription; None where only the clients can read it."""
    if protocol_type != "consumer":
        return None
    try:
        return list(decode_subscription(raw).topics)
    except Malformed:
        return None


def assigned_partitions(protocol_type: str, raw: bytes) -> list[tuple[str, int]] | None:
    """The partitions in a consumer's assignment; an empty blob assigns none."""
    if protocol_type != "consumer":
        return None
    if not raw:
        return []
    try:
        assignment = decode_assignment(raw)
    except Malformed:
        return None
    return [(topic.topic, partition) for topic in assignment.partitions for partition in topic.partitions]
