"""Tombstones on their way: memory forgets when the log has them, whatever happens meanwhile, and in small steps."""

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import GroupKey
from tests.group.context import GROUP, Context, only, subscription
from tests.group.log_builder import offsets_of

RETENTION = 60_000
FOO_0, FOO_1 = ("foo", 0), ("foo", 1)


def with_offsets(number: int, group: str = GROUP, c: Context | None = None) -> Context:
    """A simple consumer's offsets, foo-0 to foo-(number - 1), all 37 and not expired yet."""
    c = c or Context(offsets_retention_minutes=1)
    for first in range(0, number, 500):
        c.commit({("foo", n): 37 for n in range(first, min(first + 500, number))}, group)
    return c


def expire(c: Context) -> None:
    c.clock.advance(RETENTION)
    c.coordinator.cleanup_group_metadata()


def assert_as_after_a_restart(c: Context) -> None:
    """What is in memory is what the log says."""
    successor = c.restarted(offsets_retention_minutes=1)
    ours, theirs = c.manager.current_groups, successor.manager.current_groups
    assert {group.group_id: dict(group.offsets.items()) for group in ours} == {
        group.group_id: dict(group.offsets.items()) for group in theirs
    }


# Before the log has them


def test_offsets_can_be_read_until_their_tombstone_is_safe() -> None:
    c = with_offsets(2)
    c.topic.hold()
    expire(c)
    assert c.topic.held == 1
    assert (c.offset(*FOO_0), c.offset(*FOO_1)) == (37, 37)
    assert c.coordinator.snapshot()["offset-expiration-count"] == 0
    c.topic.release()
    assert c.find() is None
    assert (c.offset(*FOO_0), c.offset(*FOO_1)) == (-1, -1)
    assert c.coordinator.snapshot()["offset-expiration-count"] == 2


def test_a_group_that_is_about_to_go_cannot_be_used() -> None:
    c = with_offsets(2)
    c.topic.hold()
    expire(c)
    away = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert only(c.commit({FOO_0: 38}).result) is away
    assert only(c.txn_commit(1000, {FOO_0: 38}).result) is away
    assert c.join().result.error is away
    assert c.delete(GROUP).result == {GROUP: away}
    assert c.delete_offsets([FOO_0]).result == (away, {})
    c.topic.release()
    assert only(c.commit({FOO_0: 38}).result) is ErrorCode.NONE
    assert offsets_of(c) == {FOO_0: 38}
    assert_as_after_a_restart(c)


def active_group() -> tuple[Context, str]:
    """A Stable group subscribed to bar, with expired offsets for foo; it does not go with them."""
    c = Context(offsets_retention_minutes=1)
    joined = c.stable_group(protocols=(("range", subscription("bar")),), session=600_000)
    c.commit({FOO_0: 37, FOO_1: 37}, member=joined.member_id, generation=1)
    c.clock.advance(RETENTION)
    return c, joined.member_id


def test_a_commit_between_a_tombstone_and_its_confirmation_survives() -> None:
    c, member = active_group()
    c.topic.hold()
    c.coordinator.cleanup_group_metadata()
    commit = c.commit({FOO_0: 38}, member=member, generation=1)
    c.topic.release()
    assert only(commit.result) is ErrorCode.NONE
    assert offsets_of(c) == {FOO_0: 38}
    assert_as_after_a_restart(c)


def test_a_transactional_commit_between_a_tombstone_and_its_confirmation_survives() -> None:
    c, _ = active_group()
    c.topic.hold()
    c.coordinator.cleanup_group_metadata()
    c.txn_commit(1000, {FOO_0: 38})
    c.topic.release()
    assert offsets_of(c) == {}
    c.end_txn(1000, c.partition(), is_commit=True)
    assert offsets_of(c) == {FOO_0: 38}
    assert_as_after_a_restart(c)


