"""A coordinator answers for groups on partitions that it owns and has loaded; all others are told to go elsewhere."""

import pytest

from kohort.config import GroupConfig
from kohort.errors import CorruptLog, ErrorCode
from kohort.group.requests import GroupId, JoinGroupResult, LeaveGroupResult, MemberId, SyncGroupResult
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from tests.group.context import GROUP, INITIAL_DELAY, OTHER_GROUP, Context, only

DAY_MS = 86_400_000


def refused_join(error: ErrorCode, member: str = "") -> JoinGroupResult:
    """Generation -1, no protocol, no leader, no members."""
    return JoinGroupResult(error, MemberId(member))


def test_while_a_partition_loads_its_groups_cannot_be_asked_for() -> None:
    """GC testRequestHandlingWhileLoadingInProgress"""
    c = Context()
    c.topic.hold_loads()
    c.elect(c.partition(OTHER_GROUP))
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert c.join(OTHER_GROUP, "member", require_known_id=True).result == refused_join(loading, "member")
    assert c.join(OTHER_GROUP, "member", instance="instance").result == refused_join(loading, "member")
    assert c.sync(OTHER_GROUP, 1, "member").result == SyncGroupResult(ErrorCode.REBALANCE_IN_PROGRESS)
    assert c.commit({("foo", 0): 15}, OTHER_GROUP, "member", 1).result == {TopicPartition("foo", 0): loading}
    assert c.heartbeat(OTHER_GROUP, "member", 1) is ErrorCode.NONE
    assert c.describe(OTHER_GROUP)[0] is loading
    assert c.coordinator.handle_list_groups() == (loading, [])
    assert c.delete(OTHER_GROUP).result == {OTHER_GROUP: loading}
    assert c.describe(GROUP)[0] is ErrorCode.NONE
    c.topic.finish_loads()
    assert c.describe(OTHER_GROUP)[0] is ErrorCode.NONE
    assert c.coordinator.handle_list_groups() == (ErrorCode.NONE, [])


def test_the_longest_retention_is_not_cut_to_32_bits() -> None:
    """GC testOffsetsRetentionMsIntegerOverflow"""
    assert GroupConfig(offsets_retention_minutes=2_147_483_647).offsets_retention_ms == 128_849_018_820_000
    c = Context(offsets_retention_minutes=2_147_483_647)
    c.commit({("foo", 0): 15})
    c.sleep(100 * 365 * DAY_MS)
    c.coordinator.cleanup_group_metadata()
    assert c.offset("foo", 0) == 15


@pytest.mark.parametrize("instance", [None, "instance"])
def test_a_join_to_a_group_that_is_not_owned_is_told_so(instance: str | None) -> None:
    """GC testJoinGroupWrongCoordinator"""
    c = Context()
    joined = c.join(OTHER_GROUP, instance=instance, require_known_id=instance is None)
    assert joined.result == refused_join(ErrorCode.NOT_COORDINATOR)
    assert c.find(OTHER_GROUP) is None


def test_a_heartbeat_to_a_group_that_is_not_owned_is_told_so() -> None:
    """GC testHeartbeatWrongCoordinator"""
    assert Context().heartbeat(OTHER_GROUP, "member", -1) is ErrorCode.NOT_COORDINATOR


def test_a_sync_to_a_group_that_is_not_owned_is_told_so() -> None:
    """GC testSyncGroupNotCoordinator"""
    assert Context().sync(OTHER_GROUP, 1, "member").result == SyncGroupResult(ErrorCode.NOT_COORDINATOR)


def test_a_leave_from_a_group_that_is_not_owned_is_told_so() -> None:
    """GC testLeaveGroupWrongCoordinator"""
    assert Context().leave(OTHER_GROUP, "member") == LeaveGroupResult(ErrorCode.NOT_COORDINATOR)


def test_a_leave_of_many_from_a_group_that_is_not_owned_gets_one_answer_for_all() -> None:
    """GC testStaticMembersWrongCoordinatorBatchLeaveGroup"""
    left = Context().leave("invalid-group", ("", "leader"), ("", "follower"))
    assert left == LeaveGroupResult(ErrorCode.NOT_COORDINATOR)


