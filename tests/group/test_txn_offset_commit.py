"""Transactional offset commits: pending until their producer's marker, whoever the producer and wherever the group."""

from collections.abc import Mapping

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import GroupId, PartitionData
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import OffsetKey
from tests.group.context import GROUP, OTHER_GROUP, Answer, Context, only, value

FOO_0, FOO_1 = TopicPartition("foo", 0), TopicPartition("foo", 1)
TOPIC_1, TOPIC_2 = TopicPartition("topic1", 0), TopicPartition("topic2", 0)
PRODUCER = 1000
OTHER_PRODUCER = 1005
UNSTABLE = PartitionData(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
TOO_LONG = "s" * 4097


def end(c: Context, producer: int = PRODUCER, *, is_commit: bool, group: str = GROUP) -> None:
    """The marker is written to the group's partition."""
    c.end_txn(producer, c.partition(group), is_commit=is_commit)


def stable(c: Context, *partitions: TopicPartition) -> list[PartitionData]:
    error, found = c.fetch(*partitions, require_stable=True)
    assert error is ErrorCode.NONE
    return [found[partition] for partition in partitions]


# Markers


def test_a_transactional_commit_counts_from_its_commit_marker_on() -> None:
    """GC testBasicFetchTxnOffsets"""
    c = Context()
    assert c.txn_commit(PRODUCER, {FOO_0: 0}).result == {FOO_0: ErrorCode.NONE}
    assert c.offset(*FOO_0) == -1
    end(c, is_commit=True)
    assert c.offset(*FOO_0) == 0


def test_an_aborted_commit_never_counts() -> None:
    """GC testFetchTxnOffsetsWithAbort"""
    c = Context()
    assert c.txn_commit(PRODUCER, {FOO_0: 0}).result == {FOO_0: ErrorCode.NONE}
    assert c.offset(*FOO_0) == -1
    end(c, is_commit=False)
    assert c.offset(*FOO_0) == -1


def test_a_partition_is_unstable_until_the_abort_marker() -> None:
    """GC testFetchPendingTxnOffsetsWithAbort"""
    c = Context()
    assert c.txn_commit(PRODUCER, {FOO_0: 0}).result == {FOO_0: ErrorCode.NONE}
    assert stable(c, FOO_0, TopicPartition("non-exist-topic", 0)) == [UNSTABLE, PartitionData()]
    assert UNSTABLE.offset == -1
    end(c, is_commit=False)
    assert stable(c, FOO_0) == [PartitionData(-1)]


def test_a_partition_is_unstable_until_the_commit_marker() -> None:
    """GC testFetchPendingTxnOffsetsWithCommit"""
    c = Context()
    assert c.txn_commit(PRODUCER, {FOO_0: 25}).result == {FOO_0: ErrorCode.NONE}
    assert stable(c, FOO_0) == [UNSTABLE]
    end(c, is_commit=True)
    assert stable(c, FOO_0) == [PartitionData(25)]


def test_a_commit_marker_behind_an_abort_marker_changes_nothing() -> None:
    """GC testFetchTxnOffsetsIgnoreSpuriousCommit"""
    c = Context()
    assert c.txn_commit(PRODUCER, {FOO_0: 0}).result == {FOO_0: ErrorCode.NONE}
    assert c.offset(*FOO_0) == -1
    end(c, is_commit=False)
    assert c.offset(*FOO_0) == -1
    end(c, is_commit=True)
    assert c.offset(*FOO_0) == -1


def test_a_marker_counts_for_the_groups_of_its_partition_only() -> None:
    """GC testFetchTxnOffsetsOneProducerMultipleGroups"""
    c = Context()
    assert c.partition(GROUP) != c.partition(OTHER_GROUP)
    c.elect(c.partition(OTHER_GROUP))
    assert only(c.txn_commit(PRODUCER, {TOPIC_1: 10}, GROUP).result) is ErrorCode.NONE
    assert only(c.txn_commit(PRODUCER, {TOPIC_2: 15}, OTHER_GROUP).result) is ErrorCode.NONE

    def offsets() -> list[int]:
        return [c.offset(*partition, group=group) for group in (GROUP, OTHER_GROUP) for partition in (TOPIC_1, TOPIC_2)]

    end(c, is_commit=True, group=GROUP)
    assert offsets() == [10, -1, -1, -1]
    end(c, is_commit=True, group=OTHER_GROUP)
    assert offsets() == [10, -1, -1, 15]


def test_a_marker_counts_for_its_own_producer_only() -> None:
    """GC testFetchTxnOffsetsMultipleProducersOneGroup"""
    c = Context()
    assert only(c.txn_commit(PRODUCER, {TOPIC_1: 10}).result) is ErrorCode.NONE
    assert only(c.txn_commit(OTHER_PRODUCER, {TOPIC_2: 15}).result) is ErrorCode.NONE
    end(c, PRODUCER, is_commit=True)
    assert (c.offset(*TOPIC_1), c.offset(*TOPIC_2)) == (10, -1)
    end(c, OTHER_PRODUCER, is_commit=True)
    assert (c.offset(*TOPIC_1), c.offset(*TOPIC_2)) == (10, 15)


def test_a_transactional_commit_is_part_of_its_producers_transaction() -> None:
    c = Context()
    committed = value(5, "m", time=c.clock.now_ms())
    c.txn_commit(PRODUCER, {FOO_0: committed}, producer_epoch=3)
    (batch,) = c.topic.batches(c.partition())
    header = batch.header
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (PRODUCER, 3, 0)
    assert c.records() == [(OffsetKey(GROUP, *FOO_0), committed)]


def test_a_pending_commit_is_pending_after_a_restart_too() -> None:
    c = Context()
    c.txn_commit(PRODUCER, {FOO_0: 25})
    c = c.restarted()
    assert stable(c, FOO_0) == [UNSTABLE]
    end(c, is_commit=True)
    assert stable(c, FOO_0) == [PartitionData(25)]
    assert c.restarted().offset(*FOO_0) == 25


@pytest.mark.parametrize("is_txn_last", [True, False])
def test_the_later_in_the_log_wins(is_txn_last: bool) -> None:
    c = Context()
    commits = [lambda: c.commit({FOO_0: 1}), lambda: c.txn_commit(PRODUCER, {FOO_0: 2})]
    for commit in commits if is_txn_last else reversed(commits):
        assert only(commit().result) is ErrorCode.NONE
    assert c.offset(*FOO_0) == 1
    end(c, is_commit=True)
    expected = 2 if is_txn_last else 1
    assert (c.offset(*FOO_0), c.restarted().offset(*FOO_0)) == (expected, expected)


# Who may commit


def test_a_fenced_instance_commits_nothing() -> None:
    """GC testTxnCommitOffsetWithFencedInstanceId"""
    c = Context()
    leader, _ = c.static_pair()
    for member in ("", "invalid-member"):
        refused = c.txn_commit(PRODUCER, {FOO_0: 0}, member=member, instance="leader")
        assert only(refused.result) is ErrorCode.FENCED_INSTANCE_ID
    taken = c.txn_commit(PRODUCER, {FOO_0: 0}, member=leader.member_id, instance="leader")
    assert only(taken.result) is ErrorCode.NONE


def test_an_unknown_member_commits_nothing() -> None:
    """GC testTxnCommitOffsetWithInvalidMemberId"""
    c = Context()
    c.dynamic_join()
    assert only(c.txn_commit(PRODUCER, {FOO_0: 0}, member="invalid-member").result) is ErrorCode.UNKNOWN_MEMBER_ID
    assert not c.group().offsets.has_any


def test_a_member_commits_without_a_generation() -> None:
    """GC testTxnCommitOffsetWithKnownMemberId"""
    c = Context()
    joined = c.dynamic_join()
    assert only(c.txn_commit(PRODUCER, {FOO_0: 0}, member=joined.member_id).result) is ErrorCode.NONE


def test_a_member_of_another_generation_commits_nothing() -> None:
    """GC testTxnCommitOffsetWithIllegalGeneration"""
    c = Context()
    joined = c.dynamic_join()
    refused = c.txn_commit(PRODUCER, {FOO_0: 0}, member=joined.member_id, generation=joined.generation_id + 5)
    assert only(refused.result) is ErrorCode.ILLEGAL_GENERATION
    assert not c.group().offsets.has_any


def test_a_member_of_this_generation_commits_before_it_has_its_assignment() -> None:
    """GC testTxnCommitOffsetWithLegalGeneration"""
    c = Context()
    joined = c.dynamic_join()
    assert c.state() == "CompletingRebalance"
    taken = c.txn_commit(PRODUCER, {FOO_0: 0}, member=joined.member_id, generation=joined.generation_id)
    assert only(taken.result) is ErrorCode.NONE


def test_neither_member_nor_generation_need_be_given() -> None:
    c = Context()
    joined = c.stable_group()
    assert only(c.txn_commit(PRODUCER, {FOO_0: 0}).result) is ErrorCode.NONE
    assert only(c.txn_commit(PRODUCER, {FOO_0: 1}, generation=joined.generation_id).result) is ErrorCode.NONE


# The way to the log


def with_txn_commit_on_its_way() -> tuple[Context, Answer[Mapping[TopicPartition, ErrorCode]]]:
    """A group that the log has not answered yet."""
    c = Context()
    c.manager.add_group(c.manager.new_group(GroupId(GROUP)))
    c.topic.hold()
    answer = c.txn_commit(PRODUCER, {FOO_0: 37})
    assert not answer.is_done
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (True, 0)
    return c, answer


def test_a_transactional_commit_is_something_but_no_offset_until_it_is_committed() -> None:
    """GMM testTransactionalCommitOffsetCommitted"""
    c, answer = with_txn_commit_on_its_way()
    c.topic.release()
    assert only(answer.result) is ErrorCode.NONE
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (True, 0)
    end(c, is_commit=True)
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (True, 1)
    assert c.group().offsets.get(FOO_0) == value(37, time=c.clock.now_ms())


@pytest.mark.parametrize("is_commit", [False, True])
def test_a_transactional_commit_that_was_not_written_leaves_nothing(is_commit: bool) -> None:
    """GMM testTransactionalCommitOffsetAppendFailure"""
    c, answer = with_txn_commit_on_its_way()
    c.topic.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert only(answer.result) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (False, 0)
    assert not c.manager.is_group_open_for_producer(PRODUCER, GroupId(GROUP))
    c.coordinator.handle_txn_completion(PRODUCER, [c.partition()], is_commit=is_commit)
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (False, 0)


def test_an_aborted_commit_leaves_nothing() -> None:
    """GMM testTransactionalCommitOffsetAborted"""
    c, answer = with_txn_commit_on_its_way()
    c.topic.release()
    assert only(answer.result) is ErrorCode.NONE
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (True, 0)
    end(c, is_commit=False)
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (False, 0)
    assert not c.manager.is_group_open_for_producer(PRODUCER, GroupId(GROUP))


@pytest.mark.parametrize("is_held", [False, True])
def test_what_a_transaction_has_committed_survives_the_failure_of_what_it_commits_later(is_held: bool) -> None:
    c = Context()
    assert only(c.txn_commit(PRODUCER, {FOO_0: 37}).result) is ErrorCode.NONE
    if is_held:
        c.topic.hold()
    else:
        c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    failed = c.txn_commit(PRODUCER, {FOO_0: 57, FOO_1: 57})
    if is_held:
        c.topic.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
        c.topic.release()
    assert only(failed.result) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stable(c, FOO_0, FOO_1) == [UNSTABLE, PartitionData()]
    end(c, is_commit=True)
    assert stable(c, FOO_0, FOO_1) == [PartitionData(37), PartitionData()]
    assert c.restarted().fetch_all() == c.fetch_all()


def test_a_fenced_producer_commits_nothing() -> None:
    c = Context()
    assert only(c.txn_commit(PRODUCER, {FOO_0: 37}, producer_epoch=5).result) is ErrorCode.NONE
    refused = c.txn_commit(PRODUCER, {FOO_0: 57, FOO_1: 57}, producer_epoch=4)
    assert only(refused.result) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert stable(c, FOO_0, FOO_1) == [UNSTABLE, PartitionData()]
    c.end_txn(PRODUCER, c.partition(), is_commit=True, producer_epoch=5)
    assert stable(c, FOO_0, FOO_1) == [PartitionData(37), PartitionData()]


def test_a_transactional_commit_that_takes_too_long_counts_when_it_is_safe_and_committed() -> None:
    c, answer = with_txn_commit_on_its_way()
    c.sleep(5000)
    assert not answer.is_done
    c.sleep(1)
    assert only(answer.result) is ErrorCode.REQUEST_TIMED_OUT
    c.topic.release()
    assert stable(c, FOO_0) == [UNSTABLE]
    end(c, is_commit=True)
    assert stable(c, FOO_0) == [PartitionData(37)]
    assert c.restarted().offset(*FOO_0) == 37


def test_a_transactional_commit_that_takes_too_long_and_is_aborted_never_counts() -> None:
    c, answer = with_txn_commit_on_its_way()
    c.sleep(5001)
    assert only(answer.result) is ErrorCode.REQUEST_TIMED_OUT
    c.topic.release()
    end(c, is_commit=False)
    assert stable(c, FOO_0) == [PartitionData()]
    assert not c.group().offsets.has_any


def test_a_transactional_commit_that_takes_too_long_and_fails_then_leaves_nothing() -> None:
    c, answer = with_txn_commit_on_its_way()
    c.sleep(5001)
    assert only(answer.result) is ErrorCode.REQUEST_TIMED_OUT
    c.topic.fail_held()
    assert stable(c, FOO_0) == [PartitionData()]
    assert not c.group().offsets.has_any


# Metadata


def test_too_much_metadata_is_refused() -> None:
    """GC testTxnOffsetMetadataTooLarge"""
    c = Context()
    answer = c.txn_commit(PRODUCER, {FOO_0: value(37, TOO_LONG)})
    assert answer.result == {FOO_0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert not c.group().offsets.has_any
    assert c.end_offset() == 0


def test_only_the_partition_with_acceptable_metadata_is_pending() -> None:
    """GMM testTransactionalCommitOffsetWithOffsetMetadataTooLargePartialFailure

    Repaired: KAFKA-16371, a commit that was refused for its metadata leaves nothing pending
    """
    c = Context()
    c.topic.hold()
    answer = c.txn_commit(PRODUCER, {FOO_0: 37, FOO_1: value(38, TOO_LONG)})
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (True, 0)
    assert stable(c, FOO_0, FOO_1) == [UNSTABLE, PartitionData()]
    c.topic.release()
    assert answer.result == {FOO_0: ErrorCode.NONE, FOO_1: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert (c.group().offsets.has_any, len(c.group().offsets)) == (True, 0)
    assert stable(c, FOO_0, FOO_1) == [UNSTABLE, PartitionData()]
    end(c, is_commit=True)
    assert stable(c, FOO_0, FOO_1) == [PartitionData(37), PartitionData()]
    assert not c.group().offsets.has_pending_from(PRODUCER)
