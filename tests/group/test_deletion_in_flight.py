"""Deletions on their way: nothing is forgotten before the log has its tombstone, and everybody is answered, once."""

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import GroupKey, OffsetKey
from tests.group.context import GROUP, Context, only

FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
PRODUCER = 1000
MANY = 25_000
AWAY = ErrorCode.COORDINATOR_NOT_AVAILABLE


def offsets_of(c: Context, group: str = GROUP) -> dict[TopicPartition, int]:
    """What a client can read."""
    error, found = c.fetch_all(group)
    assert error is ErrorCode.NONE
    return {partition: told.offset for partition, told in found.items()}


def commit_many(c: Context, number: int, group: str = GROUP, offset: int = 1) -> None:
    for first in range(0, number, 500):
        c.commit({("foo", n): offset for n in range(first, min(first + 500, number))}, group)


def with_empty_group() -> Context:
    """Generation 2, no members, 1 is committed for foo and bar."""
    c = Context()
    joined = c.stable_group()
    c.leave(GROUP, joined.member_id)
    assert only(c.commit({FOO: 1, BAR: 1}).result) is ErrorCode.NONE
    return c


def assert_nobody_may_use(c: Context) -> None:
    """Nor delete it once more."""
    assert c.join().result.error is AWAY
    assert c.join(require_known_id=True).result.error is AWAY
    assert only(c.commit({FOO: 2}).result) is AWAY
    assert only(c.txn_commit(PRODUCER, {FOO: 2}).result) is AWAY
    assert c.delete(GROUP).result == {GROUP: AWAY}
    assert c.delete_offsets([FOO]).result == (AWAY, {})


def assert_usable(c: Context) -> None:
    assert only(c.commit({("baz", 0): 2}).result) is ErrorCode.NONE
    assert c.dynamic_join().error is ErrorCode.NONE


def fail_oldest(c: Context, error: ErrorCode) -> None:
    """The oldest held append did not become safe; the others may."""
    done, _, _ = c.topic._held.pop(0)
    done(error, -1)


# A group


def test_a_group_is_there_to_be_read_and_nothing_else_until_its_tombstone_is_safe() -> None:
    """Repaired: memory forgets what its tombstone in the log has made safe; until then a group that is being deleted is
    COORDINATOR_NOT_AVAILABLE to whoever wants to use it
    """
    c = with_empty_group()
    c.topic.hold()
    answer = c.delete(GROUP)
    assert c.topic.held == 1
    assert not answer.is_done
    assert offsets_of(c) == {FOO: 1, BAR: 1}
    assert c.describe()[1].state == "Empty"
    assert_nobody_may_use(c)
    assert c.topic.held == 1
    c.topic.release()
    assert answer.result == {GROUP: ErrorCode.NONE}
    assert c.find() is None
    assert offsets_of(c) == {}
    assert c.restarted().find() is None
    assert_usable(c)


@pytest.mark.parametrize("is_held", [False, True])
def test_if_a_groups_tombstone_is_not_written_everything_is_as_before(is_held: bool) -> None:
    c = with_empty_group()
    if is_held:
        c.topic.hold()
        answer = c.delete(GROUP)
        c.topic.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
        c.topic.release()
    else:
        c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
        answer = c.delete(GROUP)
    assert answer.result == {GROUP: AWAY}
    assert offsets_of(c) == offsets_of(c.restarted()) == {FOO: 1, BAR: 1}
    assert (c.state(), c.group().generation_id) == ("Empty", 2)
    assert_usable(c)


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR])
def test_a_deletion_that_fails_is_answered_with_what_it_means(error: ErrorCode) -> None:
    """Repaired: DeleteGroups and OffsetDelete tell when their tombstones could not be written (2.6.3: NONE whatever
    became of them)
    """
    c = with_empty_group()
    c.topic.fail_next(error, 2)
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NOT_COORDINATOR}
    assert c.delete_offsets([FOO]).result == (ErrorCode.NONE, {FOO: ErrorCode.NOT_COORDINATOR})
    assert offsets_of(c) == {FOO: 1, BAR: 1}


