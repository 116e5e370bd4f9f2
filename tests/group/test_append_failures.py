"""Every write of the coordinator against every way in which it can fail: the answer is as mapped, nothing is half done,
whoever waits gets an answer, and the same thing succeeds afterwards."""

from collections.abc import Callable
from typing import Any

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from tests.group.context import GROUP, INITIAL_DELAY, PROTOCOL_SUPERSET, Context, only

FOO, BAR = ("foo", 0), ("bar", 0)

COMMIT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.CORRUPT_MESSAGE: ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
}
GROUP_ERRORS = COMMIT_ERRORS | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
}

each_commit_error = pytest.mark.parametrize(("error", "told"), COMMIT_ERRORS.items(), ids=lambda code: code.name)
each_group_error = pytest.mark.parametrize(("error", "told"), GROUP_ERRORS.items(), ids=lambda code: code.name)


def failing(c: Context, error: ErrorCode, ask: Callable[[], Any]) -> Any:
    """Ask for something whose write fails in this way, at once or because it takes too long and is lost then."""
    if error is not ErrorCode.REQUEST_TIMED_OUT:
        c.topic.fail_next(error)
        return ask()
    c.topic.hold()
    answer = ask()
    c.sleep(c.config.offsets_commit_timeout_ms + 1)
    return answer


def lost(c: Context) -> None:
    """What took too long never came to be."""
    c.topic.fail_held()
    c.topic.release()


def assert_log_agrees(c: Context) -> None:
    """What a restart would find is what is in memory."""
    other = c.restarted()
    told = [each.fetch_all()[1] for each in (c, other)]
    assert told[0] == told[1]
    shown = [[group.overview() for group in each.manager.current_groups] for each in (c, other)]
    assert shown[0] == shown[1]


@each_commit_error
def test_a_commit_that_fails_leaves_nothing_behind(error: ErrorCode, told: ErrorCode) -> None:
    c = Context()
    c.commit({FOO: 1})
    answer = failing(c, error, lambda: c.commit({FOO: 2, BAR: 2}))
    assert only(answer.result) is told
    lost(c)
    assert c.offset(*FOO) == 1
    assert c.offset(*BAR) == -1
    assert not c.group().offsets.has_pending_for(TopicPartition(*FOO))
    assert_log_agrees(c)
    assert only(c.commit({FOO: 3}).result) is ErrorCode.NONE
    assert c.offset(*FOO) == 3


@each_commit_error
def test_a_transactional_commit_that_fails_leaves_nothing_behind(error: ErrorCode, told: ErrorCode) -> None:
    c = Context()
    c.commit({FOO: 1})
    answer = failing(c, error, lambda: c.txn_commit(7, {FOO: 2}))
    assert only(answer.result) is told
    lost(c)
    assert not c.group().offsets.has_pending_from(7)
    assert not c.manager.is_group_open_for_producer(7, GROUP)
    c.end_txn(7, c.partition(), is_commit=True)
    assert c.offset(*FOO) == 1
    assert only(c.txn_commit(7, {FOO: 3}).result) is ErrorCode.NONE
    c.end_txn(7, c.partition(), is_commit=True)
    assert c.offset(*FOO) == 3


@each_group_error
def test_an_assignment_that_is_not_written_is_nobodys(error: ErrorCode, told: ErrorCode) -> None:
    c = Context()
    leader = c.dynamic_join(session=60_000, rebalance=60_000)
    follower = c.join(session=60_000, rebalance=60_000)
    leader = c.join(member=leader.member_id, session=60_000, rebalance=60_000).result
    parked = c.sync(GROUP, 2, follower.result.member_id)
    assigned = {leader.member_id: b"l", follower.result.member_id: b"f"}
    answer = failing(c, error, lambda: c.sync(GROUP, 2, leader.member_id, assigned))
    for sync in (answer, parked):
        assert (sync.result.error, sync.result.assignment) == (told, b"")
    assert c.state() == "PreparingRebalance"
    lost(c)
    joins = [
        c.join(member=member, session=60_000, rebalance=60_000)
        for member in (leader.member_id, follower.result.member_id)
    ]
    assert [join.result.generation_id for join in joins] == [3, 3]
    assert c.sync(GROUP, 3, leader.member_id, assigned).result.assignment == b"l"
    assert c.sync(GROUP, 3, follower.result.member_id).result.assignment == b"f"
    assert_log_agrees(c)


