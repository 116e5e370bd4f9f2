"""Offset commits: who may commit, what is written, and what becomes of commits that fail or take too long."""

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import GroupId, PartitionData
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import OffsetKey
from tests.group.context import GROUP, Context, only, value

FOO_0 = ("foo", 0)
FOO_1 = ("foo", 1)
TOO_LONG = "s" * 4097


def commits_counted(c: Context) -> float:
    return c.coordinator.snapshot()["offset-commit-count"]


def with_empty_group() -> Context:
    c = Context()
    c.manager.add_group(c.manager.new_group(GroupId(GROUP)))
    return c


# Who may commit


def test_a_commit_of_a_generation_that_nobody_knows_is_refused() -> None:
    """GC testCommitOffsetFromUnknownGroup"""
    c = Context()
    assert only(c.commit({FOO_0: 0}, member="memberId", generation=1).result) is ErrorCode.ILLEGAL_GENERATION
    assert c.find() is None


def test_a_simple_consumer_commits_without_a_generation() -> None:
    """GC testCommitOffsetWithDefaultGeneration"""
    c = Context()
    assert only(c.commit({FOO_0: 0}).result) is ErrorCode.NONE
    assert c.state() == "Empty"
    assert c.offset(*FOO_0) == 0


def test_a_group_that_lost_its_members_takes_simple_commits() -> None:
    """GC testCommitOffsetsAfterGroupIsEmpty"""
    c = Context()
    joined = c.dynamic_join()
    c.leave(GROUP, joined.member_id)
    assert c.state() == "Empty"
    assert only(c.commit({FOO_0: 0}).result) is ErrorCode.NONE
    assert c.offset(*FOO_0) == 0


def test_a_dead_group_takes_no_commit() -> None:
    """GC testOffsetCommitDeadGroup"""
    c = with_empty_group()
    c.group().transition_to(GroupState.DEAD)
    refused = c.commit({FOO_0: 0}, member="memberId", generation=1)
    assert only(refused.result) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_nobody_commits_while_the_assignment_is_awaited() -> None:
    """GC testCommitOffsetInCompletingRebalance"""
    c = Context()
    joined = c.dynamic_join()
    refused = c.commit({FOO_0: 0}, member=joined.member_id, generation=joined.generation_id)
    assert only(refused.result) is ErrorCode.REBALANCE_IN_PROGRESS
    assert c.state() == "CompletingRebalance"
    assert c.offset(*FOO_0) == -1


def test_a_commit_with_the_generation_but_no_member_id_is_refused() -> None:
    """GC testCommitOffsetInCompletingRebalanceFromUnknownMemberId"""
    c = Context()
    joined = c.dynamic_join()
    refused = c.commit({FOO_0: 0}, member="", generation=joined.generation_id)
    assert only(refused.result) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_of_another_generation_is_refused() -> None:
    """GC testCommitOffsetInCompletingRebalanceFromIllegalGeneration"""
    c = Context()
    joined = c.dynamic_join()
    refused = c.commit({FOO_0: 0}, member=joined.member_id, generation=joined.generation_id + 1)
    assert only(refused.result) is ErrorCode.ILLEGAL_GENERATION


def test_a_simple_commit_is_not_asked_who_it_comes_from() -> None:
    """GC testManualCommitOffsetShouldNotValidateMemberIdAndInstanceId"""
    c = Context()
    assert only(c.commit({FOO_0: 0}, instance="instance-id").result) is ErrorCode.NONE
    assert only(c.commit({FOO_0: 1}, member="unknown").result) is ErrorCode.NONE
    assert c.offset(*FOO_0) == 1


def test_a_simple_commit_to_a_group_with_members_is_refused() -> None:
    c = Context()
    c.stable_group()
    assert only(c.commit({FOO_0: 0}).result) is ErrorCode.UNKNOWN_MEMBER_ID
    assert c.offset(*FOO_0) == -1


def test_members_commit_while_others_are_awaited() -> None:
    c = Context()
    joined = c.stable_group()
    c.join()
    assert c.state() == "PreparingRebalance"
    taken = c.commit({FOO_0: 5}, member=joined.member_id, generation=joined.generation_id)
    assert only(taken.result) is ErrorCode.NONE
    assert c.offset(*FOO_0) == 5


def test_a_commit_is_a_sign_of_life() -> None:
    c = Context()
    joined = c.stable_group(session=500)
    for _ in range(3):
        c.sleep(400)
        taken = c.commit({FOO_0: 5}, member=joined.member_id, generation=joined.generation_id)
        assert only(taken.result) is ErrorCode.NONE
    assert c.state() == "Stable"
    c.sleep(501)
    assert c.state() == "Empty"


def test_a_commit_of_nothing_is_answered_with_nothing() -> None:
    c = Context()
    end = c.end_offset()
    assert c.commit({}).result == {}
    assert c.end_offset() == end