def test_a_commit_that_was_on_its_way_goes_with_its_group() -> None:
    c = with_empty_group()
    c.topic.hold()
    commit, txn_commit = c.commit({("baz", 0): 5}), c.txn_commit(PRODUCER, {("baz", 1): 5})
    answer = c.delete(GROUP)
    c.topic.release()
    assert only(commit.result) is only(txn_commit.result) is ErrorCode.NONE
    assert answer.result == {GROUP: ErrorCode.NONE}
    assert c.find() is None
    c.end_txn(PRODUCER, c.partition(), is_commit=True)
    assert offsets_of(c) == {}
    assert c.restarted().find() is None


def test_a_group_whose_tombstone_takes_too_long_goes_when_it_is_safe() -> None:
    c = with_empty_group()
    c.topic.hold()
    answer = c.delete(GROUP)
    c.sleep(5000)
    assert not answer.is_done
    c.sleep(1)
    assert answer.result == {GROUP: ErrorCode.REQUEST_TIMED_OUT}
    assert offsets_of(c) == {FOO: 1, BAR: 1}
    assert_nobody_may_use(c)
    c.topic.release()
    assert c.find() is None
    assert c.restarted().find() is None


def test_a_group_that_goes_elsewhere_while_it_is_deleted() -> None:
    c = with_empty_group()
    c.topic.hold()
    answer = c.delete(GROUP)
    c.resign(c.partition())
    c.topic.fail_held(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answer.result == {GROUP: ErrorCode.NOT_COORDINATOR}
    c.topic.release()
    c.elect(c.partition(), 1)
    assert offsets_of(c) == {FOO: 1, BAR: 1}
    assert_usable(c)


def test_groups_that_are_deleted_together_are_answered_together() -> None:
    c = with_empty_group()
    c.commit({FOO: 1}, "foo")
    c.topic.hold()
    answer = c.delete(GROUP, "foo", "missing")
    assert c.topic.held == 2
    c.topic.release_one()
    assert not answer.is_done
    assert c.find() is None
    c.topic.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert answer.result == {GROUP: ErrorCode.NONE, "foo": AWAY, "missing": ErrorCode.GROUP_ID_NOT_FOUND}
    assert offsets_of(c, "foo") == {FOO: 1}


# Offsets


def test_an_offset_can_be_read_until_its_tombstone_is_safe() -> None:
    c = with_empty_group()
    c.topic.hold()
    answer = c.delete_offsets([FOO])
    assert not answer.is_done
    assert offsets_of(c) == {FOO: 1, BAR: 1}
    c.topic.release()
    assert answer.result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 1}


@pytest.mark.parametrize("going", [[FOO], [FOO, BAR]])
def test_if_the_tombstones_of_offsets_are_not_written_everything_is_as_before(going: list[TopicPartition]) -> None:
    c = with_empty_group()
    c.topic.hold()
    answer = c.delete_offsets(going)
    c.topic.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.topic.release()
    assert answer.result == (ErrorCode.NONE, dict.fromkeys(going, AWAY))
    assert offsets_of(c) == offsets_of(c.restarted()) == {FOO: 1, BAR: 1}
    assert_usable(c)


def test_a_group_that_goes_with_its_last_offset_cannot_be_used_meanwhile() -> None:
    c = with_empty_group()
    c.topic.hold()
    answer = c.delete_offsets([FOO, BAR])
    assert offsets_of(c) == {FOO: 1, BAR: 1}
    assert_nobody_may_use(c)
    c.topic.release()
    assert answer.result == (ErrorCode.NONE, {FOO: ErrorCode.NONE, BAR: ErrorCode.NONE})
    assert c.find() is None
    assert c.restarted().find() is None