def test_a_commit_on_its_way_protects_its_partition() -> None:
    c, member = active_group()
    c.topic.hold()
    c.commit({FOO_0: 38}, member=member, generation=1)
    c.coordinator.cleanup_group_metadata()
    c.topic.release()
    assert offsets_of(c) == {FOO_0: 38}
    assert_as_after_a_restart(c)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_pending_transactional_commit_protects_its_partition(is_commit: bool) -> None:
    """Repaired: an offset with a transactional commit pending does not expire: 2.6.3 looks at plain commits only, and
    its tombstone
    would end the pending commit in the log
    """
    c = with_offsets(2)
    c.txn_commit(1000, {FOO_0: 38})
    expire(c)
    assert offsets_of(c) == {FOO_0: 37}
    c.coordinator.cleanup_group_metadata()
    assert offsets_of(c) == {FOO_0: 37}
    c.end_txn(1000, c.partition(), is_commit=is_commit)
    assert offsets_of(c) == {FOO_0: 38 if is_commit else 37}
    assert_as_after_a_restart(c)
    c.coordinator.cleanup_group_metadata()
    assert c.find() is None


def test_a_group_with_nothing_but_a_pending_transactional_commit_stays() -> None:
    c = Context()
    c.txn_commit(1000, {FOO_0: 38})
    c.coordinator.cleanup_group_metadata()
    c.end_txn(1000, c.partition(), is_commit=True)
    assert offsets_of(c) == {FOO_0: 38}


# What fails


@pytest.mark.parametrize("is_held", [False, True])
def test_tombstones_that_were_not_written_leave_everything_in_place(is_held: bool) -> None:
    c = with_offsets(2)
    end = c.end_offset()
    if is_held:
        c.topic.hold()
        expire(c)
        c.topic.fail_held()
        c.topic.release()
    else:
        c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
        expire(c)
    assert c.end_offset() == end
    assert offsets_of(c) == {FOO_0: 37, FOO_1: 37}
    assert only(c.commit({FOO_0: 38}).result) is ErrorCode.NONE
    assert c.coordinator.snapshot()["offset-expiration-count"] == 0

    c.coordinator.cleanup_group_metadata()
    assert offsets_of(c) == {FOO_0: 38}
    assert_as_after_a_restart(c)
    expire(c)
    assert c.find() is None
    assert c.coordinator.snapshot()["offset-expiration-count"] == 2


def test_a_group_tombstone_that_was_not_written_leaves_the_group_to_be_used() -> None:
    c = Context()
    joined = c.stable_group()
    c.leave(GROUP, joined.member_id)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.coordinator.cleanup_group_metadata()
    assert c.state() == "Empty"
    again = c.join()
    c.sleep(51)
    assert (again.result.error, again.result.generation_id) == (ErrorCode.NONE, 3)
    c.leave(GROUP, again.result.member_id)
    c.coordinator.cleanup_group_metadata()
    assert c.find() is None
    assert c.records()[-1] == (GroupKey(GROUP), None)


def test_a_tombstone_that_takes_too_long_still_counts_when_it_is_safe() -> None:
    c = with_offsets(2)
    c.topic.hold()
    expire(c)
    c.sleep(5_001)
    assert offsets_of(c) == {FOO_0: 37, FOO_1: 37}
    assert only(c.commit({FOO_0: 38}).result) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    c.topic.release()
    assert c.find() is None
    assert_as_after_a_restart(c)


def test_another_sweep_while_tombstones_are_on_their_way_does_no_harm() -> None:
    c, member = active_group()
    c.topic.hold()
    c.coordinator.cleanup_group_metadata()
    c.coordinator.cleanup_group_metadata()
    c.topic.release()
    assert offsets_of(c) == {}
    assert c.coordinator.snapshot()["offset-expiration-count"] == 2
    c.commit({FOO_0: 38}, member=member, generation=1)
    c.coordinator.cleanup_group_metadata()
    assert offsets_of(c) == {FOO_0: 38}
    assert_as_after_a_restart(c)


def test_a_failed_removal_does_not_free_a_group_whose_end_is_on_its_way() -> None:
    c = with_offsets(2)
    c.topic.hold()
    deleted = c.delete(GROUP)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.coordinator.handle_deleted_partitions([TopicPartition(*FOO_1)])
    commit = c.commit({FOO_0: 38})
    while c.topic.held:
        c.topic.release_one()
    assert deleted.result == {GROUP: ErrorCode.NONE}
    assert only(commit.result) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert c.find() is None
    assert_as_after_a_restart(c)
