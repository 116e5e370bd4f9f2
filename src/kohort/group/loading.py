"""From the log into memory: what a replay has found becomes groups."""

from collections.abc import Callable, Iterable, Iterator

from kohort.clock import Clock
from kohort.group.group_metadata import GroupMetadata
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import GroupId, MemberId
from kohort.log.names import TopicPartition
from kohort.records.groups import Group, Member
from kohort.records.offsets_topic import NO_REBALANCE_TIMEOUT, NO_STATE_TIMESTAMP
from kohort.records.state import Committed, GroupTopicPartition, State

_CLASSIC = "classic"


def loaded_groups(
    state: State, clock: Clock, partition_for: Callable[[GroupId], int], partition: int
) -> Iterator[GroupMetadata]:
    """The groups of one partition. Those that belong elsewhere are passed over, should somebody have moved the log.

    A group of a newer kind than ours lives on by its offsets. One that neither has a record nor offsets is none.
    """
    committed = _by_group(state.offsets.items())
    pending: dict[GroupId, dict[int, dict[TopicPartition, Committed]]] = {}
    for producer_id, offsets in state.pending.items():
        for group_id, of_group in _by_group(offsets.items()).items():
            pending.setdefault(group_id, {})[producer_id] = of_group
    for name, loaded in state.groups.items():
        group_id = GroupId(name)
        has_record = loaded.type == _CLASSIC and (loaded.generation > 0 or bool(loaded.protocol_type))
        if partition_for(group_id) != partition or not (has_record or group_id in committed or group_id in pending):
            continue
        group = GroupMetadata(group_id, clock, partition=partition)
        if has_record:
            _restore(group, loaded)
        group.offsets.initialize(committed.get(group_id, {}), pending.get(group_id, {}))
        yield group


def _by_group(
    offsets: Iterable[tuple[GroupTopicPartition, Committed]],
) -> dict[GroupId, dict[TopicPartition, Committed]]:
    groups: dict[GroupId, dict[TopicPartition, Committed]] = {}
    for (group, topic, partition), committed in offsets:
        groups.setdefault(GroupId(group), {})[TopicPartition(topic, partition)] = committed
    return groups


def _restore(group: GroupMetadata, loaded: Group) -> None:
    has_timestamp = loaded.state_timestamp != NO_STATE_TIMESTAMP
    group.restore(
        generation_id=loaded.generation,
        protocol_type=loaded.protocol_type or None,
        protocol_name=loaded.protocol,
        leader_id=loaded.leader,
        state_timestamp=loaded.state_timestamp if has_timestamp else None,
        members=[_member(loaded, member) for member in loaded.members],
    )


def _member(group: Group, member: Member) -> MemberMetadata:
    """Before version 1 of the record a member's session timeout was its rebalance timeout too."""
    session_timeout = member.session_timeout or 0
    rebalance_timeout = member.rebalance_timeout
    if rebalance_timeout is None or rebalance_timeout == NO_REBALANCE_TIMEOUT:
        rebalance_timeout = session_timeout
    restored = MemberMetadata(
        MemberId(member.member_id),
        member.instance_id,
        member.client_id,
        member.client_host,
        rebalance_timeout,
        session_timeout,
        group.protocol_type,
        ((group.protocol or "", member.subscription or b""),),
    )
    restored.assignment = member.assignment or b""
    return restored
