"""A static member comes back without its member id: what it keeps, and what is written before it is told."""

from collections.abc import Callable

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import JoinGroupResult, MemberId, SyncGroupResult
from kohort.records.offsets_topic import GroupMetadataValue, MemberValue
from tests.group.context import (
    GROUP,
    PROTOCOL_SUPERSET,
    PROTOCOLS,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    Answer,
    Context,
)
from tests.group.offsets_topic import OffsetsTopic

NOBODY = MemberId("")
ROUNDROBIN = (("roundrobin", b"metadata"),)


def good(member: str, leader: str, generation: int, protocol: str = "range") -> JoinGroupResult:
    """A good answer to a join, without the list of members."""
    return JoinGroupResult(ErrorCode.NONE, MemberId(member), generation, "consumer", protocol, MemberId(leader))


def without_list(answer: Answer[JoinGroupResult]) -> JoinGroupResult:
    return answer.result._replace(members=())


def instances(answer: Answer[JoinGroupResult]) -> list[str | None]:
    """Those that the answer lists."""
    return sorted(listed.group_instance_id or "" for listed in answer.result.members)


def stored_members(c: Context) -> dict[str, MemberValue]:
    """The members in the newest record of the group, by instance id."""
    _, stored = c.records()[-1]
    assert isinstance(stored, GroupMetadataValue)
    return {member.group_instance_id or "": member for member in stored.members}


# What becomes of it


