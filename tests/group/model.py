"""What must be true of a group coordinator at every moment, read from Kafka's rules and not from kohort's code.

Three witnesses are compared. The log is folded record by record (`model_log.py`). The clients remember what they asked
and what they were told (`model_clients.py`). The coordinator is only looked at. Each rule is a function that asserts
it; `ALWAYS` lists those that hold after every step, whatever happens to a coordinator.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from kohort.errors import ErrorCode
from kohort.group.requests import PartitionData
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.consumer_protocol import decode_topics
from kohort.records.offsets_topic import GroupMetadataValue
from tests.group.model_clients import Book, Request
from tests.group.model_log import (
    COMMIT_TIMEOUT_MS,
    Entry,
    Folded,
    OffsetId,
    Puts,
    Write,
    fold,
    generation_has_not_fallen,
)

# What the rules look at


class World(Protocol):
    """A coordinator, its log and its clients."""

    c: Any
    """The coordinator, in its `Context`."""
    book: Book
    led: Mapping[int, str]
    """Partitions that it was told to lead: "owned" or "loading"."""
    group_ids: Sequence[str]

    def log(self, partition: int) -> Sequence[Entry]:
        """All that stands in the log."""

    def writes(self, partition: int) -> Sequence[Write]:
        """What the coordinator has appended since it loaded the partition."""

    def held(self, partition: int) -> Sequence[Write]:
        """Appends whose outcome is not known yet."""

    def restarted(self) -> Any:
        """Another coordinator, in its `Context`, that has loaded what this one owns."""


def groups_of(c: Any, partition: int | None = None) -> list[Any]:
    return [group for group in c.manager.current_groups if partition in (None, group.partition)]


def owned(world: World) -> list[int]:
    return [partition for partition, how in world.led.items() if how == "owned"]


def not_believed(world: World, partition: int) -> set[int]:
    """Positions in the log that the coordinator knows nothing of: it is not told yet, or was told an error."""
    writes = [write for write in world.writes(partition) if write.error is not ErrorCode.NONE and not write.is_gone]
    return {entry.position for write in writes for entry in write.entries}


def believed(world: World, partition: int) -> Folded:
    """What the coordinator has reason to believe of a partition."""
    return fold(world.log(partition), not_believed(world, partition))


def on_the_way(world: World, partition: int) -> set[OffsetId]:
    """Commits and tombstones whose outcome is not known yet."""
    unsettled = [entry for write in world.writes(partition) if write.error is None for entry in write.entries]
    return {entry.offset_id for entry in unsettled if entry.offset_id is not None}


# Requests


def requests_are_answered_or_wait_for_a_reason(world: World) -> None:
    for request in world.book.waiting:
        assert why_it_waits(world, request), f"not answered, and nobody knows why: {request}"


def why_it_waits(world: World, request: Request) -> str:
    """In words; empty if there is no reason."""
    now_ms = world.c.clock.monotonic_ms()
    partitions = {world.c.partition(group) for group in request.groups}
    held = [write for partition in partitions for write in world.held(partition)]
    young = [write for write in held if now_ms - write.made_ms <= COMMIT_TIMEOUT_MS]
    if request.kind in ("join", "sync"):
        group = world.c.find(request.groups[0])
        is_written = any(write.record_of(request.groups[0]) is not None for write in young)
        return "" if group is None else why_its_member_waits(group, request.kind, is_written)
    is_written = any(write.made_ms == request.made_ms for write in young)
    return "its records are being written" if is_written else ""


def why_its_member_waits(group: Any, kind: str, is_written: bool) -> str:
    match kind, group.state:
        case "join", GroupState.PREPARING_REBALANCE:
            return "the others have to join too"
        case "join", GroupState.STABLE if is_written:
            return "the new id of a static member is being written"
        case "sync", GroupState.COMPLETING_REBALANCE if group.members[group.leader_id].awaiting_sync is None:
            return "the leader has not brought the assignment yet"
        case "sync", GroupState.COMPLETING_REBALANCE if is_written:
            return "the assignment is being written"
    return ""


def as_many_members_wait_as_requests(world: World) -> None:
    asked = Counter((request.kind, request.groups[0]) for request in world.book.waiting)
    for group in groups_of(world.c):
        members = group.members.values()
        assert asked["join", group.group_id] == sum(member.awaiting_join is not None for member in members)
        assert asked["sync", group.group_id] == sum(member.awaiting_sync is not None for member in members)


# Groups


def generations_do_not_fall_in_the_log(world: World) -> None:
    for partition in world.led:
        generations: dict[str, int] = {}
        for entry in world.log(partition):
            if entry.group is not None and entry.value is None:
                generations.pop(entry.group, None)
            elif entry.group is not None:
                generation = entry.value.generation
                generation_has_not_fallen(entry.group, generations.get(entry.group, 0), generation)
                generations[entry.group] = generation


def members_have_joined(world: World) -> None:
    """Whoever is a member was told so, or waits to hear it, or is written in the group's record."""
    for group in groups_of(world.c):
        view = world.book.views[group.group_id]
        records = [write.record_of(group.group_id) for write in world.writes(group.partition)]
        written = {member.member_id for record in records if record is not None for member in record.members}
        for member in group.members.values():
            is_known = member.member_id in view.joined.keys() | view.known_from_log | written
            assert is_known or member.awaiting_join is not None, f"{member.member_id} never joined {group.group_id!r}"
        strangers = group.pending_members.keys() - world.book.handed_out.get(group.group_id, set())
        assert not strangers, f"nobody was given the ids {strangers} of {group.group_id!r}"


