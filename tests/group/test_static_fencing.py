"""Fencing: of two clients with one instance id only the later is a member."""

import pytest

from kohort.errors import ErrorCode, IllegalState
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import JoinGroupResult, MemberId, SyncGroupResult
from tests.group.context import (
    GROUP,
    INITIAL_DELAY,
    PROTOCOL_SUPERSET,
    PROTOCOLS,
    REBALANCE_TIMEOUT,
    Answer,
    Context,
    only,
)

FENCED = ErrorCode.FENCED_INSTANCE_ID


def assert_joined(
    answer: Answer[JoinGroupResult], member: str, leader: str, generation: int, instances: set[str | None]
) -> None:
    """All of a good answer to a join; the leader's lists these instances, everybody else's none."""
    joined = answer.result
    good = JoinGroupResult(ErrorCode.NONE, member, generation, "consumer", "range", leader)
    assert joined._replace(members=()) == good
    assert {listed.group_instance_id for listed in joined.members} == instances
    assert len(joined.members) == len(instances)


# Somebody with a wrong member id


def test_a_known_instance_with_another_member_id_is_fenced() -> None:
    """GC staticMemberReJoinWithExplicitUnknownMemberId"""
    c = Context()
    first = c.join(instance="instance")
    c.sleep(INITIAL_DELAY + 1)
    assert first.result.error is ErrorCode.NONE
    answer = c.join(member="unknown_member", instance="instance")
    assert answer.result == JoinGroupResult(FENCED, MemberId("unknown_member"))


def test_the_followers_member_id_with_the_leaders_instance_id_is_fenced() -> None:
    """GC staticMemberRejoinAsFollowerWithMismatchedMemberId"""
    c = Context()
    _, follower = c.static_pair()
    answer = c.join(member=follower.member_id, instance="leader", protocols=PROTOCOL_SUPERSET)
    assert answer.result == JoinGroupResult(FENCED, follower.member_id)
    assert c.state() == "Stable"


def test_the_leaders_member_id_with_the_followers_instance_id_is_fenced() -> None:
    """GC staticMemberRejoinAsLeaderWithMismatchedMemberId"""
    c = Context()
    leader, _ = c.static_pair()
    answer = c.join(member=leader.member_id, instance="follower", protocols=PROTOCOL_SUPERSET)
    assert answer.result == JoinGroupResult(FENCED, leader.member_id)
    assert c.state() == "Stable"


def test_a_sync_with_a_wrong_member_id_is_fenced() -> None:
    """GC staticMemberSyncAsLeaderWithInvalidMemberId"""
    c = Context()
    c.static_pair()
    assert c.sync(GROUP, 1, "invalid", instance="leader", protocol_type=None).result == SyncGroupResult(FENCED)
    assert c.state() == "Stable"


def test_a_heartbeat_with_a_wrong_member_id_is_fenced() -> None:
    """GC staticMemberHeartbeatLeaderWithInvalidMemberId"""
    c = Context()
    leader, _ = c.static_pair()
    assert c.sync(GROUP, 1, leader.member_id, protocol_type=None).result.error is ErrorCode.NONE
    assert c.heartbeat(GROUP, leader.member_id, 1) is ErrorCode.NONE
    assert c.heartbeat(GROUP, leader.member_id, 1, instance="leader") is ErrorCode.NONE
    assert c.heartbeat(GROUP, "invalidMember", 1, instance="leader") is FENCED


def test_a_commit_with_a_wrong_member_id_is_fenced() -> None:
    """GC staticMemberCommitOffsetWithInvalidMemberId"""
    c = Context()
    leader, _ = c.static_pair()
    assert c.sync(GROUP, 1, leader.member_id, protocol_type=None).result.error is ErrorCode.NONE
    good = c.commit({("topic", 0): 7}, member=leader.member_id, generation=1)
    assert only(good.result) is ErrorCode.NONE
    bad = c.commit({("topic", 0): 8}, member="invalidMember", generation=1, instance="leader")
    assert only(bad.result) is FENCED
    assert c.offset("topic", 0) == 7


# Duplicates


