"""The tables `group_generations`, `members` and `assignments`: what the records of classic groups say, row by row.

Such records are few beside the commits, so the scalar codec reads them. One that cannot be read has no row here;
`records` tells of it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from kohort.records.columns import Columns
from kohort.records.offsets_topic import GroupKey, GroupMetadataValue, decode_value
from kohort.records.rows import assigned_partitions, subscribed_topics
from kohort.spark.arrays import time_or_none

Row = dict[str, Any]


def rows_of(table: str, columns: Columns, row: int, partition: int) -> Iterator[Row]:
    """The rows of one of the tables for one record of a group."""
    key = columns.keys.key(int(columns.key_ids[row]))
    value = decode_value(key, columns.value(row))
    if not isinstance(key, GroupKey):
        return
    place = {
        "partition": partition,
        "offset": int(columns.offsets[row]),
        "timestamp": time_or_none(int(columns.timestamps[row])),
        "group": key.group,
    }
    if table == "group_generations":
        size = int(columns.record_sizes[row])
        if value is None:
            yield {**place, "tombstone": True, "bytes": size}
        elif isinstance(value, GroupMetadataValue):
            yield {**place, **_generation(value), "tombstone": False, "bytes": size}
    elif isinstance(value, GroupMetadataValue):
        for member in _MEMBER_TABLES[table](value):
            yield {**place, "generation": value.generation, **member}


def _generation(value: GroupMetadataValue) -> Row:
    return {
        "protocol_type": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "state_timestamp": time_or_none(value.current_state_timestamp),
        "member_count": len(value.members),
    }


def _members(value: GroupMetadataValue) -> Iterator[Row]:
    for member in value.members:
        yield {
            "member_id": member.member_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "instance_id": member.group_instance_id,
            "session_timeout": member.session_timeout,
            "rebalance_timeout": member.rebalance_timeout,
            "subscription": subscribed_topics(value.protocol_type, member.subscription),
            "is_leader": member.member_id == value.leader,
        }


def _assignments(value: GroupMetadataValue) -> Iterator[Row]:
    for member in value.members:
        for topic, partition in assigned_partitions(value.protocol_type, member.assignment) or ():
            yield {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "topic": topic,
                "topic_partition": partition,
            }


_MEMBER_TABLES: dict[str, Callable[[GroupMetadataValue], Iterator[Row]]] = {
    "members": _members,
    "assignments": _assignments,
}

GROUP_TABLES = ("group_generations", *_MEMBER_TABLES)
