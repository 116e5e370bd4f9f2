"""Markers: an end that is decided happens, whatever fails on the way."""

import pytest

from kohort.errors import ErrorCode
from tests.transaction.context import PARTITIONS, Context

RETRIED = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
]
UNEXPECTED = [
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


def partitions(c: Context) -> list[tuple[str, int]]:
    return [tuple(marker.partition) for marker in c.desk.written]


@pytest.mark.parametrize("error", RETRIED)
def test_a_marker_that_fails_is_written_later_and_the_others_are_not_written_again(error: ErrorCode) -> None:
    """TransactionMarkerRequestCompletionHandlerTest shouldRetryPartitionWhenNotLeaderOrFollowerError
    TransactionMarkerRequestCompletionHandlerTest shouldRetryPartitionWhenNotEnoughReplicasError
    TransactionMarkerRequestCompletionHandlerTest shouldRetryPartitionWhenNotEnoughReplicasAfterAppendError
    TransactionMarkerRequestCompletionHandlerTest shouldRetryPartitionWhenKafkaStorageError"""
    c = Context()
    open_one = c.ongoing()
    c.desk.fail(*PARTITIONS[1], error, times=2)
    assert c.end_txn(open_one, is_commit=True).result is ErrorCode.NONE
    assert (c.state(), partitions(c)) == ("PrepareCommit", [PARTITIONS[0], PARTITIONS[2]])
    c.sleep(21)
    assert (c.state(), partitions(c)) == ("PrepareCommit", [PARTITIONS[0], PARTITIONS[2]])
    c.sleep(41)
    assert (c.state(), partitions(c)) == ("CompleteCommit", [PARTITIONS[0], PARTITIONS[2], PARTITIONS[1]])


@pytest.mark.parametrize("error", UNEXPECTED)
def test_a_marker_that_fails_for_no_good_reason_is_written_later_too(error: ErrorCode) -> None:
    """TransactionMarkerRequestCompletionHandlerTest shouldThrowIllegalStateExceptionWhenUnknownError
    TransactionMarkerRequestCompletionHandlerTest shouldThrowIllegalStateExceptionWhenCorruptMessageError
    TransactionMarkerRequestCompletionHandlerTest shouldThrowIllegalStateExceptionWhenMessageTooLargeError
    TransactionMarkerRequestCompletionHandlerTest shouldThrowIllegalStateExceptionWhenRecordListTooLargeError
    TransactionMarkerRequestCompletionHandlerTest shouldThrowIllegalStateExceptionWhenInvalidRequiredAcksError
    Repaired: a transaction marker that fails with an unexpected error is written later; Kafka 2.6.3 gives it up and the
    transaction stays open until the coordinator loads it again."""
    c = Context()
    open_one = c.ongoing()
    c.desk.fail(*PARTITIONS[1], error)
    c.end_txn(open_one, is_commit=False)
    assert c.state() == "PrepareAbort"
    c.sleep(21)
    assert c.state() == "CompleteAbort"


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    ],
)
def test_a_partition_that_is_gone_or_cannot_have_it_needs_no_marker(error: ErrorCode) -> None:
    """TransactionMarkerChannelManagerTest shouldSkipSendMarkersWhenLeaderNotFound
    TransactionMarkerRequestCompletionHandlerTest
    shouldRemoveTopicPartitionFromWaitingSetOnUnsupportedForMessageFormat"""
    c = Context()
    open_one = c.ongoing()
    c.desk.fail(*PARTITIONS[1], error)
    c.end_txn(open_one, is_commit=True)
    assert (c.state(), partitions(c)) == ("CompleteCommit", [PARTITIONS[0], PARTITIONS[2]])


