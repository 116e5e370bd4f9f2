"""What the tables must say of a log, from the scalar codec and from what `kohort state` replays."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kohort.log.source import replay_partition
from kohort.log.stored import find_partitions
from kohort.records.batch import RecordBatch, read_batches
from kohort.records.control import ControlType, decode_control_type
from kohort.records.finish import finish
from kohort.records.groups import Group, Member
from kohort.records.replay import Rule
from kohort.records.rows import assigned_partitions, subscribed_topics
from kohort.records.state import Committed, GroupTopicPartition, State
from kohort.spark.inputs import OFFSETS_TOPIC

Row = dict[str, Any]


def pass_over(*_: object) -> None:
    """Damage and progress are not what is looked at."""


def instant(milliseconds: int | None) -> datetime | None:
    """A time as a table holds it."""
    if milliseconds is None or milliseconds == -1:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def state_of(path: Path, rule: Rule = Rule.POSITION, as_of: int | None = None) -> State:
    """The state of `kohort state`."""
    partitions = find_partitions(str(path), OFFSETS_TOPIC)
    return finish(replay_partition(partition, rule, pass_over, pass_over, as_of) for partition in partitions)


def tables_of(path: Path, rule: Rule = Rule.POSITION, as_of: int | None = None) -> dict[str, list[Row]]:
    """The rows of the tables of a replay, each table in the order of its keys."""
    found: dict[str, list[Row]] = {"current_groups": [], "current_offsets": [], "pending_offsets": []}
    for stored in find_partitions(str(path), OFFSETS_TOPIC):
        piece = replay_partition(stored, rule, pass_over, pass_over, as_of)
        state = finish([piece])
        times = {put.position: put.timestamp for _, _, put in piece.pending()}
        found["current_groups"] += [_group(stored.partition, name, group) for name, group in state.groups.items()]
        found["current_offsets"] += [_offset(stored.partition, *item) for item in state.offsets.items()]
        found["pending_offsets"] += [
            _offset(stored.partition, *item)
            | {"producer_id": producer_id, "timestamp": instant(times[item[1].position])}
            for producer_id, offsets in state.pending.items()
            for item in offsets.items()
        ]
    return {table: in_order(rows) for table, rows in found.items()}


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows in an order of their own, for Spark promises none."""
    return sorted(rows, key=lambda row: (row["partition"], row["group"], str(row.get("topic")), row.get("offset", 0)))


def _offset(partition: int, key: GroupTopicPartition, committed: Committed) -> Row:
    value = committed.value
    return {
        "group": key.group,
        "topic": key.topic,
        "topic_partition": key.partition,
        "committed_offset": value.offset,
        "leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp": instant(value.commit_timestamp),
        "expire_timestamp": instant(value.expire_timestamp),
        "partition": partition,
        "offset": committed.position,
    }


def _group(partition: int, name: str, group: Group) -> Row:
    return {
        "group": name,
        "type": group.type,
        "state": group.state,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "partition": partition,
        "member_count": len(group.members),
        "members": [_member(group, member) for member in group.members],
        "since": instant(group.state_timestamp),
    }


def _member(group: Group, member: Member) -> Row:
    if group.type == "classic":
        assert member.subscription is not None
        assert member.assignment is not None
        topics = subscribed_topics(group.protocol_type, member.subscription)
        assigned = assigned_partitions(group.protocol_type, member.assignment)
    else:
        topics = None if member.topics is None else list(member.topics)
        assigned = None if member.topic_ids is None else list(member.topic_ids)
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "instance_id": member.instance_id,
        "rebalance_timeout": member.rebalance_timeout,
        "session_timeout": member.session_timeout,
        "subscription": topics,
        "assignment": None if assigned is None else [{"topic": topic, "partition": n} for topic, n in assigned],
    }


def fates_of(batches: Iterable[RecordBatch]) -> dict[int, tuple[str, int | None, int | None]]:
    """By offset: the fate of each record outside of control batches, its marker's offset and time."""
    fates: dict[int, tuple[str, int | None, int | None]] = {}
    waiting: dict[int, list[int]] = {}
    for batch in batches:
        producer_id = batch.header.producer_id
        if batch.header.is_control:
            kind = decode_control_type(batch.records[0].key) if batch.records else None
            if kind in list(ControlType):
                fate = "committed" if kind == ControlType.COMMIT else "aborted"
                for offset in waiting.pop(producer_id, []):
                    fates[offset] = (fate, batch.records[0].offset, batch.records[0].timestamp)
            continue
        for record in batch.records:
            fates[record.offset] = ("open" if batch.header.is_transactional else "plain", None, None)
            if batch.header.is_transactional:
                waiting.setdefault(producer_id, []).append(record.offset)
    return fates


def batches_of(paths: Iterable[Path]) -> list[RecordBatch]:
    return [batch for path in paths for batch in read_batches(path.read_bytes(), on_damage=pass_over)]
