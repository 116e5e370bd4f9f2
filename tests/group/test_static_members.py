"""Static members (KIP-345): how they join and join again, and how long their group waits for them."""

import pytest

from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.group.delayed import Timer
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import JoinGroupResult, LeaveGroupResult, LeaveMemberResult, MemberId
from kohort.group.states import GroupState
from tests.group.context import (
    GROUP,
    INITIAL_DELAY,
    PROTOCOL_SUPERSET,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    Answer,
    Context,
)


def assert_joined(
    answer: Answer[JoinGroupResult],
    member: str,
    leader: str,
    generation: int,
    instances: set[str | None],
    protocol: str = "range",
) -> None:
    """All of a good answer to a join; the leader's lists these instances, everybody else's none."""
    joined = answer.result
    good = JoinGroupResult(ErrorCode.NONE, member, generation, "consumer", protocol, leader)
    assert joined._replace(members=()) == good
    assert {listed.group_instance_id for listed in joined.members} == instances
    assert len(joined.members) == len(instances)


def logged_error(caplog: pytest.LogCaptureFixture) -> str:
    """The one error that the coordinator has logged, with its exception."""
    [record] = [found for found in caplog.records if found.name == "kohort.group.coordinator"]
    assert record.levelname == "ERROR"
    return record.getMessage()


def test_a_static_member_is_in_with_its_first_request() -> None:
    """GC staticMemberJoinAsFirstMember"""
    c = Context()
    answer = c.join(instance="instance", require_known_id=True)
    assert not answer.is_done
    c.sleep(INITIAL_DELAY + 1)
    member = answer.result.member_id
    assert member.startswith("instance-")
    assert_joined(answer, member, member, 1, {"instance"})


def test_a_member_id_with_an_instance_id_that_nobody_has_is_unknown() -> None:
    """GC staticMemberJoinWithUnknownInstanceIdAndKnownMemberId"""
    c = Context()
    leader, _ = c.static_pair()
    answer = c.join(member=leader.member_id, instance="unknown_instance", protocols=PROTOCOL_SUPERSET)
    assert answer.result == JoinGroupResult(ErrorCode.UNKNOWN_MEMBER_ID, leader.member_id)
    assert c.state() == "Stable"


def test_each_time_a_static_member_comes_back_it_gets_another_id() -> None:
    """GC shouldGetDifferentStaticMemberIdAfterEachRejoin"""
    c = Context()
    leader, _ = c.static_pair()
    ids = [leader.member_id]
    for _ in range(5):
        joined = c.join(instance="leader").result
        c.sleep(1)
        assert joined.error is ErrorCode.NONE
        assert joined.member_id.startswith("leader-")
        ids.append(joined.member_id)
    assert len(set(ids)) == 6
    assert c.group().static_members["leader"] == ids[-1]


# Joining again with its member id


def test_a_static_member_that_missed_the_answer_asks_again_with_its_id() -> None:
    """GC staticMemberRejoinWithKnownMemberId"""
    c = Context()
    first = c.join(instance="instance")
    c.sleep(INITIAL_DELAY + 1)
    member = first.result.member_id
    assert c.join(member=member, instance="instance").result == first.result
    assert c.state() == "CompletingRebalance"
    synced = c.sync(GROUP, 1, member, {member: b""}, instance="instance", protocol_name="range").result
    assert (synced.error, synced.assignment) == (ErrorCode.NONE, b"")
    assert c.state() == "Stable"


def test_a_leader_that_joins_again_begins_a_rebalance() -> None:
    """GC staticMemberRejoinWithLeaderIdAndKnownMemberId"""
    c = Context()
    leader, _ = c.static_pair(session=REBALANCE_TIMEOUT // 2)
    answer = c.join(member=leader.member_id, instance="leader", protocols=PROTOCOL_SUPERSET)
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert not c.group().has_static_member("follower")
    assert_joined(answer, leader.member_id, leader.member_id, 2, {"leader"})
    assert c.state() == "CompletingRebalance"


def test_a_member_of_a_dead_group_is_to_look_elsewhere() -> None:
    """GC staticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup"""
    c = Context()
    leader, _ = c.static_pair()
    c.group().transition_to(GroupState.DEAD)
    answer = c.join(member=leader.member_id, instance="leader")
    assert answer.result == JoinGroupResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, leader.member_id)


def test_a_member_of_an_empty_group_is_unknown() -> None:
    """GC staticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup"""
    c = Context()
    leader, _ = c.static_pair()
    c.group().transition_to(GroupState.PREPARING_REBALANCE)
    c.group().transition_to(GroupState.EMPTY)
    answer = c.join(member=leader.member_id, instance="leader")
    assert answer.result == JoinGroupResult(ErrorCode.UNKNOWN_MEMBER_ID, leader.member_id)


