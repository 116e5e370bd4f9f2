"""Dynamic members join a group: who is let in, who has to wait for how long, and who is refused."""

import pytest

from kohort.errors import ErrorCode
from kohort.group.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS
from kohort.group.requests import GroupId, JoinGroupMember, JoinGroupResult, MemberId
from kohort.group.states import GroupState
from tests.group.context import (
    GROUP,
    INITIAL_DELAY,
    PROTOCOL_SUPERSET,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    Context,
)

ROUND_ROBIN = (("roundrobin", b"metadata"),)


def refused(error: ErrorCode, member: str = "") -> JoinGroupResult:
    """Generation -1, no protocol, no leader, no members."""
    return JoinGroupResult(error, MemberId(member))


def two_members(c: Context) -> tuple[JoinGroupResult, JoinGroupResult]:
    """A second member has come to a Stable group and the first has joined again: generation 2, nobody has synced."""
    first = c.stable_group()
    newcomer = c.join()
    leader = c.join(member=first.member_id)
    return leader.result, newcomer.result


def new_members(c: Context) -> list[str]:
    return [member.member_id for member in c.group().members.values() if member.is_new]


# Let in or refused


def test_a_member_that_comes_with_the_id_that_it_was_given_is_let_in() -> None:
    """GC testValidJoinGroup"""
    joined = Context().dynamic_join()
    myself = joined.member_id
    assert joined == JoinGroupResult(
        ErrorCode.NONE, myself, 1, "consumer", "range", myself, (JoinGroupMember(myself, None, b"metadata"),)
    )


def test_a_group_without_a_name_cannot_be_joined() -> None:
    """GC testInvalidGroupId"""
    assert Context().join("", require_known_id=True).result == refused(ErrorCode.INVALID_GROUP_ID)


def test_a_session_may_not_be_shorter_than_the_shortest_allowed() -> None:
    """GC testJoinGroupSessionTimeoutTooSmall"""
    c = Context()
    assert c.join(session=9, require_known_id=True).result == refused(ErrorCode.INVALID_SESSION_TIMEOUT)
    assert c.find() is None
    assert c.dynamic_join(session=10).error is ErrorCode.NONE


def test_a_session_may_not_be_longer_than_the_longest_allowed() -> None:
    """GC testJoinGroupSessionTimeoutTooLarge"""
    c = Context()
    assert c.join(session=600_001, require_known_id=True).result == refused(ErrorCode.INVALID_SESSION_TIMEOUT)
    assert c.find() is None
    assert c.dynamic_join(session=600_000).error is ErrorCode.NONE


@pytest.mark.parametrize("instance", [None, "instance"])
def test_a_member_id_of_a_group_that_does_not_exist_is_unknown(instance: str | None) -> None:
    """GC testJoinGroupUnknownConsumerNewGroup"""
    c = Context()
    assert c.join(member="member", instance=instance).result == refused(ErrorCode.UNKNOWN_MEMBER_ID, "member")
    assert c.find() is None


def test_a_member_id_that_nobody_was_given_is_unknown() -> None:
    """GC testJoinGroupUnknownConsumerExistingGroup"""
    c = Context()
    c.dynamic_join()
    assert c.join(member="member").result == refused(ErrorCode.UNKNOWN_MEMBER_ID, "member")


def test_a_dead_group_cannot_be_joined() -> None:
    """GC testJoinGroupUnknownConsumerNewDeadGroup"""
    c = Context()
    group = c.manager.add_group(c.manager.new_group(GroupId("deadGroup")))
    group.transition_to(GroupState.DEAD)
    joined = c.join("deadGroup", require_known_id=True)
    assert joined.result == refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_member_with_another_protocol_type_is_refused() -> None:
    """GC testJoinGroupInconsistentProtocolType"""
    c = Context()
    c.dynamic_join()
    joined = c.join(protocol_type="connect")
    assert joined.result == refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@pytest.mark.parametrize("instance", [None, "instance"])
