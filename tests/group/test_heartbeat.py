"""Signs of life: what a heartbeat is answered, what keeps a session alive, and what happens when it ends."""

from kohort.errors import ErrorCode
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import GroupId, MemberId
from kohort.group.states import GroupState
from tests.group.context import (
    GROUP,
    PROTOCOL_SUPERSET,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    Context,
    only,
)


def test_a_heartbeat_to_a_group_that_does_not_exist_is_of_nobody() -> None:
    """GC testHeartbeatUnknownGroup"""
    assert Context().heartbeat(GROUP, "member", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_to_a_dead_group_is_refused() -> None:
    """GC testheartbeatDeadGroup"""
    c = Context()
    group = c.manager.add_group(c.manager.new_group(GroupId("deadGroup")))
    group.transition_to(GroupState.DEAD)
    assert c.heartbeat("deadGroup", "member", 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_heartbeat_to_an_empty_group_is_of_nobody() -> None:
    """GC testheartbeatEmptyGroup"""
    c = Context()
    group = c.manager.add_group(c.manager.new_group(GroupId(GROUP)))
    timeouts = (REBALANCE_TIMEOUT, SESSION_TIMEOUT)
    group.add(
        MemberMetadata(MemberId("member"), "instance", "client", "host", *timeouts, "consumer", PROTOCOL_SUPERSET)
    )
    assert group.state is GroupState.EMPTY
    assert c.heartbeat(GROUP, "member", 0) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_of_somebody_who_is_no_member_is_of_nobody() -> None:
    """GC testHeartbeatUnknownConsumerExistingGroup"""
    c = Context()
    c.stable_group()
    assert c.heartbeat(GROUP, "member", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_of_another_generation_is_refused() -> None:
    """GC testHeartbeatIllegalGeneration"""
    c = Context()
    joined = c.stable_group()
    assert c.heartbeat(GROUP, joined.member_id, 2) is ErrorCode.ILLEGAL_GENERATION


def test_a_heartbeat_before_the_assignment_is_good_and_keeps_the_session_alive() -> None:
    """GC testHeartbeatRebalanceInProgress"""
    c = Context()
    joined = c.dynamic_join(rebalance=2 * SESSION_TIMEOUT)
    assert c.state() == "CompletingRebalance"
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.NONE
    c.sleep(SESSION_TIMEOUT)
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.NONE
    c.sleep(SESSION_TIMEOUT)
    assert c.state() == "CompletingRebalance"


def test_a_heartbeat_tells_that_everybody_is_to_join_again() -> None:
    """GC testHeartbeatDuringRebalanceCausesRebalanceInProgress"""
    c = Context()
    joined = c.dynamic_join()
    c.join()
    assert c.state() == "PreparingRebalance"
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_heartbeat_of_a_member_is_good() -> None:
    """GC testValidHeartbeat"""
    c = Context()
    joined = c.stable_group()
    assert c.state() == "Stable"
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.NONE


def test_a_member_that_was_silent_for_too_long_is_out() -> None:
    """GC testSessionTimeout"""
    c = Context()
    joined = c.stable_group()
    c.sleep(SESSION_TIMEOUT + 100)
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert c.group().members == {}
    assert c.state() == "Empty"


def test_heartbeats_keep_a_session_alive() -> None:
    """GC testHeartbeatMaintainsSession"""
    c = Context()
    joined = c.stable_group(session=1_000, rebalance=1_000)
    c.sleep(500)
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.NONE
    c.sleep(600)
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.NONE


def test_a_commit_keeps_a_session_alive() -> None:
    """GC testCommitMaintainsSession"""
    c = Context()
    joined = c.stable_group(session=1_000, rebalance=1_000)
    c.sleep(500)
    committed = c.commit({("topic", 0): 0}, member=joined.member_id, generation=1)
    assert only(committed.result) is ErrorCode.NONE
    c.sleep(600)
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.NONE


def test_a_member_that_is_silent_in_a_rebalance_is_out_and_the_rebalance_ends() -> None:
    """GC testSessionTimeoutDuringRebalance"""
    c = Context()
    first = c.stable_group(session=1_000, rebalance=2_000)
    joining = c.join()
    c.sleep(500)
    assert c.heartbeat(GROUP, first.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not joining.is_done
    c.sleep(1_100)
    assert c.heartbeat(GROUP, first.member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    joined = joining.result
    assert (joined.error, joined.generation_id) == (ErrorCode.NONE, 2)
    assert [member.member_id for member in joined.members] == [joined.member_id]


def test_no_session_ends_in_a_dead_group() -> None:
    """GC testCompleteHeartbeatWithGroupDead

    Python: there is no delayed operation that completes; the session's timer fires and must do nothing.
    """
    c = Context()
    leader, follower = c.static_pair()
    assert c.heartbeat(GROUP, leader.member_id, 1) is ErrorCode.NONE
    group = c.group()
    group.transition_to(GroupState.DEAD)
    c.sleep(SESSION_TIMEOUT + 1)
    assert list(group.members) == [leader.member_id, follower.member_id]
    assert group.members[leader.member_id].session_timer.is_idle
    assert group.state is GroupState.DEAD


def test_no_session_ends_of_a_member_that_is_gone() -> None:
    """GC testCompleteHeartbeatWithMemberAlreadyRemoved

    Python: there is no delayed operation that completes; the session's timer is cancelled with the member.
    """
    c = Context()
    leader, follower = c.static_pair(session=1_000)
    assert c.heartbeat(GROUP, leader.member_id, 1) is ErrorCode.NONE
    group = c.group()
    timer = group.members[leader.member_id].session_timer
    group.remove(leader.member_id)
    assert timer.is_idle
    c.sleep(600)
    assert c.heartbeat(GROUP, follower.member_id, 1) is ErrorCode.NONE
    c.sleep(600)
    assert c.state() == "Stable"
    assert list(group.members) == [follower.member_id]


def test_a_heartbeat_that_is_refused_keeps_no_session_alive() -> None:
    c = Context()
    joined = c.stable_group()
    c.sleep(SESSION_TIMEOUT)
    assert c.heartbeat(GROUP, joined.member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    c.sleep(1)
    assert c.state() == "Empty"


def test_whoever_waits_for_our_answer_need_not_send_heartbeats() -> None:
    c = Context()
    first = c.stable_group(session=10_000, rebalance=60_000)
    second = c.join(session=100)
    c.sleep(9_000)
    assert not second.is_done
    again = c.join(member=first.member_id, session=10_000, rebalance=60_000)
    assert again.result.error is ErrorCode.NONE
    second_id = second.result.member_id
    syncing = c.sync(GROUP, 2, second_id)
    c.sleep(9_000)
    assert not syncing.is_done
    c.sync(GROUP, 2, first.member_id, {second_id: b"\1"})
    assert syncing.result.assignment == b"\1"
    c.sleep(100)
    assert c.heartbeat(GROUP, second_id, 2) is ErrorCode.NONE
    c.sleep(101)
    assert c.heartbeat(GROUP, second_id, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_whose_new_id_took_long_to_write_has_a_session_too() -> None:
    """While it waited for the log it was excused; from its answer on it is not."""
    c = Context()
    leader, _ = c.static_pair()
    c.topic.hold()
    joining = c.join(instance="follower", protocols=PROTOCOL_SUPERSET)
    for _ in range(2):
        c.sleep(400)
        assert c.heartbeat(GROUP, leader.member_id, 1, instance="leader") is ErrorCode.NONE
    c.topic.release()
    assert joining.result.error is ErrorCode.NONE
    for _ in range(2):
        c.sleep(400)
        c.heartbeat(GROUP, leader.member_id, 1, instance="leader")
    assert list(c.group().members) == [leader.member_id]


def test_asking_for_an_assignment_that_is_there_is_a_sign_of_life() -> None:
    c = Context()
    joined = c.stable_group()
    for _ in range(3):
        c.sleep(SESSION_TIMEOUT * 2 // 3)
        assert c.sync(GROUP, joined.generation_id, joined.member_id).result.error is ErrorCode.NONE
    c.sleep(SESSION_TIMEOUT + 1)
    assert c.state() == "Empty"
