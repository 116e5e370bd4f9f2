"""Members ask for their assignment; it is the leader who brings it."""

from collections.abc import Mapping

from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.group.group_metadata import GroupMetadata
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import GroupId, JoinGroupResult, MemberId, SyncGroupResult
from kohort.group.states import GroupState
from kohort.records.offsets_topic import GroupKey
from tests.group.context import (
    GROUP,
    INITIAL_DELAY,
    PROTOCOL_SUPERSET,
    PROTOCOLS,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    Answer,
    Context,
)


def two_members(c: Context) -> tuple[JoinGroupResult, JoinGroupResult]:
    """A second member has come to a Stable group and the first has joined again: generation 2, nobody has synced."""
    first = c.stable_group()
    newcomer = c.join()
    leader = c.join(member=first.member_id).result
    follower = newcomer.result
    assert leader.generation_id == follower.generation_id == 2
    assert leader.leader_id == follower.leader_id == leader.member_id
    return leader, follower


def synced(assignment: bytes = b"") -> SyncGroupResult:
    return SyncGroupResult(ErrorCode.NONE, "consumer", "range", assignment)


def refused(error: ErrorCode) -> SyncGroupResult:
    """No protocol, no assignment."""
    return SyncGroupResult(error)


def test_a_member_that_the_leader_forgot_gets_nothing() -> None:
    """GC testSyncGroupEmptyAssignment"""
    c = Context()
    leader = c.dynamic_join()
    assert c.sync(GROUP, 1, leader.member_id, {}).result == synced(b"")
    assert c.heartbeat(GROUP, leader.member_id, 1) is ErrorCode.NONE


def test_a_sync_to_a_group_that_does_not_exist_is_refused() -> None:
    """GC testSyncGroupFromUnknownGroup"""
    assert Context().sync(GROUP, 1, "member").result == refused(ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_sync_of_somebody_who_is_no_member_is_refused() -> None:
    """GC testSyncGroupFromUnknownMember"""
    c = Context()
    joined = c.stable_group()
    assert c.sync(GROUP, joined.generation_id, "blah").result == refused(ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_sync_of_another_generation_is_refused() -> None:
    """GC testSyncGroupFromIllegalGeneration"""
    c = Context()
    joined = c.dynamic_join()
    syncing = c.sync(GROUP, joined.generation_id + 1, joined.member_id, {joined.member_id: b""})
    assert syncing.result == refused(ErrorCode.ILLEGAL_GENERATION)
    assert c.state() == "CompletingRebalance"


def test_a_sync_to_a_dead_group_is_refused() -> None:
    """GC testSyncDeadGroup"""
    c = Context()
    group = c.manager.add_group(c.manager.new_group(GroupId("deadGroup")))
    group.transition_to(GroupState.DEAD)
    assert c.sync("deadGroup", 1, "member").result == refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_follower_that_comes_after_the_leader_is_answered_at_once() -> None:
    """GC testSyncGroupFollowerAfterLeader"""
    c = Context()
    leader, follower = two_members(c)
    assignment = {leader.member_id: b"\0", follower.member_id: b"\1"}
    assert c.sync(GROUP, 2, leader.member_id, assignment).result == synced(b"\0")
    assert c.state() == "Stable"
    assert c.sync(GROUP, 2, follower.member_id).result == synced(b"\1")


def test_a_follower_that_comes_before_the_leader_waits_for_it() -> None:
    """GC testSyncGroupLeaderAfterFollower"""
    c = Context()
    leader, follower = two_members(c)
    syncing = c.sync(GROUP, 2, follower.member_id)
    assert not syncing.is_done
    assignment = {leader.member_id: b"\0", follower.member_id: b"\1"}
    assert c.sync(GROUP, 2, leader.member_id, assignment).result == synced(b"\0")
    assert syncing.result == synced(b"\1")
    assert c.state() == "Stable"


def test_a_leader_that_never_syncs_is_replaced_in_another_rebalance() -> None:
    """GC testLeaderFailureInSyncGroup"""
    c = Context()
    _, follower = two_members(c)
    syncing = c.sync(GROUP, 2, follower.member_id)
    assert not syncing.is_done
    c.sleep(SESSION_TIMEOUT + 100)
    assert syncing.result == refused(ErrorCode.REBALANCE_IN_PROGRESS)
    assert list(c.group().members) == [follower.member_id]
    assert c.state() == "PreparingRebalance"


def sync_both(protocol_type: str | None, protocol_name: str | None) -> list[SyncGroupResult]:
    """What a leader and a follower are answered who name this protocol."""
    c = Context()
    leader = c.join(instance="leader", protocols=PROTOCOL_SUPERSET)
    follower = c.join(instance="follower", protocols=PROTOCOL_SUPERSET)
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    asked = {"protocol_type": protocol_type, "protocol_name": protocol_name}
    leader_id, follower_id = leader.result.member_id, follower.result.member_id
    first = c.sync(GROUP, 1, leader_id, {leader_id: b""}, **asked)
    return [first.result, c.sync(GROUP, 1, follower_id, **asked).result]


def test_a_sync_with_another_protocol_type_is_refused() -> None:
    """GC testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent"""
    assert sync_both("whatever", None) == [refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)] * 2


def test_a_sync_with_another_protocol_name_is_refused() -> None:
    """GC testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent"""
    assert sync_both(None, "whatever") == [refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)] * 2


def test_a_sync_need_not_name_the_protocol_and_is_told_it() -> None:
    """GC testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided"""
    assert sync_both(None, None) == [synced()] * 2