def states_fit_members(world: World) -> None:
    """Empty: nobody. Stable, CompletingRebalance: somebody. PreparingRebalance: either, and it will end."""
    for group in groups_of(world.c):
        match group.state:
            case GroupState.EMPTY:
                assert not group.members, f"{group.group_id!r} is Empty and has members"
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                assert group.members, f"{group.group_id!r} is {group.state} without members"
            case GroupState.PREPARING_REBALANCE:
                delayed = group.delayed_join
                will_end = delayed is not None and not delayed.timer.is_idle
                assert will_end, f"{group.group_id!r} rebalances for ever"
            case GroupState.DEAD:
                raise AssertionError(f"{group.group_id!r} is Dead and still here")


def indexes_agree(world: World) -> None:
    """What is kept twice is the same: static members, the leader, who waits, who has not synced."""
    for group in groups_of(world.c):
        members = group.members
        statics = {
            member.group_instance_id: name for name, member in members.items() if member.group_instance_id is not None
        }
        assert group.static_members == statics, f"{group.group_id!r}: {group.static_members}, members {statics}"
        assert all(member.member_id == name for name, member in members.items())
        assert group.leader_id in members if members else group.leader_id is None, f"leader {group.leader_id!r}"
        assert group.awaiting_join == sum(member.awaiting_join is not None for member in members.values())
        assert set(group.pending_sync_members) <= members.keys()
        assert not group.pending_members.keys() & members.keys()
        if members:
            chosen = group.select_protocol()
            assert all(chosen in member.protocol_names for member in members.values()), "not everybody's protocol"
        for producer_id in group.offsets.producers:
            assert world.c.manager.is_group_open_for_producer(producer_id, group.group_id)


def stable_groups_know_their_topics(world: World) -> None:
    """All that their members are subscribed to; of what is being written nobody knows yet whether it counts."""
    for group in groups_of(world.c):
        is_settled = group.state is GroupState.STABLE and not world.held(group.partition)
        if is_settled and group.protocol_type == "consumer":
            assert group.subscribed_topics == subscribed(group), f"{group.group_id!r}: {group.subscribed_topics}"


def silent_members_will_be_missed(world: World) -> None:
    """A session runs for every member, unless the coordinator owes it an answer."""
    for group in groups_of(world.c):
        for member in group.members.values():
            is_timed = member.session_timer is not None and not member.session_timer.is_idle
            is_owed = member.awaiting_join is not None or member.awaiting_sync is not None
            assert is_timed or is_owed, f"{member.member_id} of {group.group_id!r} may be silent for ever"


