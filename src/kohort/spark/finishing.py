"""The end of a replay: the piece of a whole log as rows of `current_groups`, `current_offsets` or `pending_offsets`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kohort.records.finish import finish
from kohort.records.groups import Group, Member
from kohort.records.piece_bytes import piece_from_bytes
from kohort.records.replay import Piece
from kohort.records.rows import assigned_partitions, subscribed_topics
from kohort.records.state import Committed, GroupTopicPartition, State
from kohort.spark.arrays import time_or_none
from kohort.spark.folding import Folded
from kohort.spark.schema import arrow_schema_of

Row = dict[str, Any]


def finished(table: str, folded: Iterable[Folded]) -> pa.Table:
    """The rows of a table at the end of some logs, one piece each."""
    rows: list[Row] = []
    for log in folded:
        piece = piece_from_bytes(log.piece)
        rows += _TABLES[table](log.partition, piece, finish([piece]))
    return pa.Table.from_pylist(rows, schema=arrow_schema_of(table))


def _groups(partition: int, _: Piece, state: State) -> Iterator[Row]:
    for name, group in state.groups.items():
        yield {
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
            "since": time_or_none(group.state_timestamp),
        }


def _member(group: Group, member: Member) -> Row:
    topics: Sequence[str] | None = member.topics
    assigned: Sequence[tuple[str, int]] | None = member.topic_ids
    if member.subscription is not None and member.assignment is not None:
        topics = subscribed_topics(group.protocol_type, member.subscription)
        assigned = assigned_partitions(group.protocol_type, member.assignment)
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


def _offsets(partition: int, _: Piece, state: State) -> Iterator[Row]:
    for key, committed in state.offsets.items():
        yield _offset(partition, key, committed)


def _pending(partition: int, piece: Piece, state: State) -> Iterator[Row]:
    since = {put.position: put.timestamp for _, _, put in piece.pending()}
    for producer_id, offsets in state.pending.items():
        for key, committed in offsets.items():
            timestamp = time_or_none(since[committed.position])
            yield _offset(partition, key, committed) | {"producer_id": producer_id, "timestamp": timestamp}


def _offset(partition: int, key: GroupTopicPartition, committed: Committed) -> Row:
    value = committed.value
    return {
        "group": key.group,
        "topic": key.topic,
        "topic_partition": key.partition,
        "committed_offset": value.offset,
        "leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp": time_or_none(value.commit_timestamp),
        "expire_timestamp": time_or_none(value.expire_timestamp),
        "partition": partition,
        "offset": committed.position,
    }


_TABLES: dict[str, Callable[[int, Piece, State], Iterator[Row]]] = {
    "current_groups": _groups,
    "current_offsets": _offsets,
    "pending_offsets": _pending,
}
