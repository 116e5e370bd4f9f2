"""The groups as `/groups.json` tells them: members and what they own, committed offsets and how far these lag behind.

    /groups.json                everything
    /groups.json?view=summary   numbers only; at most a second old, for it is asked for often and by many
    /groups.json?group=ID       one group

With many groups this is a lot of work for one event loop: others get their turn in between.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from kohort.broker.broker import Broker
from kohort.broker.http.health import problems
from kohort.broker.http.rebalances import RecentRebalances
from kohort.group.group_metadata import GroupMetadata
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import GroupId
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.consumer_protocol import TopicPartitions, decode_assignment
from kohort.records.primitives import Malformed

_SLICE_S = 0.002
"""How long to work before somebody else may."""
_FRESH_S = 1.0

Told = dict[str, Any]


class GroupsView:
    """Looks at the groups of a broker."""

    def __init__(self, broker: Broker, rebalances: RecentRebalances) -> None:
        self._broker = broker
        self._rebalances = rebalances
        self._summary: asyncio.Task[bytes] | None = None
        self._summary_until = 0.0

    async def full(self) -> bytes:
        """Every group with everything."""
        return await self._document(self.details)

    async def summary(self) -> bytes:
        """Every group in numbers. All who ask within a second get the same."""
        now = perf_counter()
        if self._summary is None or now > self._summary_until:
            self._summary = asyncio.create_task(self._document(self._in_numbers))
            self._summary_until = now + _FRESH_S
        return await asyncio.shield(self._summary)

    async def one(self, group_id: str) -> bytes | None:
        """One group with everything; None if there is no such group."""
        group = self._broker.groups.manager.get_group(GroupId(group_id))
        return None if group is None else _json({**self._head(), "groups": [self.details(group)]})

    async def close(self) -> None:
        if self._summary is not None:
            self._summary.cancel()
            await asyncio.wait([self._summary])

    def details(self, group: GroupMetadata) -> Told:
        """Everything about one group. As in DescribeGroups, only a Stable one has owners."""
        is_assigned = group.is_(GroupState.STABLE) and group.is_consumer_group
        members, owners = [], {}
        for member in group.members.values():
            owned = _owned(member) if is_assigned else None
            members.append(_member(member, owned))
            for topic in owned or ():
                for number in topic.partitions:
                    owners[TopicPartition(topic.topic, number)] = str(member.member_id)
        partitions = sorted(dict.fromkeys((*group.offsets, *owners)))
        return {
            **self._in_numbers(group),
            "leader": group.leader_id,
            "coordinator_partition": group.partition,
            "state_timestamp": group.current_state_timestamp,
            "members": members,
            "partitions": [self._partition(group, partition, owners) for partition in partitions],
        }

    def _in_numbers(self, group: GroupMetadata) -> Told:
        lags = [
            lag
            for partition, committed in group.offsets.items()
            if (lag := self._lag(partition, committed.value.offset)) is not None
        ]
        return {
            "id": group.group_id,
            "state": group.state.value,
            "generation": group.generation_id,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol_name,
            "member_count": len(group.members),
            "partition_count": len(group.offsets),
            "lag": sum(lags) if lags else None,
            "rebalances_last_hour": self._rebalances.count(group.group_id),
        }

    def _partition(self, group: GroupMetadata, partition: TopicPartition, owners: Mapping[TopicPartition, str]) -> Told:
        committed = group.offsets.get(partition)
        return {
            "topic": partition.topic,
            "partition": partition.partition,
            "committed_offset": None if committed is None else committed.offset,
            "log_end_offset": self._log_end(partition),
            "lag": None if committed is None else self._lag(partition, committed.offset),
            "commit_timestamp": None if committed is None else committed.commit_timestamp,
            "metadata": None if committed is None else committed.metadata,
            "owner": owners.get(partition),
        }

    def _log_end(self, partition: TopicPartition) -> int | None:
        """Where a reader comes to the end: as Kafka's own tool, up to what may be read."""
        log = self._broker.topics.log(*partition)
        return None if log is None else log.high_watermark

    def _lag(self, partition: TopicPartition, committed: int) -> int | None:
        """None if the partition is not there. An offset beyond the end lags behind nothing."""
        end = self._log_end(partition)
        return None if end is None else max(end - committed, 0)

    def _head(self) -> Told:
        broker = self._broker
        return {
            "time": broker.clock.now_ms(),
            "cluster_id": broker.config.cluster_id,
            "broker_id": broker.config.broker_id,
            "address": f"{broker.host}:{broker.port}",
            "problems": problems(broker),
        }

    async def _document(self, tell: Callable[[GroupMetadata], Told]) -> bytes:
        """All groups. Each is told as it is at one moment, not all as they are at the same."""
        told = []
        until = perf_counter() + _SLICE_S
        for group in self._broker.groups.manager.current_groups:
            if not group.is_(GroupState.DEAD):
                told.append(_json(tell(group)))
            if perf_counter() > until:
                await asyncio.sleep(0)
                until = perf_counter() + _SLICE_S
        return _json(self._head())[:-1] + b',"groups":[' + b",".join(told) + b"]}"


def _member(member: MemberMetadata, owned: tuple[TopicPartitions, ...] | None) -> Told:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "instance_id": member.group_instance_id,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "owned": None if owned is None else [{"topic": one.topic, "partitions": one.partitions} for one in owned],
    }


def _owned(member: MemberMetadata) -> tuple[TopicPartitions, ...] | None:
    """None if what the leader sent for it is no assignment."""
    if not member.assignment:
        return ()
    try:
        return decode_assignment(member.assignment).partitions
    except Malformed:
        return None


def _json(value: Told) -> bytes:
    """Pure ASCII: whatever a client put into a name, it stays within its quotes."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")
