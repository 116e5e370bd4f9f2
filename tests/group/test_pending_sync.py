"""Members that have joined and then never ask for their assignment."""

from kohort.errors import ErrorCode
from kohort.group.requests import JoinGroupResult, SyncGroupResult
from tests.group.context import GROUP, INITIAL_DELAY, REBALANCE_TIMEOUT, Context

HALF = REBALANCE_TIMEOUT // 2


def joined_members(c: Context) -> list[JoinGroupResult]:
    """Three that have joined, leader first; half of the time to sync is over, and all of them are alive."""
    ids = [c.join(require_known_id=True).result.member_id for _ in range(3)]
    answers = [c.join(member=member, require_known_id=True) for member in ids]
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    members = [answer.result for answer in answers]
    assert [(joined.error, joined.generation_id) for joined in members] == [(ErrorCode.NONE, 1)] * 3
    assert {joined.leader_id for joined in members} == {ids[0]}
    c.sleep(HALF)
    assert heartbeats(c, members) == [ErrorCode.NONE] * 3
    return members


def heartbeats(c: Context, members: list[JoinGroupResult]) -> list[ErrorCode]:
    return [c.heartbeat(GROUP, member.member_id, member.generation_id) for member in members]


def leader_syncs(c: Context, members: list[JoinGroupResult]) -> None:
    assignment = {member.member_id: b"of " + member.member_id.encode() for member in members}
    leader = members[0].member_id
    synced = c.sync(GROUP, 1, leader, assignment, protocol_name="range").result
    assert synced == SyncGroupResult(ErrorCode.NONE, "consumer", "range", assignment[leader])


def test_when_nobody_syncs_all_are_removed() -> None:
    """GC testRebalanceTimesOutWhenSyncRequestIsNotReceived

    Repaired: KAFKA-12890, members that never ask for their assignment are removed
    """
    c = Context()
    members = joined_members(c)
    c.sleep(HALF + 1)
    assert heartbeats(c, members) == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    assert c.group().members == {}
    assert c.group().generation_id == 2
    assert c.state() == "Empty"


def test_followers_that_do_not_sync_are_removed() -> None:
    """GC testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers

    Repaired: KAFKA-12890, members that never ask for their assignment are removed
    """
    c = Context()
    leader, *followers = members = joined_members(c)
    leader_syncs(c, members)
    assert c.state() == "Stable"
    assert heartbeats(c, [leader]) == [ErrorCode.NONE]
    c.sleep(HALF + 1)
    assert heartbeats(c, [leader]) == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert heartbeats(c, followers) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert set(c.group().members) == {leader.member_id}
    assert c.state() == "PreparingRebalance"


def test_a_leader_that_does_not_sync_is_removed() -> None:
    """GC testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders

    Repaired: KAFKA-12890, members that never ask for their assignment are removed
    """
    c = Context()
    leader, *followers = joined_members(c)
    syncs = [c.sync(GROUP, 1, follower.member_id, protocol_name="range") for follower in followers]
    assert not any(sync.is_done for sync in syncs)
    c.sleep(HALF + 1)
    assert [sync.result for sync in syncs] == [SyncGroupResult(ErrorCode.REBALANCE_IN_PROGRESS)] * 2
    assert heartbeats(c, [leader]) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert heartbeats(c, followers) == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert set(c.group().members) == {follower.member_id for follower in followers}
    assert c.state() == "PreparingRebalance"


def test_when_all_have_synced_nobody_is_removed() -> None:
    """GC testRebalanceDoesNotTimeOutWhenAllSyncAreReceived

    Repaired: KAFKA-12890, members that never ask for their assignment are removed
    """
    c = Context()
    members = joined_members(c)
    leader_syncs(c, members)
    for follower in members[1:]:
        synced = c.sync(GROUP, 1, follower.member_id, protocol_name="range").result
        assert synced == SyncGroupResult(ErrorCode.NONE, "consumer", "range", b"of " + follower.member_id.encode())
    c.sleep(HALF + 1)
    assert heartbeats(c, members) == [ErrorCode.NONE] * 3
    c.sleep(HALF)
    assert heartbeats(c, members) == [ErrorCode.NONE] * 3
    assert c.state() == "Stable"


def test_a_static_member_that_came_back_in_time_has_until_then_to_sync() -> None:
    c = Context()
    leader = c.join(instance="leader", session=2000)
    follower = c.join(instance="follower", session=2000)
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    assert follower.result.error is ErrorCode.NONE
    first = leader.result.member_id
    assert (
        c.sync(GROUP, 1, first, {first: b"", follower.result.member_id: b"follower's"}).result.error is ErrorCode.NONE
    )
    c.sleep(HALF)
    back = c.join(instance="follower", session=2000).result.member_id
    assert c.group().pending_sync_members == (back,)
    synced = c.sync(GROUP, 1, back, instance="follower").result
    assert (synced.error, synced.assignment) == (ErrorCode.NONE, b"follower's")
    c.sleep(HALF + 1)
    assert set(c.group().members) == {first, back}
    assert c.state() == "Stable"


def test_a_static_member_that_is_away_when_a_generation_begins_has_as_long_to_come_back() -> None:
    c = Context()
    leader, follower = c.static_pair(session=5000)
    newcomer = c.join(session=5000)
    c.join(member=leader.member_id, instance="leader", session=5000)
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert newcomer.result.generation_id == 2
    assert follower.member_id in c.group().members
    for member in (leader.member_id, newcomer.result.member_id):
        assert c.sync(GROUP, 2, member).result.error is ErrorCode.NONE
    c.sleep(REBALANCE_TIMEOUT)
    assert c.state() == "Stable"
    c.sleep(1)
    assert c.state() == "PreparingRebalance"
    assert set(c.group().members) == {leader.member_id, newcomer.result.member_id}


def test_the_time_to_sync_begins_anew_with_each_generation() -> None:
    c = Context()
    members = joined_members(c)
    newcomer = c.join()
    again = [c.join(member=member.member_id) for member in members]
    everybody = [answer.result for answer in (*again, newcomer)]
    assert {(joined.error, joined.generation_id) for joined in everybody} == {(ErrorCode.NONE, 2)}
    c.sleep(HALF + 1)
    assert heartbeats(c, everybody) == [ErrorCode.NONE] * 4
    assert c.state() == "CompletingRebalance"
    c.sleep(HALF)
    assert heartbeats(c, everybody) == [ErrorCode.UNKNOWN_MEMBER_ID] * 4
    assert c.state() == "Empty"