def test_a_member_without_a_protocol_type_is_refused(instance: str | None) -> None:
    """GC testJoinGroupWithEmptyProtocolType"""
    joined = Context().join(protocol_type="", instance=instance, require_known_id=instance is None)
    assert joined.result == refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def test_a_member_without_protocols_is_refused() -> None:
    """GC testJoinGroupWithEmptyGroupProtocol"""
    joined = Context().join(protocols=(), require_known_id=True)
    assert joined.result == refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def test_a_member_that_shares_no_protocol_with_the_group_is_refused_before_it_gets_an_id() -> None:
    """GC testJoinGroupInconsistentGroupProtocol"""
    c = Context()
    first = c.join()
    second = c.join(protocols=ROUND_ROBIN, require_known_id=True)
    assert second.result == refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert not first.is_done
    c.sleep(INITIAL_DELAY + 1)
    assert first.result.error is ErrorCode.NONE


def test_an_id_that_was_handed_out_survives_a_join_that_is_refused() -> None:
    """GC testJoinGroupSecondJoinInconsistentProtocol"""
    c = Context()
    first = c.join(require_known_id=True).result
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    refusal = c.join(member=first.member_id, protocols=(), require_known_id=True)
    assert refusal.result == refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, first.member_id)
    third = c.join(member=first.member_id, require_known_id=True)
    c.sleep(INITIAL_DELAY + 1)
    assert (third.result.error, third.result.member_id) == (ErrorCode.NONE, first.member_id)


def test_a_refused_join_is_not_told_a_protocol_type() -> None:
    """GC testJoinGroupProtocolTypeIsNotProvidedWhenAnErrorOccurs"""
    joined = Context().join(member="fake-id", instance="leader", protocols=PROTOCOL_SUPERSET).result
    assert joined.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert joined.protocol_type is None


def test_whoever_has_joined_is_told_the_protocol_type() -> None:
    """GC testJoinGroupReturnsTheProtocolType"""
    c = Context()
    leader = c.join(instance="leader", protocols=PROTOCOL_SUPERSET)
    follower = c.join(instance="follower", protocols=PROTOCOL_SUPERSET)
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(REBALANCE_TIMEOUT + 1)
    for joined in (leader.result, follower.result):
        assert (joined.error, joined.protocol_type) == (ErrorCode.NONE, "consumer")


# Joining again


