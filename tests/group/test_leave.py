"""LeaveGroup: members go one by one or together, by member id or by instance id."""

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import JoinGroupResult, LeaveGroupResult, LeaveMemberResult, MemberId, SyncGroupResult
from kohort.group.states import GroupState
from kohort.records.offsets_topic import GroupKey, GroupMetadataValue
from tests.group.context import GROUP, INITIAL_DELAY, PROTOCOL_SUPERSET, Context

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID


def left(*members: tuple[str, str | None, ErrorCode]) -> LeaveGroupResult:
    """An answer without an error of its own."""
    each = tuple(LeaveMemberResult(MemberId(member), instance, error) for member, instance, error in members)
    return LeaveGroupResult(NONE, each)


def dead_group(c: Context) -> None:
    c.manager.add_group(c.manager.new_group(GROUP)).transition_to(GroupState.DEAD)


def static_group(c: Context) -> str:
    """A static member that has not synced yet. Returns its id."""
    joined = c.join(instance="leader", protocols=PROTOCOL_SUPERSET)
    c.sleep(INITIAL_DELAY + 1)
    assert joined.result.error is NONE
    return joined.result.member_id


def group_with_pending_member(c: Context) -> str:
    """Two members have joined a rebalance, which waits for an id that was handed out. Returns that id."""
    first = c.stable_group().member_id
    second = c.join()
    c.join(member=first)
    assert c.state() == "CompletingRebalance"
    assert c.sync(GROUP, 2, first, {first: b""}).result.error is NONE
    assert c.state() == "Stable"
    c.join(member=first)
    assert c.state() == "PreparingRebalance"
    pending = c.join(require_known_id=True, session=100).result.member_id
    c.join(member=second.result.member_id)
    assert c.state() == "PreparingRebalance"
    assert set(c.group().pending_members) == {pending}
    return pending


# One member


def test_leaving_a_group_that_is_not_there() -> None:
    """GC testLeaveGroupUnknownGroup"""
    c = Context()
    assert c.leave(GROUP, "memberId") == left(("memberId", None, UNKNOWN))
    assert c.find() is None


def test_leaving_without_having_been_a_member() -> None:
    """GC testLeaveGroupUnknownConsumerExistingGroup"""
    c = Context()
    member = c.dynamic_join().member_id
    assert c.leave(GROUP, "consumerId") == left(("consumerId", None, UNKNOWN))
    assert set(c.group().members) == {member}


def test_leaving_a_dead_group() -> None:
    """GC testSingleLeaveDeadGroup"""
    c = Context()
    dead_group(c)
    assert c.leave(GROUP, "memberId") == LeaveGroupResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_member_leaves() -> None:
    """GC testValidLeaveGroup"""
    c = Context()
    member = c.dynamic_join().member_id
    assert c.leave(GROUP, member) == left((member, None, NONE))
    assert c.group().members == {}
    assert c.group().generation_id == 2
    assert c.state() == "Empty"
    [(key, stored)] = c.records()
    assert key == GroupKey(GROUP)
    assert isinstance(stored, GroupMetadataValue)
    assert (stored.generation, stored.protocol_type, stored.leader, stored.members) == (2, "consumer", None, ())


def test_a_wrong_member_id_with_the_instance_id_of_another_is_fenced() -> None:
    """GC testLeaveGroupWithFencedInstanceId"""
    c = Context()
    member = static_group(c)
    assert c.leave(GROUP, ("some_member", "leader")) == left(("some_member", "leader", FENCED))
    assert set(c.group().members) == {member}


def test_a_static_member_leaves_by_its_instance_id_alone() -> None:
    """GC testLeaveGroupStaticMemberWithUnknownMemberId"""
    c = Context()
    static_group(c)
    assert c.leave(GROUP, ("", "leader")) == left(("", "leader", NONE))
    assert c.group().members == {}
    assert c.group().static_members == {}


def test_a_rebalance_does_not_wait_for_an_id_that_leaves() -> None:
    """GC testPendingMembersLeavesGroup"""
    c = Context()
    pending = group_with_pending_member(c)
    assert c.leave(GROUP, pending) == left((pending, None, NONE))
    assert c.state() == "CompletingRebalance"
    assert len(c.group().members) == 2
    assert c.group().pending_members == {}


def test_an_id_that_leaves_a_stable_group_disturbs_nobody() -> None:
    c = Context()
    member = c.stable_group().member_id
    pending = c.join(require_known_id=True).result.member_id
    assert c.leave(GROUP, pending) == left((pending, None, NONE))
    assert c.group().pending_members == {}
    assert c.state() == "Stable"
    assert c.join(member=pending).result == JoinGroupResult(UNKNOWN, MemberId(pending))
    assert c.heartbeat(GROUP, member, 1) is NONE


def test_a_member_id_is_enough_whatever_unknown_instance_comes_with_it() -> None:
    c = Context()
    member = c.stable_group().member_id
    assert c.leave(GROUP, (member, "unknown-instance")) == left((member, "unknown-instance", NONE))
    assert c.state() == "Empty"