@each_group_error
def test_an_empty_generation_that_is_not_written_is_empty_all_the_same(error: ErrorCode, told: ErrorCode) -> None:
    assert told is not ErrorCode.NONE
    c = Context()
    member = c.stable_group(session=600_000).member_id
    left = failing(c, error, lambda: c.leave(GROUP, member))
    assert left.members[0].error is ErrorCode.NONE
    assert c.state() == "Empty"
    lost(c)
    again = c.stable_group()
    assert again.generation_id == 3
    assert_log_agrees(c)


@each_group_error
def test_a_static_member_whose_new_id_is_not_written_is_who_it_was(error: ErrorCode, told: ErrorCode) -> None:
    c = Context()
    leader, follower = c.static_pair(session=60_000)
    rejoin = failing(c, error, lambda: c.join(instance="follower", protocols=PROTOCOL_SUPERSET, session=60_000))
    assert rejoin.result._replace(protocol_type=None, protocol_name=None) == rejoin.result._replace(
        error=told, member_id="", generation_id=1, protocol_type=None, protocol_name=None, leader_id=leader.member_id
    )
    lost(c)
    assert c.heartbeat(GROUP, follower.member_id, 1, instance="follower") is ErrorCode.NONE
    assert c.state() == "Stable"
    assert_log_agrees(c)
    assert c.join(instance="follower", protocols=PROTOCOL_SUPERSET).result.error is ErrorCode.NONE


@each_commit_error
def test_offsets_whose_tombstones_are_not_written_stay(error: ErrorCode, told: ErrorCode) -> None:
    c = Context()
    c.commit({FOO: 1, BAR: 2})
    answer = failing(c, error, lambda: c.delete_offsets([FOO]))
    assert answer.result == (ErrorCode.NONE, {FOO: told})
    lost(c)
    assert (c.offset(*FOO), c.offset(*BAR)) == (1, 2)
    assert_log_agrees(c)
    assert c.delete_offsets([FOO]).result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert (c.offset(*FOO), c.offset(*BAR)) == (-1, 2)


@each_commit_error
def test_a_group_whose_tombstone_is_not_written_stays(error: ErrorCode, told: ErrorCode) -> None:
    c = Context()
    c.leave(GROUP, c.stable_group().member_id)
    c.commit({FOO: 1})
    answer = failing(c, error, lambda: c.delete(GROUP))
    assert answer.result == {GROUP: told}
    lost(c)
    assert (c.state(), c.offset(*FOO)) == ("Empty", 1)
    assert_log_agrees(c)
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NONE}
    assert c.find() is None


@each_commit_error
def test_what_has_expired_stays_if_its_tombstones_are_not_written(error: ErrorCode, told: ErrorCode) -> None:
    assert told is not ErrorCode.NONE
    c = Context(offsets_retention_minutes=1)
    c.commit({FOO: 1, BAR: 2})
    c.clock.advance(60_001)
    failing(c, error, c.coordinator.cleanup_group_metadata)
    lost(c)
    assert (c.offset(*FOO), c.offset(*BAR)) == (1, 2)
    assert_log_agrees(c)
    c.coordinator.cleanup_group_metadata()
    c.settle()
    assert c.find() is None


@each_commit_error
def test_offsets_of_deleted_topics_stay_if_their_tombstones_are_not_written(error: ErrorCode, told: ErrorCode) -> None:
    assert told is not ErrorCode.NONE
    c = Context()
    c.commit({FOO: 1, BAR: 2})
    failing(c, error, lambda: c.coordinator.handle_deleted_partitions([TopicPartition(*FOO)]))
    lost(c)
    assert (c.offset(*FOO), c.offset(*BAR)) == (1, 2)
    c.coordinator.handle_deleted_partitions([TopicPartition(*FOO)])
    c.sleep(INITIAL_DELAY)
    assert (c.offset(*FOO), c.offset(*BAR)) == (-1, 2)
    assert_log_agrees(c)