def test_a_commit_behind_a_tombstone_survives_it() -> None:
    c = with_empty_group()
    c.topic.hold()
    answer, commit = c.delete_offsets([FOO]), c.commit({FOO: 5})
    assert c.topic.held == 2
    c.topic.release_one()
    assert answer.result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert not commit.is_done
    assert offsets_of(c) == {BAR: 1}
    c.topic.release()
    assert only(commit.result) is ErrorCode.NONE
    assert offsets_of(c) == offsets_of(c.restarted()) == {FOO: 5, BAR: 1}


def test_a_transactional_commit_behind_a_tombstone_survives_it() -> None:
    c = with_empty_group()
    c.txn_commit(PRODUCER, {FOO: 4})
    c.topic.hold()
    c.delete_offsets([FOO])
    c.txn_commit(PRODUCER, {FOO: 5})
    c.topic.release()
    assert offsets_of(c) == {BAR: 1}
    successor = c.restarted()
    c.end_txn(PRODUCER, c.partition(), is_commit=True)
    successor.coordinator.handle_txn_completion(PRODUCER, [c.partition()], is_commit=True)
    assert offsets_of(c) == offsets_of(successor) == offsets_of(c.restarted()) == {FOO: 5, BAR: 1}


def test_a_commit_that_was_on_its_way_is_deleted_too() -> None:
    c = with_empty_group()
    c.topic.hold()
    commit, answer = c.commit({FOO: 5}), c.delete_offsets([FOO])
    c.topic.release()
    assert only(commit.result) is ErrorCode.NONE
    assert answer.result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 1}


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_commit_on_its_way_keeps_its_group_from_going(is_transactional: bool) -> None:
    c = with_empty_group()
    c.topic.hold()
    if is_transactional:
        c.txn_commit(PRODUCER, {("baz", 0): 5})
    else:
        c.commit({("baz", 0): 5})
    c.delete_offsets([FOO, BAR])
    c.topic.release()
    c.end_txn(PRODUCER, c.partition(), is_commit=True)
    assert offsets_of(c) == offsets_of(c.restarted()) == {("baz", 0): 5}


def test_offsets_whose_tombstones_take_too_long_go_when_they_are_safe() -> None:
    c = with_empty_group()
    c.topic.hold()
    answer = c.delete_offsets([FOO])
    c.sleep(5001)
    assert answer.result == (ErrorCode.NONE, {FOO: ErrorCode.REQUEST_TIMED_OUT})
    assert offsets_of(c) == {FOO: 1, BAR: 1}
    c.topic.release()
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 1}


# Two deletions at a time


def test_a_deletion_that_fails_does_not_free_a_group_that_another_deletes() -> None:
    c = with_empty_group()
    c.topic.hold()
    offsets, group = c.delete_offsets([FOO]), c.delete(GROUP)
    fail_oldest(c, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert offsets.result == (ErrorCode.NONE, {FOO: AWAY})
    assert not group.is_done
    assert_nobody_may_use(c)
    c.topic.release()
    assert group.result == {GROUP: ErrorCode.NONE}
    assert c.find() is None
    assert c.restarted().find() is None


def test_a_group_that_lost_its_last_offset_before_its_turn_is_deleted_all_the_same() -> None:
    c = Context(offsets_topic_num_partitions=1)
    groups = [f"group-{number}" for number in range(2_000)]
    for group in groups:
        c.commit({FOO: 1}, group)
    c.coordinator.handle_deleted_partitions([FOO])
    assert c.find(groups[-1]) is not None
    answer = c.delete(groups[-1])
    c.settle()
    assert answer.result == {groups[-1]: ErrorCode.NONE}
    assert c.manager.current_groups == ()


# In steps


def test_a_large_group_is_deleted_in_several_batches_and_answered_once() -> None:
    c = with_empty_group()
    commit_many(c, MANY)
    start = c.end_offset()
    answer = c.delete(GROUP)
    assert not answer.is_done
    assert 0 < len(offsets_of(c)) < MANY
    assert_nobody_may_use(c)
    assert only(c.commit({FOO: 1}, "foo").result) is ErrorCode.NONE
    c.settle()
    assert answer.result == {GROUP: ErrorCode.NONE}
    assert c.find() is None
    batches = c.topic.batches(c.partition(), start)
    assert len(batches) >= 10
    assert max(len(batch.records) for batch in batches) <= 1_001
    keys = [key for key, told in c.records(start=start) if told is None]
    assert len(keys) == len(set(keys)) == MANY + 2
    assert keys[-1] == GroupKey(GROUP)
    assert c.restarted().find() is None
    assert offsets_of(c.restarted(), "foo") == {FOO: 1}


def test_many_offsets_are_deleted_in_several_batches_and_answered_once() -> None:
    c = with_empty_group()
    commit_many(c, MANY)
    start = c.end_offset()
    asked = [TopicPartition("foo", n) for n in range(MANY)]
    answer = c.delete_offsets(asked)
    c.settle()
    assert answer.result == (ErrorCode.NONE, dict.fromkeys(asked, ErrorCode.NONE))
    assert len(c.topic.batches(c.partition(), start)) >= 10
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 1}
    assert c.coordinator.snapshot()["offset-deletion-count"] == MANY