def test_a_sync_that_names_the_right_protocol_is_answered() -> None:
    """GC testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent"""
    assert sync_both("consumer", "range") == [synced()] * 2


# Answers that wait in the book-keeping


def group_of_one(joining: Answer[JoinGroupResult] | None = None) -> tuple[GroupMetadata, MemberMetadata]:
    member = MemberMetadata(
        MemberId("member"),
        None,
        "client",
        "host",
        REBALANCE_TIMEOUT,
        SESSION_TIMEOUT,
        "consumer",
        PROTOCOLS,
    )
    group = GroupMetadata(GroupId(GROUP), VirtualClock())
    group.add(member, joining)
    return group, member


def test_a_waiting_sync_is_answered_once() -> None:
    """GM testInvokeSyncCallback"""
    group, member = group_of_one()
    syncing: Answer[SyncGroupResult] = Answer()
    group.await_sync(member, syncing)
    assert member.is_awaiting_sync
    assert group.invoke_sync_callback(member, synced(b"1")) is True
    assert not member.is_awaiting_sync
    assert group.invoke_sync_callback(member, synced(b"2")) is False
    assert syncing.result == synced(b"1")


def test_a_member_that_waits_for_no_sync_is_not_answered() -> None:
    """GM testNotInvokeSyncCallback"""
    group, member = group_of_one()
    assert group.invoke_sync_callback(member, synced()) is False
    assert not member.is_awaiting_sync


def test_a_waiting_join_is_answered_once() -> None:
    """GM testInvokeJoinCallback"""
    joining: Answer[JoinGroupResult] = Answer()
    group, member = group_of_one(joining)
    assert group.has_all_members_joined
    answer = JoinGroupResult(ErrorCode.NONE, member.member_id)
    group.invoke_join_callback(member, answer)
    assert joining.result == answer
    assert not member.is_awaiting_join
    assert group.awaiting_join == 0
    group.invoke_join_callback(member, answer)
    assert group.awaiting_join == 0


def test_a_member_that_waits_for_no_join_is_not_answered() -> None:
    """GM testNotInvokeJoinCallback"""
    group, member = group_of_one()
    assert not member.is_awaiting_join
    group.invoke_join_callback(member, JoinGroupResult(ErrorCode.NONE, member.member_id))
    assert not member.is_awaiting_join
    assert group.awaiting_join == 0


# What is written


def written_assignments(c: Context) -> list[Mapping[str, bytes]]:
    """Of each record that the group has in the log."""
    values = [value for key, value in c.records() if key == GroupKey(GROUP)]
    return [{member.member_id: member.assignment for member in value.members} for value in values]


def test_an_assignment_is_in_the_log_before_anybody_hears_of_it() -> None:
    c = Context()
    leader, follower = two_members(c)
    c.topic.hold()
    assignment = {leader.member_id: b"\0", follower.member_id: b"\1"}
    answers = [c.sync(GROUP, 2, follower.member_id), c.sync(GROUP, 2, leader.member_id, assignment)]
    assert [answer.is_done for answer in answers] == [False, False]
    assert c.state() == "CompletingRebalance"
    c.topic.release()
    assert [answer.result for answer in answers] == [synced(b"\1"), synced(b"\0")]
    assert written_assignments(c)[-1] == assignment


def test_an_assignment_for_strangers_is_not_kept() -> None:
    c = Context()
    leader = c.dynamic_join()
    c.sync(GROUP, 1, leader.member_id, {leader.member_id: b"mine", "stranger": b"nobody's"})
    assert written_assignments(c) == [{leader.member_id: b"mine"}]


def test_an_assignment_that_could_not_be_written_makes_everybody_join_again() -> None:
    c = Context()
    leader, follower = two_members(c)
    waiting = c.sync(GROUP, 2, follower.member_id)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    led = c.sync(GROUP, 2, leader.member_id, {leader.member_id: b"\0", follower.member_id: b"\1"})
    assert led.result == waiting.result == refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert c.state() == "PreparingRebalance"


def test_a_member_that_syncs_twice_has_its_first_sync_answered_too() -> None:
    """Repaired: a parked join or sync that the same member replaces by a new one is answered REBALANCE_IN_PROGRESS
    (2.6.3: never)
    """
    c = Context()
    leader, follower = two_members(c)
    first, second = c.sync(GROUP, 2, follower.member_id), c.sync(GROUP, 2, follower.member_id)
    assert first.result == refused(ErrorCode.REBALANCE_IN_PROGRESS)
    c.sync(GROUP, 2, leader.member_id, {follower.member_id: b"\1"})
    assert second.result == synced(b"\1")


def test_a_leader_that_syncs_twice_does_not_part_the_log_from_what_members_were_told() -> None:
    """It may have missed the answer to its join, joined again and come to another assignment.

    Repaired: while an assignment is being written a second one of the same generation is not, so that the log holds
    what members were told
    """
    c = Context()
    leader = c.dynamic_join()
    c.topic.hold()
    first = c.sync(GROUP, 1, leader.member_id, {leader.member_id: b"first"})
    second = c.sync(GROUP, 1, leader.member_id, {leader.member_id: b"second"})
    c.topic.release()
    assert first.result == refused(ErrorCode.REBALANCE_IN_PROGRESS)
    assert second.result.error is ErrorCode.NONE
    assert written_assignments(c)[-1] == {leader.member_id: second.result.assignment}