def leadership_is_as_told(world: World) -> None:
    for group_id in world.group_ids:
        expected = {"owned": ErrorCode.NONE, "loading": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        error = expected.get(world.led.get(world.c.partition(group_id), ""), ErrorCode.NOT_COORDINATOR)
        assert world.c.describe(group_id)[0] is error, f"{group_id!r} should be {error.name}"


# Offsets


def plain(puts: Puts) -> Puts:
    """In whichever version they were written."""
    return {offset_id: (position, value._replace(version=0)) for offset_id, (position, value) in puts.items()}


def committed_in(c: Any, partition: int) -> Puts:
    return {
        (group.group_id, *topic_partition): tuple(committed)
        for group in groups_of(c, partition)
        for topic_partition, committed in group.offsets.items()
    }


def pending_in(c: Any, partition: int) -> dict[int, Puts]:
    pending: dict[int, Puts] = {}
    for group in groups_of(c, partition):
        for producer_id in group.offsets.producers:
            for topic_partition, committed in group.offsets.pending(producer_id).items():
                pending.setdefault(producer_id, {})[group.group_id, *topic_partition] = tuple(committed)
    return pending


def confirmed_commits_stand_in_the_log(world: World) -> None:
    log = [entry for partition in range(world.c.config.offsets_topic_num_partitions) for entry in world.log(partition)]
    standing = {entry.value.offset for entry in log if entry.offset_id is not None and entry.value is not None}
    assert world.book.confirmed <= standing, f"confirmed and lost: {world.book.confirmed - standing}"


def offsets_are_those_of_the_log(world: World) -> None:
    """Of whatever is settled, the highest position counts; nothing is seen before, nothing is kept after its end."""
    for partition in owned(world):
        expected, found = believed(world, partition), committed_in(world.c, partition)
        assert plain(found) == plain(expected.offsets)
        pending = {producer: plain(puts) for producer, puts in expected.pending.items()}
        assert {producer: plain(puts) for producer, puts in pending_in(world.c, partition).items()} == pending


def clients_read_the_offsets_of_the_log(world: World) -> None:
    for partition in owned(world):
        expected = believed(world, partition).offsets
        for group, asked in asked_for(world, partition).items():
            _, answer = world.c.fetch(*asked, group=group)
            for topic_partition in asked:
                _, value = expected.get((group, *topic_partition), (-1, None))
                data = PartitionData(value.offset, value.leader_epoch, value.metadata) if value else PartitionData()
                assert answer[topic_partition] == data, f"{group!r} {topic_partition}"


def stable_offsets_wait_for_what_is_open(world: World) -> None:
    """Who asks for stable offsets is told to wait for open transactions and for commits that are being written."""
    for partition in owned(world):
        unstable = {offset_id for puts in believed(world, partition).pending.values() for offset_id in puts}
        for write in world.writes(partition):
            unstable |= {entry.offset_id for entry in write.entries if write.error is None and entry.value is not None}
        for group, asked in asked_for(world, partition).items():
            _, answer = world.c.fetch(*asked, group=group, require_stable=True)
            for topic_partition in asked:
                is_unstable = answer[topic_partition].error is ErrorCode.UNSTABLE_OFFSET_COMMIT
                assert is_unstable == ((group, *topic_partition) in unstable), f"{group!r} {topic_partition}"


def nobody_reads_what_was_not_committed(world: World) -> None:
    """Neither of a transaction that was aborted, nor of one that is open."""
    for partition in owned(world):
        uncommitted = believed(world, partition).uncommitted
        for group in asked_for(world, partition):
            read = {data.offset for data in world.c.fetch_all(group)[1].values()}
            assert not read & uncommitted, f"{group!r} reads {read & uncommitted}"


def asked_for(world: World, partition: int) -> dict[str, list[TopicPartition]]:
    """All that was ever committed in a partition of the offsets topic, by group."""
    found: dict[str, list[TopicPartition]] = {}
    for offset_id in {entry.offset_id for entry in world.log(partition)} - {None}:
        found.setdefault(offset_id[0], []).append(TopicPartition(*offset_id[1:]))
    return found


def expired(world: World, retention_ms: int) -> set[OffsetId]:
    """What may expire now (KIP-211, KAFKA-13636)."""
    now_ms, found = world.c.clock.now_ms(), set()
    for group in groups_of(world.c):
        spared: Collection[str] = ()
        since: int | None = None
        if group.protocol_type is not None:
            if group.state is GroupState.EMPTY:
                since = world.book.views[group.group_id].empty_since
            elif group.state is GroupState.STABLE and group.protocol_type == "consumer":
                spared = subscribed(group)
            else:
                continue
        facts = believed(world, group.partition)
        for offset_id, (_, value) in facts.offsets.items():
            if value.expire_timestamp != -1:
                is_over = now_ms >= value.expire_timestamp
            else:
                is_over = now_ms - (value.commit_timestamp if since is None else since) >= retention_ms
            if offset_id[0] == group.group_id and is_over and offset_id[1] not in spared:
                found.add(offset_id)
        for puts in facts.pending.values():
            found -= puts.keys()
    return found


def would_be_left(world: World, group: str, without: Collection[OffsetId]) -> bool:
    """Whether the group has any offset, committed or on its way, besides these."""
    partition = world.c.partition(group)
    there = believed(world, partition).offset_ids() | on_the_way(world, partition)
    return any(offset_id[0] == group for offset_id in there - set(without))


def subscribed(group: Any) -> set[str]:
    """The topics of all members."""
    return {topic for member in group.members.values() for topic in decode_topics(member.metadata(group.protocol_name))}


# The log and the memory


def as_written(group: Any) -> tuple[Any, ...]:
    """A group in memory, told as its record would tell it."""
    members = {
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.metadata(group.protocol_name),
            member.assignment,
        )
        for member in group.members.values()
    }
    since = group.current_state_timestamp if group.state is GroupState.EMPTY else None
    return group.generation_id, group.protocol_type or "", group.protocol_name, group.leader_id, since, members


