"""EndTxn: the end is decided when it is written; the markers follow."""

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.markers import TxnMarker
from kohort.transaction.records import TransactionalId
from kohort.transaction.requests import EndTxnRequest
from kohort.transaction.states import TransactionState
from tests.transaction.context import ELSEWHERE, ID, PARTITIONS, Context, producer


def test_an_id_that_nobody_has_initialised_has_no_producer() -> None:
    """TransactionCoordinatorTest shouldReplyWithInvalidPidMappingOnEndTxnWhenTxnIdDoesntExist"""
    c = Context()
    assert c.end_txn(producer(0, 0), is_commit=True).result is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_producer_with_another_id_is_not_the_one() -> None:
    """TransactionCoordinatorTest shouldReplyWithInvalidPidMappingOnEndTxnWhenPidDosentMatchMapped"""
    c = Context()
    c.put(state=TransactionState.ONGOING)
    assert c.end_txn(producer(0, 1), is_commit=True).result is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("state", [TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT])
def test_a_producer_with_another_epoch_is_fenced(state: TransactionState, epoch: int) -> None:
    """TransactionCoordinatorTest shouldReplyWithProducerFencedOnEndTxnWhenEpochIsNotSameAsTransaction
    TransactionCoordinatorTest shouldReturnInvalidEpochOnEndTxnWhenEpochIsLarger
    TransactionCoordinatorTest shouldReturnInvalidEpochOnEndTxnWhenEpochIsSmaller"""
    c = Context()
    c.put(state=state)
    assert c.end_txn(producer(10, epoch), is_commit=True).result is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("state", "is_commit", "error"),
    [
        (TransactionState.COMPLETE_COMMIT, True, ErrorCode.NONE),
        (TransactionState.COMPLETE_ABORT, False, ErrorCode.NONE),
        (TransactionState.COMPLETE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.PREPARE_COMMIT, True, ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionState.PREPARE_ABORT, False, ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionState.PREPARE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.PREPARE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.EMPTY, True, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.EMPTY, False, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_only_an_open_transaction_ends_and_the_same_end_may_be_asked_for_again(
    state: TransactionState, is_commit: bool, error: ErrorCode
) -> None:
    """TransactionCoordinatorTest shouldReturnOkOnEndTxnWhenStatusIsCompleteCommitAndResultIsCommit
    TransactionCoordinatorTest shouldReturnOkOnEndTxnWhenStatusIsCompleteAbortAndResultIsAbort
    TransactionCoordinatorTest
    shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteAbortAndResultIsNotAbort
    TransactionCoordinatorTest
    shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteCommitAndResultIsNotCommit
    TransactionCoordinatorTest shouldReturnConcurrentTxnRequestOnEndTxnRequestWhenStatusIsPrepareCommit
    TransactionCoordinatorTest shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsPrepareAbort"""
    c = Context()
    c.put(state=state)
    assert c.end_txn(producer(), is_commit=is_commit).result is error
    assert c.records() == []


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_end_is_written_then_the_markers_then_that_all_is_done(is_commit: bool) -> None:
    """TransactionCoordinatorTest shouldAppendPrepareCommitToLogOnEndTxnWhenStatusIsOngoingAndResultIsCommit
    TransactionCoordinatorTest shouldAppendPrepareAbortToLogOnEndTxnWhenStatusIsOngoingAndResultIsAbort
    TransactionMarkerChannelManagerTest shouldCompleteAppendToLogOnEndTxnWhenSendMarkersSucceed"""
    c = Context(own=False)
    c.elect(epoch=4)
    open_one = c.ongoing()
    c.desk.hold()
    assert c.end_txn(open_one, is_commit=is_commit).result is ErrorCode.NONE
    end = "Commit" if is_commit else "Abort"
    assert (c.state(), c.pending()) == (f"Prepare{end}", f"Complete{end}")
    assert c.desk.written == []
    c.desk.release()
    assert c.desk.written == [TxnMarker(TopicPartition(*each), 0, 0, 4, is_commit) for each in PARTITIONS]
    assert (c.state(), c.pending(), c.metadata().topic_partitions) == (f"Complete{end}", None, ())
    assert c.states() == ["Empty", "Ongoing", f"Prepare{end}", f"Complete{end}"]


@pytest.mark.parametrize("transactional_id", ["", None])
def test_without_a_transactional_id_the_request_is_invalid(transactional_id: str | None) -> None:
    """TransactionCoordinatorTest shouldRespondWithInvalidRequestOnEndTxnWhenTransactionalIdIsNull
    TransactionCoordinatorTest shouldRespondWithInvalidRequestOnEndTxnWhenTransactionalIdIsEmpty"""
    c = Context()
    ended = c.end_txn(producer(), is_commit=True, transactional_id=transactional_id)
    assert ended.result is ErrorCode.INVALID_REQUEST


def test_an_id_that_is_not_owned_is_asked_for_elsewhere() -> None:
    """TransactionCoordinatorTest shouldRespondWithNotCoordinatorOnEndTxnWhenIsNotCoordinatorForId"""
    c = Context()
    assert c.end_txn(producer(), is_commit=True, transactional_id=ELSEWHERE).result is ErrorCode.NOT_COORDINATOR


def test_an_id_that_is_loading_is_asked_for_later() -> None:
    """TransactionCoordinatorTest shouldRespondWithCoordinatorLoadInProgressOnEndTxnWhenCoordinatorIsLoading"""
    c = Context(own=False)
    c.topic.hold_loads()
    c.elect()
    assert c.end_txn(producer(), is_commit=True).result is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_while_markers_are_written_nothing_else_may_begin() -> None:
    c = Context()
    open_one = c.ongoing()
    c.desk.hold()
    c.end_txn(open_one, is_commit=True)
    assert c.end_txn(open_one, is_commit=True).result is ErrorCode.CONCURRENT_TRANSACTIONS
    assert c.end_txn(open_one, is_commit=False).result is ErrorCode.CONCURRENT_TRANSACTIONS
    assert c.add_partitions(open_one, PARTITIONS[0]).result is ErrorCode.CONCURRENT_TRANSACTIONS
    assert c.init_producer_id().result.error is ErrorCode.CONCURRENT_TRANSACTIONS
    c.desk.release()
    assert c.end_txn(open_one, is_commit=True).result is ErrorCode.NONE
    assert c.add_partitions(open_one, PARTITIONS[0]).result is ErrorCode.NONE


def test_a_producer_runs_one_transaction_after_the_other() -> None:
    c = Context()
    producer = c.init_producer_id().result
    for number in range(4):
        assert c.add_partitions(producer, ("t", number)).result is ErrorCode.NONE
        assert c.end_txn(producer, is_commit=number % 2 == 0).result is ErrorCode.NONE
    assert [(marker.partition.partition, marker.is_commit) for marker in c.desk.written] == [
        (0, True),
        (1, False),
        (2, True),
        (3, False),
    ]


def test_a_transaction_without_partitions_ends_without_markers() -> None:
    c = Context()
    begun = c.init_producer_id().result
    assert c.add_partitions(begun).result is ErrorCode.NONE
    assert c.end_txn(begun, is_commit=True).result is ErrorCode.NONE
    assert (c.state(), c.desk.asked) == ("CompleteCommit", 0)


def test_whoever_gets_the_answer_may_ask_again_at_once() -> None:
    c = Context()
    open_one = c.ongoing()
    states: list[str] = []
    request = EndTxnRequest(TransactionalId(ID), open_one.producer_id, open_one.producer_epoch, is_commit=True)
    c.coordinator.handle_end_txn(request, lambda _: states.append(c.state()))
    assert states == ["CompleteCommit"]