def test_who_leaves_while_its_join_is_parked_gets_an_answer_to_it() -> None:
    c = Context()
    first = c.stable_group().member_id
    second = c.join(instance="second")
    assert not second.is_done
    assert c.leave(GROUP, ("", "second")) == left(("", "second", NONE))
    assert second.result == JoinGroupResult(UNKNOWN, MemberId(""))
    assert c.state() == "PreparingRebalance"
    rejoined = c.join(member=first).result
    assert (rejoined.error, rejoined.generation_id, len(rejoined.members)) == (NONE, 2, 1)


def test_who_leaves_while_its_sync_is_parked_gets_an_answer_to_it() -> None:
    """Repaired: a parked sync of a member that leaves is answered UNKNOWN_MEMBER_ID (2.6.3: never)"""
    c = Context()
    first = c.stable_group().member_id
    second = c.join()
    c.join(member=first)
    follower = second.result.member_id
    sync = c.sync(GROUP, 2, follower)
    assert not sync.is_done
    assert c.leave(GROUP, follower) == left((follower, None, NONE))
    assert sync.result == SyncGroupResult(UNKNOWN)
    assert c.state() == "PreparingRebalance"
    assert set(c.group().members) == {first}


# Several


def test_leaving_a_dead_group_together() -> None:
    """GC testBatchLeaveDeadGroup"""
    c = Context()
    dead_group(c)
    assert c.leave(GROUP, "memberId", "memberId") == LeaveGroupResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_static_members_leave_together() -> None:
    """GC testStaticMembersValidBatchLeaveGroup"""
    c = Context()
    c.static_pair()
    answer = c.leave(GROUP, ("", "leader"), ("", "follower"))
    assert answer == left(("", "leader", NONE), ("", "follower", NONE))
    assert c.group().members == {}
    assert c.state() == "Empty"


def test_static_members_leave_a_group_that_is_not_there() -> None:
    """GC testStaticMembersUnknownGroupBatchLeaveGroup"""
    c = Context()
    answer = c.leave(GROUP, ("", "leader"), ("", "follower"))
    assert answer == left(("", "leader", UNKNOWN), ("", "follower", UNKNOWN))
    assert c.find() is None


def test_a_fenced_member_does_not_keep_another_from_leaving() -> None:
    """GC testStaticMembersFencedInstanceBatchLeaveGroup"""
    c = Context()
    _, follower = c.static_pair()
    answer = c.leave(GROUP, ("", "leader"), ("invalid-member", "follower"))
    assert answer == left(("", "leader", NONE), ("invalid-member", "follower", FENCED))
    assert set(c.group().members) == {follower.member_id}
    assert c.state() == "PreparingRebalance"


def test_an_unknown_instance_does_not_keep_another_from_leaving() -> None:
    """GC testStaticMembersUnknownInstanceBatchLeaveGroup"""
    c = Context()
    leader, _ = c.static_pair()
    answer = c.leave(GROUP, ("", "unknown-instance"), ("", "follower"))
    assert answer == left(("", "unknown-instance", UNKNOWN), ("", "follower", NONE))
    assert set(c.group().members) == {leader.member_id}


def test_an_id_that_has_not_joined_yet_leaves_with_others() -> None:
    """GC testPendingMemberBatchLeaveGroup"""
    c = Context()
    pending = group_with_pending_member(c)
    answer = c.leave(GROUP, ("", "unknown-instance"), pending)
    assert answer == left(("", "unknown-instance", UNKNOWN), (pending, None, NONE))
    assert c.group().pending_members == {}
    assert c.state() == "CompletingRebalance"


def test_a_pending_id_that_belongs_to_an_instance_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """GC testPendingMemberWithUnexpectedInstanceIdBatchLeaveGroup

    Python: the exception is logged and answered as UNKNOWN_SERVER_ERROR, which is what Kafka's client sees
    """
    c = Context()
    pending = group_with_pending_member(c)
    c.group().static_members["instanceId"] = MemberId(pending)
    answer = c.leave(GROUP, ("", "unknown-instance"), (pending, "instanceId"))
    assert answer == LeaveGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    [record] = [found for found in caplog.records if found.name == "kohort.group.coordinator"]
    assert record.levelname == "ERROR"
    assert pending in record.getMessage()
    assert "instanceId" in record.getMessage()
    assert set(c.group().pending_members) == {pending}


def test_who_is_named_twice_leaves_once() -> None:
    c = Context()
    leader, _ = c.static_pair()
    answer = c.leave(GROUP, leader.member_id, ("", "leader"), (leader.member_id, "leader"))
    assert answer == left(
        (leader.member_id, None, NONE), ("", "leader", UNKNOWN), (leader.member_id, "leader", UNKNOWN)
    )
    assert set(c.group().static_members) == {"follower"}


def test_nobody_leaves() -> None:
    c = Context()
    c.static_pair()
    assert c.leave(GROUP) == left()
    assert c.leave(GROUP, "") == left(("", None, UNKNOWN))
    assert c.state() == "Stable"