# The way to the log


def test_a_commit_is_written_and_can_be_read() -> None:
    """GMM testCommitOffset"""
    c = with_empty_group()
    committed = value(37, "metadata", leader_epoch=3, time=c.clock.now_ms())
    answer = c.commit({FOO_0: committed})
    assert answer.result == {TopicPartition(*FOO_0): ErrorCode.NONE}
    assert c.group().offsets.has_any
    assert c.fetch(FOO_0) == (ErrorCode.NONE, {TopicPartition(*FOO_0): PartitionData(37, 3, "metadata")})
    assert c.records() == [(OffsetKey(GROUP, *FOO_0), committed)]
    assert commits_counted(c) == 1


def test_a_commit_to_a_log_that_has_moved_is_refused() -> None:
    """GMM testCommitOffsetWhenCoordinatorHasMoved"""
    c = with_empty_group()
    c.topic.elsewhere.add(c.partition())
    assert c.commit({FOO_0: 37}).result == {TopicPartition(*FOO_0): ErrorCode.NOT_COORDINATOR}
    assert not c.group().offsets.has_any


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
}


@pytest.mark.parametrize("error", COMMIT_ERRORS)
def test_a_commit_that_was_not_written_leaves_nothing(error: ErrorCode) -> None:
    """GMM testCommitOffsetFailure"""
    c = with_empty_group()
    c.topic.hold()
    answer = c.commit({FOO_0: 37})
    assert c.group().offsets.has_any
    c.topic.fail_held(error)
    assert answer.result == {TopicPartition(*FOO_0): COMMIT_ERRORS[error]}
    assert not c.group().offsets.has_any
    assert c.offset(*FOO_0) == -1
    assert commits_counted(c) == 0


def test_a_commit_that_fits_into_no_batch_is_refused() -> None:
    c = Context()
    answer = c.commit({(f"topic-{n}", 0): value(n, "m" * 4096) for n in range(300)})
    assert only(answer.result) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert len(answer.result) == 300
    assert not c.group().offsets.has_any


def test_a_topic_whose_name_fits_into_no_record_is_refused() -> None:
    c = Context()
    assert only(c.commit({("t" * 0x8000, 0): 1}).result) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert not c.group().offsets.has_any


# Metadata


def test_only_the_partition_with_too_much_metadata_is_refused() -> None:
    """GMM testCommitOffsetPartialFailure"""
    c = with_empty_group()
    assert commits_counted(c) == 0
    c.topic.hold()
    answer = c.commit({FOO_0: 37, FOO_1: value(37, TOO_LONG)})
    assert c.group().offsets.has_any
    c.topic.release()
    refused = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert answer.result == {TopicPartition(*FOO_0): ErrorCode.NONE, TopicPartition(*FOO_1): refused}
    assert (c.offset(*FOO_0), c.offset(*FOO_1)) == (37, -1)
    assert [key for key, _ in c.records()] == [OffsetKey(GROUP, *FOO_0)]
    assert commits_counted(c) == 1


def test_a_commit_with_nothing_but_too_much_metadata_is_not_written() -> None:
    """GMM testOffsetMetadataTooLarge"""
    c = with_empty_group()
    assert c.commit({FOO_0: value(37, TOO_LONG)}).result == {
        TopicPartition(*FOO_0): ErrorCode.OFFSET_METADATA_TOO_LARGE
    }
    assert not c.group().offsets.has_any
    assert c.offset(*FOO_0) == -1
    assert c.end_offset() == 0
    assert commits_counted(c) == 0


def test_a_partition_that_was_refused_for_its_metadata_is_stable() -> None:
    """GMM testOffsetMetadataTooLargePartialFailure

    Repaired: KAFKA-16371, a commit that was refused for its metadata leaves nothing pending
    """
    c = with_empty_group()
    answer = c.commit({FOO_0: value(37, TOO_LONG), FOO_1: 37})
    refused = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert answer.result == {TopicPartition(*FOO_0): refused, TopicPartition(*FOO_1): ErrorCode.NONE}
    error, found = c.fetch(FOO_0, FOO_1, require_stable=True)
    assert error is ErrorCode.NONE
    assert found == {TopicPartition(*FOO_0): PartitionData(), TopicPartition(*FOO_1): PartitionData(37)}
    assert commits_counted(c) == 1