def test_a_duplicate_fences_the_parked_join_of_the_one_before() -> None:
    """GC staticMemberFenceDuplicateRejoinedFollower"""
    c = Context()
    _, follower = c.static_pair()
    c.join()
    c.sleep(1)
    assert c.state() == "PreparingRebalance"
    old = c.join(member=follower.member_id, instance="follower")
    c.sleep(1)
    assert not old.is_done
    duplicate = c.join(instance="follower")
    assert old.result == JoinGroupResult(FENCED, follower.member_id)
    c.sleep(1)
    assert c.state() == "PreparingRebalance"
    assert not duplicate.is_done


def test_a_duplicate_fences_the_parked_sync_of_the_one_before_and_begins_a_rebalance() -> None:
    """GC staticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged"""
    c = Context()
    leader, follower = c.static_pair()
    leaders = c.join(member=leader.member_id, instance="leader")
    c.sleep(1)
    assert c.state() == "PreparingRebalance"
    c.sleep(1)
    followers = c.join(member=follower.member_id, instance="follower")
    assert_joined(leaders, leader.member_id, leader.member_id, 2, {"leader", "follower"})
    assert_joined(followers, follower.member_id, leader.member_id, 2, set())
    assert c.state() == "CompletingRebalance"

    sync = c.sync(GROUP, 2, follower.member_id, instance="follower", protocol_name="range")
    c.sleep(1)
    assert not sync.is_done
    duplicate = c.join(instance="follower")
    assert sync.result == SyncGroupResult(FENCED)
    assert c.state() == "PreparingRebalance"
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(REBALANCE_TIMEOUT + 1)
    member = duplicate.result.member_id
    assert member != follower.member_id
    assert_joined(duplicate, member, member, 3, {"follower"})
    assert c.state() == "CompletingRebalance"


def test_a_duplicate_takes_part_in_the_rebalance_and_the_one_before_is_fenced() -> None:
    """GC staticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged"""
    c = Context()
    leader, follower = c.static_pair()
    leaders = c.join(member=leader.member_id, instance="leader")
    c.sleep(1)
    assert c.state() == "PreparingRebalance"
    duplicate = c.join(instance="follower")
    c.sleep(1)
    old = c.join(member=follower.member_id, instance="follower")
    assert_joined(leaders, leader.member_id, leader.member_id, 2, {"leader", "follower"})
    member = duplicate.result.member_id
    assert member != follower.member_id
    assert_joined(duplicate, member, leader.member_id, 2, set())
    assert old.result == JoinGroupResult(FENCED, follower.member_id)
    assert c.state() == "CompletingRebalance"


# The book-keeping


def static_member() -> MemberMetadata:
    return MemberMetadata(MemberId("old"), "instance", "client", "host", 500, 500, "consumer", PROTOCOLS)


def test_who_is_replaced_is_fenced_and_passes_on_all_that_it_was() -> None:
    """GM testReplaceGroupInstance"""
    c = Context()
    group, member = c.manager.new_group(GROUP), static_member()
    join: Answer[JoinGroupResult] = Answer()
    sync: Answer[SyncGroupResult] = Answer()
    group.add(member, join)
    group.await_sync(member, sync)
    assert group.is_leader(MemberId("old"))
    assert group.static_members == {"instance": "old"}

    group.replace_group_instance(MemberId("old"), MemberId("new"), "instance")
    assert group.is_leader(MemberId("new"))
    assert group.static_members == {"instance": "new"}
    assert group.members == {"new": member}
    assert join.result == JoinGroupResult(FENCED, MemberId("old"))
    assert sync.result == SyncGroupResult(FENCED)
    assert not member.is_awaiting_join
    assert not member.is_awaiting_sync
    assert group.awaiting_join == 0


def test_nobody_is_replaced_without_an_instance_id() -> None:
    """GM testReplaceGroupInstanceWithEmptyGroupInstanceId"""
    c = Context()
    group, member = c.manager.new_group(GROUP), static_member()
    group.add(member)
    assert group.is_leader(MemberId("old"))
    assert group.static_members == {"instance": "old"}
    with pytest.raises(IllegalState, match="old"):
        group.replace_group_instance(MemberId("old"), MemberId("new"), None)
    assert group.members == {"old": member}


def test_who_is_no_member_cannot_be_replaced() -> None:
    """GM testReplaceGroupInstanceWithNonExistingMember"""
    group = Context().manager.new_group(GROUP)
    with pytest.raises(IllegalState, match="old"):
        group.replace_group_instance(MemberId("old"), MemberId("new"), "instance")
    assert group.members == {}
    assert group.static_members == {}