def test_a_follower_that_changes_its_protocols_begins_a_rebalance_and_leads_if_the_leader_is_away() -> None:
    """GC staticMemberRejoinWithFollowerIdAndChangeOfProtocol"""
    c = Context()
    _, follower = c.static_pair(session=1000)
    answer = c.join(member=follower.member_id, instance="follower", protocols=(("roundrobin", b"metadata"),))
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert_joined(answer, follower.member_id, follower.member_id, 2, {"leader", "follower"}, "roundrobin")
    assert c.group().is_leader(follower.member_id)
    assert c.state() == "CompletingRebalance"


def test_members_that_join_again_complete_the_rebalance_and_a_change_begins_another() -> None:
    """GC staticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeofProtocol"""
    c = Context()
    leader, follower = c.static_pair()
    leaders = c.join(member=leader.member_id, instance="leader", protocols=PROTOCOL_SUPERSET)
    assert not leaders.is_done
    followers = c.join(member=follower.member_id, instance="follower", protocols=PROTOCOL_SUPERSET)
    assert_joined(leaders, leader.member_id, leader.member_id, 2, {"leader", "follower"})
    assert_joined(followers, follower.member_id, leader.member_id, 2, set())
    c.sleep(1)
    assert c.state() == "CompletingRebalance"

    changed = c.join(member=follower.member_id, instance="follower")
    assert c.state() == "PreparingRebalance"
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert_joined(changed, follower.member_id, follower.member_id, 3, {"follower"})
    assert c.state() == "CompletingRebalance"


def test_a_follower_without_a_change_is_told_where_the_group_is() -> None:
    """GC staticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange"""
    c = Context()
    leader, follower = c.static_pair()
    end = c.end_offset()
    answer = c.join(member=follower.member_id, instance="follower", protocols=PROTOCOL_SUPERSET)
    assert_joined(answer, follower.member_id, leader.member_id, 1, set())
    assert c.group().has_static_member("leader")
    assert c.state() == "Stable"
    assert c.end_offset() == end


# What cannot be


def test_a_static_member_that_joins_with_a_pending_id_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """GC staticMemberJoinWithIllegalStateAsPendingMember

    Python: the exception is logged and answered as UNKNOWN_SERVER_ERROR, which is what Kafka's client sees
    """
    c = Context()
    _, follower = c.static_pair()
    c.group().add_pending_member(follower.member_id, Timer(lambda: None))
    c.group().remove(follower.member_id)
    answer = c.join(member=follower.member_id, instance="follower", protocols=PROTOCOL_SUPERSET)
    assert answer.result == JoinGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR, follower.member_id)
    error = logged_error(caplog)
    assert follower.member_id in error
    assert "static member 'follower' " in error


def test_a_static_member_that_leaves_with_a_pending_id_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """GC staticMemberLeaveWithIllegalStateAsPendingMember

    Python: the exception is logged and answered as UNKNOWN_SERVER_ERROR, which is what Kafka's client sees
    """
    c = Context()
    _, follower = c.static_pair()
    c.group().add_pending_member(follower.member_id, Timer(lambda: None))
    c.group().remove(follower.member_id)
    assert c.leave(GROUP, (follower.member_id, "follower")) == LeaveGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    error = logged_error(caplog)
    assert follower.member_id in error
    assert "static member 'follower' " in error


def test_a_static_member_that_comes_back_to_an_empty_group_is_an_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """GC staticMemberReJoinWithIllegalStateAsUnknownMember

    Python: the exception is logged and answered as UNKNOWN_SERVER_ERROR, which is what Kafka's client sees
    """
    c = Context()
    c.static_pair()
    c.group().transition_to(GroupState.PREPARING_REBALANCE)
    c.group().transition_to(GroupState.EMPTY)
    answer = c.join(instance="follower", protocols=PROTOCOL_SUPERSET)
    assert answer.result == JoinGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR, MemberId(""))
    error = logged_error(caplog)
    assert GROUP in error
    assert "static member 'follower' " in error


def test_a_static_member_that_nobody_is_behind_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """GC staticMemberReJoinWithIllegalArgumentAsMissingOldMember

    Python: the exception is logged and answered as UNKNOWN_SERVER_ERROR, which is what Kafka's client sees
    """
    c = Context()
    leader, follower = c.static_pair()
    c.group().static_members["follower"] = MemberId("invalid_member_id")
    answer = c.join(instance="follower", protocols=PROTOCOL_SUPERSET)
    assert answer.result == JoinGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR, MemberId(""))
    assert "invalid_member_id" in logged_error(caplog)
    assert set(c.group().members) == {leader.member_id, follower.member_id}
    assert c.state() == "Stable"