@pytest.mark.parametrize(
    ("character", "number", "error"),
    [
        ("s", 4096, ErrorCode.NONE),
        ("s", 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\u20ac", 4096, ErrorCode.NONE),
        ("\u20ac", 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\U0001f600", 2048, ErrorCode.NONE),
        ("\U0001f600", 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\U0001f600", 4096, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_counted_in_utf_16_units(character: str, number: int, error: ErrorCode) -> None:
    c = Context()
    metadata = character * number
    assert only(c.commit({FOO_0: value(37, metadata)}).result) is error
    if error is ErrorCode.NONE:
        told = c.restarted().fetch(FOO_0)[1][TopicPartition(*FOO_0)]
        assert told == PartitionData(37, -1, metadata)


def test_metadata_that_the_limit_allows_but_no_record_holds_is_refused() -> None:
    c = Context(offset_metadata_max_bytes=1_000_000)
    assert only(c.commit({FOO_0: value(37, "m" * 0x7FFF)}).result) is ErrorCode.NONE
    assert only(c.commit({FOO_0: value(38, "m" * 0x8000)}).result) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert only(c.commit({FOO_0: value(38, "\u20ac" * 0x3000)}).result) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert c.offset(*FOO_0) == 37


# Several on their way


def fail_oldest(c: Context, error: ErrorCode) -> None:
    """The oldest held append did not become safe; the others may."""
    done, _, _ = c.topic._held.pop(0)
    done(error, -1)


def is_pending(c: Context) -> bool:
    return c.fetch(FOO_0, require_stable=True)[1][TopicPartition(*FOO_0)].error is ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_the_first_of_two_commits_on_their_way_fails() -> None:
    c = Context()
    c.topic.hold()
    first, second = c.commit({FOO_0: 37}), c.commit({FOO_0: 57})
    fail_oldest(c, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert only(first.result) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not second.is_done
    assert (c.offset(*FOO_0), is_pending(c)) == (-1, True)
    c.topic.release()
    assert only(second.result) is ErrorCode.NONE
    assert (c.offset(*FOO_0), is_pending(c)) == (57, False)


def test_the_second_of_two_commits_on_their_way_fails() -> None:
    c = Context()
    c.topic.hold()
    first, second = c.commit({FOO_0: 37}), c.commit({FOO_0: 57})
    c.topic.release_one()
    assert only(first.result) is ErrorCode.NONE
    assert (c.offset(*FOO_0), is_pending(c)) == (37, True)
    c.topic.fail_held()
    assert only(second.result) is ErrorCode.NOT_COORDINATOR
    assert (c.offset(*FOO_0), is_pending(c)) == (37, False)
    assert c.restarted().offset(*FOO_0) == 37


@pytest.mark.parametrize("first_fails", [True, False])
def test_one_of_two_equal_commits_on_their_way_fails(first_fails: bool) -> None:
    c = Context()
    c.topic.hold()
    answers = [c.commit({FOO_0: 37}), c.commit({FOO_0: 37})]
    if first_fails:
        fail_oldest(c, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        assert is_pending(c)
        c.topic.release_one()
    else:
        c.topic.release_one()
        assert is_pending(c)
        fail_oldest(c, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    errors = [only(answer.result) for answer in answers]
    assert sorted(errors) == [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert (errors[0] is ErrorCode.NONE) is not first_fails
    assert (c.offset(*FOO_0), is_pending(c)) == (37, False)


# Too late


def test_a_commit_that_takes_too_long_is_answered_once_and_counts_when_the_log_has_it() -> None:
    c = Context()
    c.topic.hold()
    answer = c.commit({FOO_0: 37})
    c.sleep(5000)
    assert not answer.is_done
    c.sleep(1)
    assert only(answer.result) is ErrorCode.REQUEST_TIMED_OUT
    assert (c.offset(*FOO_0), is_pending(c)) == (-1, True)
    c.topic.release()
    assert only(answer.result) is ErrorCode.REQUEST_TIMED_OUT
    assert (c.offset(*FOO_0), is_pending(c)) == (37, False)
    assert c.restarted().offset(*FOO_0) == 37


def test_a_commit_that_takes_too_long_and_fails_then_leaves_nothing() -> None:
    c = Context()
    c.topic.hold()
    answer = c.commit({FOO_0: 37, FOO_1: value(37, TOO_LONG)})
    c.sleep(5001)
    refused = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert answer.result == {TopicPartition(*FOO_0): ErrorCode.REQUEST_TIMED_OUT, TopicPartition(*FOO_1): refused}
    c.topic.fail_held()
    assert not c.group().offsets.has_any


def test_a_commit_that_is_safe_in_time_is_not_answered_again() -> None:
    c = Context(offsets_commit_timeout_ms=100)
    c.topic.hold()
    answer = c.commit({FOO_0: 37})
    c.sleep(100)
    c.topic.release()
    assert only(answer.result) is ErrorCode.NONE
    c.sleep(1_000)
    assert only(answer.result) is ErrorCode.NONE


def test_a_commit_whose_group_went_elsewhere_meanwhile_is_answered() -> None:
    c = Context()
    c.topic.hold()
    answer = c.commit({FOO_0: 37})
    c.resign(c.partition())
    assert c.find() is None
    c.topic.release()
    assert only(answer.result) is ErrorCode.NONE
    assert c.find() is None
    c.elect(c.partition(), 1)
    assert c.offset(*FOO_0) == 37