def test_a_follower_that_joins_again_unchanged_starts_no_rebalance() -> None:
    """GC testJoinGroupFromUnchangedFollowerDoesNotRebalance"""
    c = Context()
    leader, follower = two_members(c)
    assert (leader.error, follower.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert leader.generation_id == follower.generation_id == 2
    assert leader.leader_id == follower.leader_id == leader.member_id
    assert [member.member_id for member in leader.members] == [leader.member_id, follower.member_id]
    again = c.join(member=follower.member_id)
    assert again.result == follower
    assert follower.members == ()
    assert c.state() == "CompletingRebalance"


def test_a_leader_that_joins_again_starts_a_rebalance_even_unchanged() -> None:
    """GC testJoinGroupFromUnchangedLeaderShouldRebalance"""
    c = Context()
    first = c.stable_group()
    second = c.join(member=first.member_id).result
    assert second.error is ErrorCode.NONE
    assert second.generation_id != first.generation_id
    assert c.state() == "CompletingRebalance"


def test_each_rebalance_makes_the_generation_one_more() -> None:
    """GC testGenerationIdIncrementsOnRebalance"""
    c = Context()
    first = c.stable_group()
    assert first.generation_id == 1
    second = c.join(member=first.member_id).result
    assert (second.error, second.generation_id) == (ErrorCode.NONE, 2)


# New members


def test_a_member_is_new_only_until_its_first_join_is_answered() -> None:
    """GC testNewMemberTimeoutCompletion"""
    c = Context()
    session = NEW_MEMBER_JOIN_TIMEOUT_MS + 5_000
    joining = c.join(session=session)
    assert len(new_members(c)) == 1
    c.sleep(INITIAL_DELAY + 1)
    joined = joining.result
    assert joined.error is ErrorCode.NONE
    assert new_members(c) == []
    synced = c.sync(GROUP, joined.generation_id, joined.member_id, {joined.member_id: b""})
    assert synced.result.error is ErrorCode.NONE
    c.sleep(NEW_MEMBER_JOIN_TIMEOUT_MS + 100)
    assert list(c.group().members) == [joined.member_id]
    c.sleep(session + 100)
    assert c.group().members == {}


def test_a_new_member_does_not_wait_for_others_for_more_than_five_minutes() -> None:
    """GC testNewMemberJoinExpiration"""
    c = Context()
    timeouts = {"session": NEW_MEMBER_JOIN_TIMEOUT_MS + 5_000, "rebalance": 2 * NEW_MEMBER_JOIN_TIMEOUT_MS}
    first = c.dynamic_join(**timeouts)
    assert (first.error, first.leader_id) == (ErrorCode.NONE, first.member_id)
    assert new_members(c) == []
    joining = c.join(**timeouts)
    assert len(c.group().members) == 2
    assert len(new_members(c)) == 1
    assert first.member_id not in new_members(c)
    c.sleep(300_000)
    assert not joining.is_done
    c.sleep(1)
    assert joining.result == refused(ErrorCode.UNKNOWN_MEMBER_ID)
    assert list(c.group().members) == [first.member_id]
    assert new_members(c) == []


def test_new_members_that_have_joined_must_send_heartbeats() -> None:
    """GC testNewMemberFailureAfterJoinGroupCompletion"""
    c = Context()
    leader, follower = two_members(c)
    assert (leader.error, follower.error) == (ErrorCode.NONE, ErrorCode.NONE)
    c.sleep(SESSION_TIMEOUT + 1)
    assert c.state() == "Empty"
    assert c.group().members == {}


def test_new_members_that_have_synced_must_send_heartbeats() -> None:
    """GC testNewMemberFailureAfterSyncGroupCompletion"""
    c = Context()
    leader, follower = two_members(c)
    syncing = c.sync(GROUP, 2, follower.member_id)
    led = c.sync(GROUP, 2, leader.member_id, {leader.member_id: b"", follower.member_id: b""})
    assert (led.result.error, syncing.result.error) == (ErrorCode.NONE, ErrorCode.NONE)
    c.sleep(SESSION_TIMEOUT + 1)
    assert c.state() == "Empty"
    assert c.group().members == {}


# Ids that were handed out


def test_an_id_that_nobody_comes_with_is_forgotten() -> None:
    """GC testSecondMemberPartiallyJoinAndTimeout"""
    c = Context()
    first = c.stable_group()
    c.sleep(100)
    group = c.group()
    assert (len(group.members), len(group.pending_members)) == (1, 0)
    assert c.state() == "Stable"
    second = c.join(require_known_id=True).result
    assert second.error is ErrorCode.MEMBER_ID_REQUIRED
    assert list(group.pending_members) == [second.member_id]
    assert c.state() == "Stable"
    c.sleep(300)
    assert len(group.pending_members) == 1
    assert c.heartbeat(GROUP, first.member_id, 1) is ErrorCode.NONE
    c.sleep(300)
    assert (list(group.members), len(group.pending_members)) == ([first.member_id], 0)
    assert c.state() == "Stable"
    assert c.join(member=second.member_id).result.error is ErrorCode.UNKNOWN_MEMBER_ID


def group_with_pending_member(c: Context) -> MemberId:
    """Two members have joined again, and the rebalance waits for somebody who was given an id."""
    leader, follower = two_members(c)
    c.sync(GROUP, 2, leader.member_id, {leader.member_id: b""})
    assert c.state() == "Stable"
    rejoining = [c.join(member=leader.member_id)]
    assert c.state() == "PreparingRebalance"
    pending = c.join(session=100, require_known_id=True).result
    rejoining.append(c.join(member=follower.member_id))
    assert c.state() == "PreparingRebalance"
    assert list(c.group().pending_members) == [pending.member_id]
    assert [joining.is_done for joining in rejoining] == [False, False]
    return pending.member_id


def test_a_rebalance_ends_when_the_id_that_was_handed_out_comes() -> None:
    """GC testJoinGroupCompletionWhenPendingMemberJoins"""
    c = Context()
    pending = group_with_pending_member(c)
    assert c.join(member=pending).result.error is ErrorCode.NONE
    assert c.state() == "CompletingRebalance"
    assert len(c.group().members) == 3
    assert len(c.group().pending_members) == 0


def test_a_rebalance_ends_when_the_id_that_was_handed_out_is_forgotten() -> None:
    """GC testJoinGroupCompletionWhenPendingMemberTimesOut"""
    c = Context()
    pending = group_with_pending_member(c)
    c.sleep(120)
    assert c.state() == "CompletingRebalance"
    assert len(c.group().members) == 2
    assert len(c.group().pending_members) == 0
    assert pending not in c.group().members


# The first rebalance


def test_the_first_join_waits_a_little_for_others() -> None:
    """GC shouldDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup"""
    c = Context()
    joining = c.join()
    c.sleep(25)
    assert not joining.is_done
    c.sleep(26)
    assert joining.result.error is ErrorCode.NONE


def test_the_first_join_waits_on_when_another_comes() -> None:
    """GC shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance"""
    c = Context()
    first = c.join(rebalance=150)
    c.sleep(49)
    second = c.join(rebalance=150)
    c.sleep(2)
    c.sleep(26)
    assert (first.is_done, second.is_done) == (False, False)
    c.sleep(25)
    assert (first.result.error, second.result.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert first.result.generation_id == second.result.generation_id == 1


def test_however_many_come_the_first_join_waits_for_its_rebalance_timeout_at_most() -> None:
    """GC shouldDelayRebalanceUptoRebalanceTimeout"""
    c = Context()
    joining = [c.join(rebalance=100), c.join(rebalance=100)]
    c.sleep(51)
    joining.append(c.join(rebalance=100))
    c.sleep(50)
    assert [answer.is_done for answer in joining] == [False, False, False]
    c.sleep(1)
    assert [answer.result.error for answer in joining] == [ErrorCode.NONE] * 3


# A long life


def test_a_static_member_that_misses_a_rebalance_stays_until_its_session_ends() -> None:
    """GC testRebalanceCompletesBeforeMemberJoins"""
    c = Context()
    joining = c.join(instance="leader", session=1_000, rebalance=1_200)
    c.sleep(INITIAL_DELAY + 1)
    one = joining.result
    assert (one.error, one.leader_id) == (ErrorCode.NONE, one.member_id)
    assert c.sync(GROUP, 1, one.member_id, {one.member_id: b""}).result.error is ErrorCode.NONE
    joining = c.join()
    for _ in range(2):
        c.sleep(500)
        assert c.heartbeat(GROUP, one.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    c.sleep(500)
    two = joining.result
    assert (two.error, two.generation_id, two.leader_id) == (ErrorCode.NONE, 2, two.member_id)
    assert c.sync(GROUP, 2, two.member_id, {two.member_id: b""}).result.error is ErrorCode.NONE
    assert c.heartbeat(GROUP, one.member_id, 1) is ErrorCode.ILLEGAL_GENERATION
    assert one.member_id in c.group().members
    beats = []
    for _ in range(3):
        c.sleep(500)
        beats.append(c.heartbeat(GROUP, two.member_id, 2))
    assert beats == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS]
    again = c.join(member=two.member_id).result
    assert (again.error, again.generation_id) == (ErrorCode.NONE, 3)
    assert c.sync(GROUP, 3, two.member_id, {two.member_id: b""}).result.error is ErrorCode.NONE
    for _ in range(20):
        c.sleep(500)
        assert c.heartbeat(GROUP, two.member_id, 3) is ErrorCode.NONE


def test_a_rebalance_timeout_below_zero_means_that_nobody_waits() -> None:
    c = Context()
    joining = c.join(instance="static", session=600_000, rebalance=-5)
    c.sleep(INITIAL_DELAY + 1)
    static = joining.result.member_id
    assert c.sync(GROUP, 1, static, {static: b""}).result.error is ErrorCode.NONE
    joining = c.join(rebalance=-5)
    c.leave(GROUP, list(c.group().members)[1])
    assert joining.result.error is ErrorCode.UNKNOWN_MEMBER_ID
    for _ in range(3):
        c.sleep(1)
    assert c.state() == "PreparingRebalance"
    again = c.join(member=static, instance="static").result
    assert (again.error, again.generation_id) == (ErrorCode.NONE, 2)