def test_if_a_later_batch_of_a_large_group_fails_what_is_left_can_be_used() -> None:
    c = with_empty_group()
    commit_many(c, MANY)
    answer = c.delete(GROUP)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.settle()
    assert answer.result == {GROUP: AWAY}
    assert 0 < len(offsets_of(c)) < MANY
    assert offsets_of(c) == offsets_of(c.restarted())
    assert only(c.commit({BAR: 5}).result) is ErrorCode.NONE
    answer = c.delete(GROUP)
    c.settle()
    assert answer.result == {GROUP: ErrorCode.NONE}
    assert c.restarted().find() is None


def test_a_large_group_that_goes_elsewhere_between_two_batches() -> None:
    c = with_empty_group()
    commit_many(c, MANY)
    answer = c.delete(GROUP)
    left, end = offsets_of(c), c.end_offset()
    c.resign(c.partition())
    c.settle()
    assert answer.result == {GROUP: ErrorCode.NOT_COORDINATOR}
    assert c.end_offset() == end
    c.elect(c.partition(), 1)
    assert offsets_of(c) == left
    assert_usable(c)


@pytest.mark.parametrize("name", ["g" * 0x8000, "\u20ac" * 10_923])
def test_a_name_that_fits_into_no_record_is_no_groups(name: str) -> None:
    c = Context(offsets_topic_num_partitions=1)
    invalid = ErrorCode.INVALID_GROUP_ID
    assert c.join(name).result.error is invalid
    assert only(c.commit({FOO: 1}, name).result) is invalid
    assert only(c.txn_commit(PRODUCER, {FOO: 1}, name).result) is invalid
    assert c.fetch(FOO, group=name) == (invalid, {})
    assert c.describe(name)[0] is invalid
    assert c.delete(name).result == {name: invalid}
    assert c.delete_offsets([FOO], name).result == (invalid, {})
    assert c.find(name) is None


def test_names_of_any_length_that_fit_are_deleted() -> None:
    c = Context(offsets_topic_num_partitions=1)
    group, topics = "\u20ac" * 10_922, ["\u20ac" * 10_922, "t" * 0x7FFF]
    for n in range(20):
        c.commit({(topic, n): 1 for topic in topics}, group)
    start = c.end_offset()
    answer = c.delete(group)
    c.settle()
    assert answer.result == {group: ErrorCode.NONE}
    assert len(c.topic.batches(0, start)) > 1
    assert c.records(start=start)[0] == (OffsetKey(group, topics[0], 0), None)
    assert c.restarted(offsets_topic_num_partitions=1).find(group) is None