def test_an_id_that_waits_for_its_owner_survives_a_stranger_with_an_instance_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client can bring this about; it must not cost the owner of the id its place."""
    c = Context()
    pending = c.join(require_known_id=True).result.member_id
    answer = c.join(member=pending, instance="stranger")
    assert answer.result == JoinGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR, pending)
    assert c.leave(GROUP, (pending, "stranger")) == LeaveGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert len(caplog.records) == 2
    owner = c.join(member=pending)
    c.sleep(INITIAL_DELAY + 1)
    assert_joined(owner, pending, pending, 1, {None})


# Members that are away


def stuck_group(c: Context) -> str:
    """A rebalance for which only a static member is left, and that one is away. Returns its id."""
    leader, follower = c.static_pair(session=1000)
    newcomer = c.join(protocols=PROTOCOL_SUPERSET, session=1000)
    c.sleep(REBALANCE_TIMEOUT + 1)
    dynamic = newcomer.result.member_id
    assert_joined(newcomer, dynamic, dynamic, 2, {"leader", "follower", None})
    assert c.state() == "CompletingRebalance"

    gone = (LeaveMemberResult(follower.member_id, None, ErrorCode.NONE),)
    assert c.leave(GROUP, follower.member_id) == LeaveGroupResult(ErrorCode.NONE, gone)
    assert c.state() == "PreparingRebalance"
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert set(c.group().members) == {leader.member_id}
    assert c.group().generation_id == 2
    assert c.state() == "PreparingRebalance"
    return leader.member_id


def test_a_group_that_waits_for_one_static_member_is_empty_when_its_session_ends() -> None:
    """GC testLeaderFailToRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout"""
    c = Context()
    stuck_group(c)
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert c.group().members == {}
    assert c.group().leader_id is None
    assert c.group().generation_id == 3
    assert c.state() == "Empty"


def test_a_group_that_waits_for_one_static_member_goes_on_when_it_is_back() -> None:
    """GC testLeaderRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout"""
    c = Context()
    away = stuck_group(c)
    back = c.join(instance="leader")
    member = back.result.member_id
    assert member != away
    assert_joined(back, member, member, 3, {"leader"})
    assert c.state() == "CompletingRebalance"
    assert set(c.group().members) == {member}
    assert c.group().leader_id == member


def test_a_static_follower_that_is_away_stays_a_member() -> None:
    """GC testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout"""
    c = Context()
    leader, _ = c.static_pair(session=1000)
    newcomer = c.join(instance="newMember", protocols=PROTOCOL_SUPERSET)
    assert c.state() == "PreparingRebalance"
    rejoined = c.join(member=leader.member_id, instance="leader", protocols=PROTOCOL_SUPERSET)
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert_joined(rejoined, leader.member_id, leader.member_id, 2, {"leader", "follower", "newMember"})
    assert_joined(newcomer, newcomer.result.member_id, leader.member_id, 2, set())
    assert c.state() == "CompletingRebalance"


def test_a_static_leader_that_is_away_stays_a_member_but_somebody_else_leads() -> None:
    """GC testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout"""
    c = Context()
    leader, follower = c.static_pair(session=1000)
    newcomer = c.join(instance="newMember", protocols=PROTOCOL_SUPERSET)
    c.sleep(1)
    assert c.state() == "PreparingRebalance"
    rejoined = c.join(member=follower.member_id, instance="follower", protocols=PROTOCOL_SUPERSET)
    c.sleep(REBALANCE_TIMEOUT + 1)

    new_leader = rejoined.result.leader_id
    assert rejoined.result.member_id == follower.member_id
    assert new_leader in {follower.member_id, newcomer.result.member_id}
    for answer in (rejoined, newcomer):
        member = answer.result.member_id
        listed = {"leader", "follower", "newMember"} if member == new_leader else set()
        assert_joined(answer, member, new_leader, 2, listed)
    assert leader.member_id in c.group().members
    assert c.state() == "CompletingRebalance"


class TiredClock(VirtualClock):
    """Whoever asks it again and again without letting time pass is stopped."""

    readings = 0

    def monotonic_ms(self) -> int:
        self.readings += 1
        assert self.readings < 10_000, "it goes on and on"
        return super().monotonic_ms()


@pytest.mark.parametrize("rebalance", [0, -1, -(2**31)])
def test_a_static_member_that_is_away_and_has_no_patience_is_waited_for_until_its_session_ends(rebalance: int) -> None:
    """A client may send any number for its rebalance timeout."""
    c = Context(clock=TiredClock())
    leader = c.join(instance="leader", rebalance=rebalance)
    follower = c.join(instance="follower")
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    for answer in (leader, follower):
        assert c.sync(GROUP, 1, answer.result.member_id).result.error is ErrorCode.NONE
    assert c.state() == "Stable"
    c.leave(GROUP, ("", "follower"))
    for _ in range(3):
        c.sleep(1)
        assert set(c.group().static_members) == {"leader"}
        assert c.state() == "PreparingRebalance"
    c.sleep(SESSION_TIMEOUT)
    assert c.state() == "Empty"


def test_a_member_with_an_instance_id_is_static() -> None:
    """MM testHasValidGroupInstanceId"""
    static = MemberMetadata(MemberId("m"), "instance", "client", "host", 500, 500, "consumer", (("range", b"\0"),))
    assert static.is_static_member
    assert static.group_instance_id == "instance"
    dynamic = MemberMetadata(MemberId("m"), None, "client", "host", 500, 500, "consumer", (("range", b"\0"),))
    assert not dynamic.is_static_member
