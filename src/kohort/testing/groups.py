"""Groups as a test looks at them: plain values, taken at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.group.group_metadata import GroupMetadata
from kohort.group.member_metadata import MemberMetadata
from kohort.log.names import TopicPartition
from kohort.records.consumer_protocol import decode_assignment
from kohort.records.primitives import Malformed


@dataclass(frozen=True, slots=True)
class Offset:
    """A committed offset."""

    offset: int
    metadata: str
    leader_epoch: int
    commit_timestamp: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member, and the partitions that it was given last if the group is one of consumers."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Group:
    """A group. Its state is called as DescribeGroups calls it: Empty, PreparingRebalance, …"""

    group_id: str
    state: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    coordinator_partition: int
    members: tuple[Member, ...]
    offsets: Mapping[TopicPartition, Offset]


def looked_at(group: GroupMetadata) -> Group:
    return Group(
        group.group_id,
        str(group.state),
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.partition,
        tuple(_member(member) for member in group.members.values()),
        {
            partition: Offset(
                found.value.offset, found.value.metadata, found.value.leader_epoch, found.value.commit_timestamp
            )
            for partition, found in group.offsets.items()
        },
    )


def _member(member: MemberMetadata) -> Member:
    return Member(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        _partitions(member.assignment),
    )


def _partitions(assignment: bytes) -> frozenset[TopicPartition]:
    """What is no consumer's assignment has no partitions that we could tell of."""
    try:
        given = decode_assignment(assignment).partitions if assignment else ()
    except Malformed:
        return frozenset()
    return frozenset(TopicPartition(topic.topic, number) for topic in given for number in topic.partitions)