def test_describing_a_group_that_is_not_owned_is_refused() -> None:
    """GC testDescribeGroupWrongCoordinator"""
    error, summary = Context().describe(OTHER_GROUP)
    assert error is ErrorCode.NOT_COORDINATOR
    assert summary.members == ()


def test_deleting_a_group_that_is_not_owned_is_refused_for_that_group() -> None:
    """GC testDeleteGroupWithWrongCoordinator"""
    c = Context()
    c.commit({("foo", 0): 15})
    errors = c.delete(OTHER_GROUP, GROUP).result
    assert errors == {OTHER_GROUP: ErrorCode.NOT_COORDINATOR, GROUP: ErrorCode.NONE}


def test_offsets_of_a_group_that_is_not_owned_are_not_told() -> None:
    """GC testFetchOffsetNotCoordinatorForGroup"""
    assert Context().fetch(("foo", 0), group=OTHER_GROUP) == (ErrorCode.NOT_COORDINATOR, {})


def test_only_the_owner_knows_that_a_group_does_not_exist() -> None:
    """GMM testGroupNotExists"""
    c = Context(own=False)
    group_id = GroupId(GROUP)
    assert not c.manager.group_not_exists(group_id)
    c.elect(c.partition())
    assert c.manager.group_not_exists(group_id)
    group = c.manager.add_group(c.manager.new_group(group_id))
    assert group.state is GroupState.EMPTY
    assert not c.manager.group_not_exists(group_id)
    group.transition_to(GroupState.DEAD)
    assert c.manager.group_not_exists(group_id)


def test_a_second_group_of_the_same_id_is_not_added() -> None:
    """GMM testAddGroup"""
    c = Context()
    first, second = c.manager.new_group(GroupId("foo")), c.manager.new_group(GroupId("foo"))
    assert c.manager.add_group(first) is first
    assert c.manager.add_group(second) is first
    assert c.manager.current_groups == (first,)


def test_whoever_waits_when_the_partition_moves_away_is_told_to_look_elsewhere() -> None:
    c = Context()
    joining = c.join()
    c.resign(c.partition())
    assert joining.result.error is ErrorCode.NOT_COORDINATOR
    assert c.find() is None
    assert c.join().result == refused_join(ErrorCode.NOT_COORDINATOR)
    c.sleep(INITIAL_DELAY + 1)
    c.elect(c.partition(), epoch=1)
    assert c.dynamic_join().error is ErrorCode.NONE


def test_a_sync_that_waits_when_the_partition_moves_away_is_told_to_look_elsewhere() -> None:
    c = Context()
    leader, follower = c.join(), c.join()
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    assert leader.result.leader_id == leader.result.member_id
    syncing = c.sync(GROUP, 1, follower.result.member_id)
    c.resign(c.partition())
    assert syncing.result == SyncGroupResult(ErrorCode.NOT_COORDINATOR)


def test_a_coordinator_that_shuts_down_answers_whoever_waits_and_turns_all_others_away() -> None:
    c = Context()
    joining = c.join()
    c.coordinator.shutdown()
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert joining.result.error is gone
    assert c.join().result == refused_join(gone)
    assert c.sync(GROUP, 1, "member").result == SyncGroupResult(gone)
    assert c.heartbeat(GROUP, "member", 1) is gone
    assert c.leave(GROUP, "member") == LeaveGroupResult(gone)
    assert only(c.commit({("foo", 0): 15}).result) is gone
    assert only(c.txn_commit(1000, {("foo", 0): 15}).result) is gone
    assert c.fetch(("foo", 0)) == (gone, {})
    assert c.describe()[0] is gone
    assert c.coordinator.handle_list_groups()[0] is gone
    assert c.delete(GROUP).result == {GROUP: gone}
    assert c.delete_offsets([("foo", 0)]).result == (gone, {})
    c.sleep(DAY_MS)


def test_a_partition_that_could_not_be_loaded_is_owned_by_nobody() -> None:
    c = Context(own=False)
    c.topic.fail_loads(CorruptLog("broken"))
    c.elect(c.partition())
    assert c.join().result == refused_join(ErrorCode.NOT_COORDINATOR)
    assert c.coordinator.handle_list_groups() == (ErrorCode.NONE, [])
    c.topic.fail_loads(None)
    c.elect(c.partition(), epoch=1)
    assert c.dynamic_join().error is ErrorCode.NONE