def test_a_leader_that_comes_back_does_not_learn_that_it_leads() -> None:
    """GC staticMemberRejoinWithLeaderIdAndUnknownMemberId"""
    c = Context()
    leader, _ = c.static_pair()
    joined = c.join(instance="leader", protocols=PROTOCOL_SUPERSET).result
    assert joined == good(joined.member_id, leader.member_id, 1)
    assert joined.member_id != leader.member_id
    assert c.group().is_leader(joined.member_id)
    assert c.state() == "Stable"

    old = c.join(member=leader.member_id, instance="leader", protocols=PROTOCOL_SUPERSET)
    assert old.result == JoinGroupResult(ErrorCode.FENCED_INSTANCE_ID, leader.member_id)
    fenced = c.sync(GROUP, 1, leader.member_id, instance="leader", protocol_type=None)
    assert fenced.result == SyncGroupResult(ErrorCode.FENCED_INSTANCE_ID)
    unknown = c.sync(GROUP, 1, joined.leader_id, protocol_type=None)
    assert unknown.result == SyncGroupResult(ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_follower_that_comes_back_gets_its_old_assignment() -> None:
    """GC staticMemberRejoinAsFollowerWithUnknownMemberId"""
    c = Context()
    leader, follower = c.static_pair()
    joined = c.join(instance="follower", protocols=PROTOCOL_SUPERSET).result
    assert joined == good(joined.member_id, leader.member_id, 1)
    assert joined.member_id != follower.member_id
    assert c.group().static_members == {"leader": leader.member_id, "follower": joined.member_id}
    assert c.state() == "Stable"
    synced = c.sync(GROUP, 1, joined.member_id, protocol_type=None).result
    assert synced == SyncGroupResult(ErrorCode.NONE, "consumer", "range", b"follower's")


def test_a_follower_that_comes_back_and_changes_the_groups_protocol_begins_a_rebalance() -> None:
    """GC staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged"""
    c = Context()
    # In Kafka's test rebalance and session end in the same millisecond; here the session is clearly longer.
    _, follower = c.static_pair(session=2 * SESSION_TIMEOUT)
    assert c.group().select_protocol() == "range"
    answer = c.join(instance="follower", protocols=ROUNDROBIN)
    assert c.state() == "PreparingRebalance"
    c.sleep(REBALANCE_TIMEOUT + 1)
    member = answer.result.member_id
    assert member != follower.member_id
    assert without_list(answer) == good(member, member, 2, "roundrobin")
    assert instances(answer) == ["follower", "leader"]
    assert c.group().is_leader(member)
    assert c.state() == "CompletingRebalance"


def test_a_follower_that_comes_back_is_written_and_fences_its_old_id() -> None:
    """GC staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged"""
    c = Context()
    leader, follower = c.static_pair()
    end = c.end_offset()
    joined = c.join(instance="follower", protocols=PROTOCOLS).result
    assert joined == good(joined.member_id, leader.member_id, 1)
    assert joined.member_id != follower.member_id
    assert c.state() == "Stable"
    assert c.end_offset() == end + 1
    written = stored_members(c)["follower"]
    assert (written.member_id, written.assignment) == (joined.member_id, b"follower's")

    old = c.join(member=follower.member_id, instance="follower", protocols=PROTOCOLS)
    assert old.result == JoinGroupResult(ErrorCode.FENCED_INSTANCE_ID, follower.member_id)
    fenced = c.sync(GROUP, 1, follower.member_id, instance="follower", protocol_type=None)
    assert fenced.result == SyncGroupResult(ErrorCode.FENCED_INSTANCE_ID)
    synced = c.sync(GROUP, 1, joined.member_id, instance="follower", protocol_type=None).result
    assert synced == SyncGroupResult(ErrorCode.NONE, "consumer", "range", b"follower's")


def test_a_follower_that_could_not_be_written_keeps_its_old_id() -> None:
    """GC staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure"""
    c = Context()
    leader, follower = c.static_pair()
    c.topic.fail_next(ErrorCode.MESSAGE_TOO_LARGE)
    failed = c.join(instance="follower", protocols=PROTOCOLS).result
    assert failed == good(NOBODY, leader.member_id, 1)._replace(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert c.state() == "Stable"
    assert c.group().static_members == {"leader": leader.member_id, "follower": follower.member_id}

    # Its protocols are those of before as well: the same ones are no change.
    old = c.join(member=follower.member_id, instance="follower", protocols=PROTOCOL_SUPERSET)
    assert old.result == good(follower.member_id, leader.member_id, 1)
    synced = c.sync(GROUP, 1, follower.member_id, instance="follower", protocol_type=None).result
    assert synced == SyncGroupResult(ErrorCode.NONE, "consumer", "range", b"follower's")


# With other timeouts


def timeouts(c: Context) -> list[tuple[int, int]]:
    return [(member.session_timeout_ms, member.rebalance_timeout_ms) for member in c.group().members.values()]


def test_members_that_come_back_bring_their_new_timeouts() -> None:
    """GC staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange

    Repaired: KAFKA-14009, a static member that comes back brings its new timeouts
    """
    c = Context()
    leader, _ = c.static_pair()
    asked = {"protocols": PROTOCOL_SUPERSET, "session": 2 * SESSION_TIMEOUT, "rebalance": 2 * REBALANCE_TIMEOUT}
    followers = c.join(instance="follower", **asked).result
    assert followers == good(followers.member_id, leader.member_id, 1)
    leaders = c.join(instance="leader", **asked).result
    assert leaders == good(leaders.member_id, leader.member_id, 1)
    assert timeouts(c) == [(1000, 1000)] * 2
    assert [(m.session_timeout, m.rebalance_timeout) for m in stored_members(c).values()] == [(1000, 1000)] * 2
    c.sleep(2 * SESSION_TIMEOUT)
    assert c.state() == "Stable"
    c.sleep(1)
    assert c.state() == "Empty"


def test_a_member_that_could_not_be_written_keeps_its_old_timeouts() -> None:
    """GC staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsButCannotPersistChange

    Repaired: KAFKA-14009, a static member that comes back brings its new timeouts
    """
    c = Context()
    leader, _ = c.static_pair()
    c.topic.fail_next(ErrorCode.MESSAGE_TOO_LARGE)
    asked = {"protocols": PROTOCOL_SUPERSET, "session": 2 * SESSION_TIMEOUT, "rebalance": 2 * REBALANCE_TIMEOUT}
    failed = c.join(instance="follower", **asked).result
    assert failed == good(NOBODY, leader.member_id, 1)._replace(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert timeouts(c) == [(SESSION_TIMEOUT, REBALANCE_TIMEOUT)] * 2
    assert c.state() == "Stable"
    c.sleep(SESSION_TIMEOUT + 1)
    assert c.state() == "Empty"


# What happens while it is being written


def held_rejoin(c: Context, instance: str = "follower") -> Answer[JoinGroupResult]:
    """It comes back, but whether its new id is safe in the log is not known yet."""
    c.topic.hold()
    answer = c.join(instance=instance, protocols=PROTOCOL_SUPERSET)
    assert not answer.is_done
    return answer


def assert_log_agrees(c: Context) -> None:
    """Another coordinator would know the same members."""
    loaded, group = c.restarted().group(), c.group()
    assert (loaded.static_members, loaded.leader_id) == (group.static_members, group.leader_id)


SETTLEMENTS = pytest.mark.parametrize("settle", [OffsetsTopic.release, OffsetsTopic.fail_held])
Settle = Callable[[OffsetsTopic], None]


def test_it_is_told_when_its_new_id_is_safe() -> None:
    c = Context()
    leader, follower = c.static_pair()
    answer = held_rejoin(c)
    c.sleep(100)
    assert not answer.is_done
    assert c.state() == "Stable"
    c.topic.release()
    member = answer.result.member_id
    assert answer.result == good(member, leader.member_id, 1)
    assert member != follower.member_id
    assert_log_agrees(c)


def test_it_is_told_when_its_new_id_was_lost_and_the_old_one_counts_again() -> None:
    c = Context()
    leader, follower = c.static_pair()
    answer = held_rejoin(c)
    assert c.heartbeat(GROUP, follower.member_id, 1, instance="follower") is ErrorCode.FENCED_INSTANCE_ID
    c.topic.fail_held()
    assert answer.result == good(NOBODY, leader.member_id, 1)._replace(error=ErrorCode.NOT_COORDINATOR)
    assert c.heartbeat(GROUP, follower.member_id, 1, instance="follower") is ErrorCode.NONE
    assert c.state() == "Stable"
    assert_log_agrees(c)


@SETTLEMENTS
def test_a_write_that_takes_too_long_is_answered_once_and_counts_if_it_was_made(settle: Settle) -> None:
    c = Context()
    leader, _ = c.static_pair(session=60_000)
    answer = held_rejoin(c)
    c.sleep(c.config.offsets_commit_timeout_ms + 1)
    too_late = good(NOBODY, leader.member_id, 1)._replace(error=ErrorCode.REBALANCE_IN_PROGRESS)
    assert answer.result == too_late
    settle(c.topic)
    assert answer.result == too_late
    assert_log_agrees(c)


def test_a_write_that_outlasts_the_session_leaves_the_member_mortal() -> None:
    c = Context()
    leader, _ = c.static_pair(session=SESSION_TIMEOUT)
    answer = held_rejoin(c)
    for _ in range(3):
        c.sleep(SESSION_TIMEOUT // 2)
        assert c.heartbeat(GROUP, leader.member_id, 1) is ErrorCode.NONE
    c.topic.release()
    assert answer.result.error is ErrorCode.NONE
    c.sleep(SESSION_TIMEOUT)
    assert answer.result.member_id in c.group().members
    c.sleep(1)
    assert answer.result.member_id not in c.group().members


@SETTLEMENTS
@pytest.mark.parametrize("is_settled_first", [True, False])
def test_when_another_joins_meanwhile_it_takes_part_in_that_rebalance(settle: Settle, is_settled_first: bool) -> None:
    c = Context()
    leader, follower = c.static_pair()
    answer = held_rejoin(c)
    newcomer = c.join(protocols=PROTOCOL_SUPERSET)
    assert c.state() == "PreparingRebalance"
    if is_settled_first:
        settle(c.topic)
    assert not answer.is_done
    leaders = c.join(member=leader.member_id, instance="leader", protocols=PROTOCOL_SUPERSET)
    if not is_settled_first:
        settle(c.topic)
    member = answer.result.member_id
    assert member != follower.member_id
    assert answer.result == good(member, leader.member_id, 2)
    assert newcomer.result == good(newcomer.result.member_id, leader.member_id, 2)
    assert without_list(leaders) == good(leader.member_id, leader.member_id, 2)
    assert instances(leaders) == ["", "follower", "leader"]
    assert c.state() == "CompletingRebalance"

    c.topic.release()
    synced = c.sync(GROUP, 2, leader.member_id, {member: b"new"}, instance="leader")
    assert synced.result.error is ErrorCode.NONE
    assert c.sync(GROUP, 2, member, instance="follower").result.assignment == b"new"
    assert_log_agrees(c)


@SETTLEMENTS
def test_when_the_leader_leaves_meanwhile_it_leads_the_next_generation(settle: Settle) -> None:
    c = Context()
    leader, _ = c.static_pair()
    answer = held_rejoin(c)
    c.leave(GROUP, leader.member_id)
    member = answer.result.member_id
    assert without_list(answer) == good(member, member, 2)
    assert instances(answer) == ["follower"]
    settle(c.topic)
    assert c.group().static_members == {"follower": member}
    assert c.state() == "CompletingRebalance"

    # The generation before is over: if it comes back again and that fails, it is who it is in this one.
    c.topic.release()
    assert c.sync(GROUP, 2, member, {member: b""}, instance="follower").result.error is ErrorCode.NONE
    c.topic.fail_next(ErrorCode.KAFKA_STORAGE_ERROR)
    assert c.join(instance="follower", protocols=PROTOCOL_SUPERSET).result.error is ErrorCode.NOT_COORDINATOR
    assert c.group().static_members == {"follower": member}
    assert_log_agrees(c)


@SETTLEMENTS
def test_when_it_leaves_meanwhile_its_join_is_over(settle: Settle) -> None:
    c = Context()
    leader, _ = c.static_pair()
    answer = held_rejoin(c)
    c.leave(GROUP, ("", "follower"))
    assert answer.result == JoinGroupResult(ErrorCode.UNKNOWN_MEMBER_ID, NOBODY)
    settle(c.topic)
    assert c.group().static_members == {"leader": leader.member_id}
    assert c.state() == "PreparingRebalance"


@SETTLEMENTS
def test_when_the_partition_goes_meanwhile_it_is_to_look_elsewhere(settle: Settle) -> None:
    c = Context()
    c.static_pair()
    answer = held_rejoin(c)
    c.resign(c.partition())
    assert answer.result.error is ErrorCode.NOT_COORDINATOR
    assert answer.result.generation_id == -1
    settle(c.topic)
    c.settle()
    assert c.find() is None


@pytest.mark.parametrize("instance", ["leader", "follower"])
def test_when_it_comes_back_twice_the_second_counts(instance: str) -> None:
    c = Context()
    c.static_pair()
    first = held_rejoin(c, instance)
    second = c.join(instance=instance, protocols=PROTOCOL_SUPERSET)
    assert first.result.error is ErrorCode.FENCED_INSTANCE_ID
    assert first.result.generation_id == -1
    c.topic.release_one()
    assert not second.is_done
    c.topic.release_one()
    assert (second.result.error, second.result.generation_id) == (ErrorCode.NONE, 1)
    assert second.result.member_id != first.result.member_id
    assert c.group().static_members[instance] == second.result.member_id
    assert c.state() == "Stable"
    assert_log_agrees(c)


@pytest.mark.parametrize("instance", ["leader", "follower"])
def test_when_it_comes_back_twice_and_neither_is_written_it_is_who_it_was(instance: str) -> None:
    c = Context()
    leader, follower = c.static_pair()
    first = held_rejoin(c, instance)
    second = c.join(instance=instance, protocols=PROTOCOLS, session=2 * SESSION_TIMEOUT)
    c.topic.fail_held()
    assert first.result.error is ErrorCode.FENCED_INSTANCE_ID
    assert (second.result.error, second.result.member_id) == (ErrorCode.NOT_COORDINATOR, NOBODY)
    assert c.group().static_members == {"leader": leader.member_id, "follower": follower.member_id}
    assert timeouts(c) == [(SESSION_TIMEOUT, REBALANCE_TIMEOUT)] * 2
    assert c.state() == "Stable"
    assert_log_agrees(c)


def test_when_it_comes_back_twice_and_only_the_first_is_written_that_one_counts() -> None:
    c = Context()
    c.static_pair()
    first = held_rejoin(c)
    second = c.join(instance="follower", protocols=PROTOCOL_SUPERSET)
    c.topic.release_one()
    c.topic.fail_held()
    assert first.result.error is ErrorCode.FENCED_INSTANCE_ID
    assert second.result.error is ErrorCode.NOT_COORDINATOR
    assert c.group().static_members["follower"] == first.result.member_id
    assert_log_agrees(c)


@SETTLEMENTS
def test_when_it_comes_back_with_another_protocol_meanwhile_the_group_rebalances(settle: Settle) -> None:
    c = Context()
    c.static_pair(session=2 * SESSION_TIMEOUT)
    first = held_rejoin(c)
    second = c.join(instance="follower", protocols=ROUNDROBIN)
    assert first.result.error is ErrorCode.FENCED_INSTANCE_ID
    assert c.state() == "PreparingRebalance"
    settle(c.topic)
    assert not second.is_done
    c.sleep(REBALANCE_TIMEOUT + 1)
    member = second.result.member_id
    assert without_list(second) == good(member, member, 2, "roundrobin")


@SETTLEMENTS
def test_when_all_members_come_back_at_once_each_is_answered(settle: Settle) -> None:
    c = Context()
    leader, follower = c.static_pair()
    answers = [held_rejoin(c, "leader"), held_rejoin(c, "follower")]
    settle(c.topic)
    ids = dict(zip(("leader", "follower"), [answer.result.member_id for answer in answers], strict=True))
    if settle is OffsetsTopic.fail_held:
        assert ids == {"leader": NOBODY, "follower": NOBODY}
        ids = {"leader": leader.member_id, "follower": follower.member_id}
    assert c.group().static_members == ids
    assert c.group().leader_id == ids["leader"]
    assert c.state() == "Stable"
    assert_log_agrees(c)