def as_read(record: GroupMetadataValue) -> tuple[Any, ...]:
    members = {
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout,
            member.rebalance_timeout,
            member.subscription,
            member.assignment,
        )
        for member in record.members
    }
    since = None if members else record.current_state_timestamp
    return record.generation, record.protocol_type, record.protocol, record.leader, since, members


def groups_are_those_of_the_log(world: World) -> None:
    """Between rebalances memory and log tell the same; during one the log tells of an earlier time.

    But a group whose Empty generation could not be written is an older one in the log: there its members seem to be
    alive, until their sessions end after a load.
    """
    for partition in owned(world):
        if world.held(partition):
            continue
        writes, records = world.writes(partition), believed(world, partition).groups
        groups = {group.group_id: group for group in groups_of(world.c, partition)}
        assert records.keys() <= groups.keys(), f"in the log only: {records.keys() - groups.keys()}"
        for name, group in groups.items():
            record = records.get(name)
            last = next((write for write in reversed(writes) if write.record_of(name) is not None), None)
            is_behind = group.state is GroupState.EMPTY and last is not None and last.error is not ErrorCode.NONE
            if is_behind or group.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE):
                assert record is None or record.generation <= group.generation_id, f"{name!r}: the log is ahead"
            elif record is None:
                assert group.generation_id == 0, f"{name!r}, generation {group.generation_id} is not in the log"
            else:
                assert as_written(group) == as_read(record), f"{name!r} in memory and in the log"


def a_restart_finds_what_the_log_says(world: World) -> None:
    """A coordinator that loads the log knows exactly what a serial fold finds."""
    successor = world.restarted()
    for partition in owned(world):
        expected = fold(world.log(partition))
        assert plain(committed_in(successor, partition)) == plain(expected.offsets)
        pending = {producer: plain(puts) for producer, puts in expected.pending.items()}
        assert {producer: plain(puts) for producer, puts in pending_in(successor, partition).items()} == pending
        with_offsets = {offset_id[0] for offset_id in expected.offset_ids()}
        groups = {group.group_id: group for group in groups_of(successor, partition)}
        assert groups.keys() == with_offsets | expected.groups.keys()
        for name, group in groups.items():
            record = expected.groups.get(name)
            state = GroupState.STABLE if record and record.members else GroupState.EMPTY
            if record is not None and len(record.members) > successor.config.group_max_size:
                state = GroupState.PREPARING_REBALANCE  # static members that stayed away were not counted
            assert group.state is state, f"{name!r} is {group.state}, not {state}"
            assert record is None or as_written(group) == as_read(record), f"{name!r} after a restart"


ALWAYS: tuple[Callable[[World], None], ...] = (
    requests_are_answered_or_wait_for_a_reason,
    as_many_members_wait_as_requests,
    leadership_is_as_told,
    states_fit_members,
    indexes_agree,
    members_have_joined,
    silent_members_will_be_missed,
    stable_groups_know_their_topics,
    confirmed_commits_stand_in_the_log,
    offsets_are_those_of_the_log,
    clients_read_the_offsets_of_the_log,
    stable_offsets_wait_for_what_is_open,
    nobody_reads_what_was_not_committed,
    generations_do_not_fall_in_the_log,
    groups_are_those_of_the_log,
    a_restart_finds_what_the_log_says,
)