@pytest.mark.parametrize("error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_transaction_of_a_newer_producer_or_coordinator_is_left_alone(error: ErrorCode) -> None:
    """TransactionMarkerRequestCompletionHandlerTest shouldCompleteDelayedOperationWhenInvalidProducerEpoch
    TransactionMarkerRequestCompletionHandlerTest shouldCompleteDelayedOperationWheCoordinatorEpochFenced"""
    c = Context()
    open_one = c.ongoing()
    c.desk.fail(*PARTITIONS[1], error)
    c.end_txn(open_one, is_commit=True)
    c.sleep(100_000)
    assert (c.state(), c.desk.asked) == ("PrepareCommit", 1)
    assert c.init_producer_id().result.error is ErrorCode.CONCURRENT_TRANSACTIONS


def test_waits_grow_but_not_for_ever() -> None:
    c = Context()
    open_one = c.ongoing()
    c.desk.fail(*PARTITIONS[1], ErrorCode.NOT_LEADER_OR_FOLLOWER, times=20)
    c.end_txn(open_one, is_commit=True)
    for _ in range(20):
        c.sleep(5_001)
    assert (c.state(), c.desk.asked) == ("CompleteCommit", 21)


def test_markers_are_not_written_for_an_end_that_is_not_written() -> None:
    c = Context()
    open_one = c.ongoing()
    c.topic.hold()
    answer = c.end_txn(open_one, is_commit=True)
    assert (answer.is_done, c.desk.asked) == (False, 0)
    c.topic.release()
    assert (answer.result, c.desk.asked) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
    ],
)
def test_that_all_is_done_is_written_later_if_it_cannot_be_written_now(error: ErrorCode) -> None:
    """TransactionMarkerChannelManagerTest shouldRetryAppendToLogOnEndTxnWhenCoordinatorNotAvailableError
    TransactionStateManagerTest testPendingStateNotResetOnRetryAppend
    Repaired: that a transaction is complete is written again after any error; Kafka 2.6.3 does so only after
    COORDINATOR_NOT_AVAILABLE, and otherwise the transactional id cannot be used until it is loaded again."""
    c = Context()
    open_one = c.ongoing()
    c.desk.hold()
    c.end_txn(open_one, is_commit=True)
    c.topic.fail_next(error, times=2)
    c.desk.release()
    assert (c.state(), c.pending()) == ("PrepareCommit", "CompleteCommit")
    c.sleep(21)
    assert (c.state(), c.pending()) == ("PrepareCommit", "CompleteCommit")
    c.sleep(41)
    assert (c.state(), c.pending(), c.desk.asked) == ("CompleteCommit", None, 1)


def test_that_all_is_done_is_not_written_for_somebody_else() -> None:
    """TransactionMarkerChannelManagerTest shouldAbortAppendToLogOnEndTxnWhenNotCoordinatorError
    TransactionMarkerRequestCompletionHandlerTest shouldCompleteDelayedOperationWhenNotCoordinator"""
    c = Context()
    open_one = c.ongoing()
    c.desk.hold()
    c.end_txn(open_one, is_commit=True)
    c.resign()
    c.desk.release()
    assert c.states()[-1] == "PrepareCommit"


def test_a_retry_ends_when_the_partition_is_given_up() -> None:
    """TransactionMarkerChannelManagerTest shouldRemoveMarkersForTxnPartitionWhenPartitionEmigrated
    TransactionCoordinatorTest shouldRemoveTransactionsForPartitionOnEmigration"""
    c = Context()
    open_one = c.ongoing()
    c.desk.fail(*PARTITIONS[1], ErrorCode.NOT_LEADER_OR_FOLLOWER, times=9)
    c.end_txn(open_one, is_commit=True)
    c.resign()
    c.sleep(10_000)
    assert c.desk.asked == 1


def test_a_completion_that_is_tried_again_ends_when_the_partition_is_given_up() -> None:
    c = Context()
    open_one = c.ongoing()
    c.desk.hold()
    c.end_txn(open_one, is_commit=True)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.desk.release()
    c.resign()
    written = c.records()
    c.sleep(10_000)
    assert c.records() == written


def test_markers_of_the_time_before_a_reload_change_nothing() -> None:
    """TransactionMarkerRequestCompletionHandlerTest shouldCompleteDelayedOperationWhenCoordinatorEpochChanged
    TransactionMarkerRequestCompletionHandlerTest shouldCompleteDelayedOperationWhenCoordinatorLoading
    TransactionMarkerChannelManagerTest shouldOnlyWriteTxnCompletionOnce"""
    c = Context()
    open_one = c.ongoing()
    c.desk.hold()
    c.end_txn(open_one, is_commit=True)
    c.elect(epoch=1)
    assert (c.desk.held, c.state()) == (2, "PrepareCommit")
    c.desk.release()
    assert [marker.coordinator_epoch for marker in c.desk.written] == [0, 0, 0, 1, 1, 1]
    assert c.states().count("CompleteCommit") == 1
    assert c.state() == "CompleteCommit"


def test_markers_of_many_transactions_do_not_wait_for_each_other() -> None:
    c = Context()
    first, second = c.ongoing(("t", 0)), c.ongoing(("u", 0), transactional_id="two")
    c.desk.fail("t", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    c.end_txn(first, is_commit=True)
    c.end_txn(second, is_commit=False, transactional_id="two")
    assert (c.state(), c.state("two")) == ("PrepareCommit", "CompleteAbort")
    c.sleep(21)
    assert c.state() == "CompleteCommit"
