"""AddPartitionsToTxn and AddOffsetsToTxn: what a transaction writes to."""

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.states import TransactionState
from tests.transaction.context import ELSEWHERE, PARTITIONS, Context, producer

T1, T2 = ("topic1", 0), ("topic2", 5)


def test_an_id_that_nobody_has_initialised_has_no_producer() -> None:
    """TransactionCoordinatorTest
    shouldRespondWithInvalidPidMappingOnAddPartitionsToTransactionWhenTransactionalIdNotPresent"""
    c = Context()
    assert c.add_partitions(producer(0, 1), T1).result is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("transactional_id", ["", None])
def test_without_a_transactional_id_the_request_is_invalid(transactional_id: str | None) -> None:
    """TransactionCoordinatorTest
    shouldRespondWithInvalidRequestAddPartitionsToTransactionWhenTransactionalIdIsEmpty
    TransactionCoordinatorTest
    shouldRespondWithInvalidRequestAddPartitionsToTransactionWhenTransactionalIdIsNull"""
    c = Context()
    added = c.add_partitions(producer(), T1, transactional_id=transactional_id)
    assert added.result is ErrorCode.INVALID_REQUEST


def test_an_id_that_is_not_owned_is_asked_for_elsewhere() -> None:
    """TransactionCoordinatorTest shouldRespondWithNotCoordinatorOnAddPartitionsWhenNotCoordinator"""
    c = Context()
    assert c.add_partitions(producer(), T1, transactional_id=ELSEWHERE).result is ErrorCode.NOT_COORDINATOR


def test_an_id_that_is_loading_is_asked_for_later() -> None:
    """TransactionCoordinatorTest shouldRespondWithCoordinatorLoadInProgressOnAddPartitionsWhenCoordintorLoading"""
    c = Context(own=False)
    c.topic.hold_loads()
    c.elect()
    assert c.add_partitions(producer(), T1).result is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_the_transaction_before_must_have_ended(state: TransactionState) -> None:
    """TransactionCoordinatorTest shouldRespondWithConcurrentTransactionsOnAddPartitionsWhenStateIsPrepareCommit
    TransactionCoordinatorTest shouldRespondWithConcurrentTransactionOnAddPartitionsWhenStateIsPrepareAbort"""
    c = Context()
    c.put(state=state)
    assert c.add_partitions(producer(), T1).result is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("epoch", [0, 11])
def test_a_producer_with_another_epoch_is_fenced(epoch: int) -> None:
    """TransactionCoordinatorTest shouldRespondWithInvalidTnxProduceEpochOnAddPartitionsWhenEpochsAreDifferent"""
    c = Context()
    c.put(producer_epoch=10, state=TransactionState.PREPARE_COMMIT)
    assert c.add_partitions(producer(10, epoch), T1).result is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_with_another_id_is_not_the_one() -> None:
    c = Context()
    c.put()
    assert c.add_partitions(producer(11, 1), T1).result is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(
    "state",
    [
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ],
)
def test_partitions_join_a_transaction_or_begin_one(state: TransactionState) -> None:
    """TransactionCoordinatorTest shouldAppendNewMetadataToLogOnAddPartitionsWhenPartitionsAdded
    TransactionCoordinatorTest shouldRespondWithSuccessOnAddPartitionsWhenStateIsOngoing
    TransactionCoordinatorTest shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteCommit
    TransactionCoordinatorTest shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteAbort"""
    c = Context()
    known = c.put(state=state)
    began = known.txn_start_timestamp
    c.sleep(7)
    assert c.add_partitions(producer(), T1).result is ErrorCode.NONE
    assert (c.state(), known.topic_partitions) == ("Ongoing", (TopicPartition(*T1),))
    assert known.txn_start_timestamp == (began if state is TransactionState.ONGOING else began + 7)
    ((_, value),) = c.records()
    assert value is not None
    assert (value.state, value.topic_partitions) == (TransactionState.ONGOING, (TopicPartition(*T1),))


def test_partitions_that_are_in_it_already_are_not_written_again() -> None:
    """TransactionCoordinatorTest shouldRespondWithErrorsNoneOnAddPartitionWhenNoErrorsAndPartitionsTheSame"""
    c = Context()
    open_one = c.ongoing()
    written = c.records()
    assert c.add_partitions(open_one, PARTITIONS[2], PARTITIONS[0]).result is ErrorCode.NONE
    assert c.records() == written


def test_partitions_come_together_in_the_order_in_which_they_joined() -> None:
    c = Context()
    open_one = c.ongoing(T2)
    c.add_partitions(open_one, T1, T2)
    assert c.metadata().topic_partitions == (TopicPartition(*T2), TopicPartition(*T1))
    assert c.restarted().metadata().topic_partitions == (TopicPartition(*T2), TopicPartition(*T1))


def test_offsets_are_a_partition_like_any_other() -> None:
    c = Context()
    open_one = c.ongoing(T1)
    assert c.add_partitions(open_one, ("__consumer_offsets", 27)).result is ErrorCode.NONE
    c.end_txn(open_one, is_commit=True)
    assert [str(marker.partition) for marker in c.desk.written] == ["topic1-0", "__consumer_offsets-27"]


def test_while_one_is_being_written_the_next_must_wait() -> None:
    c = Context()
    begun = c.init_producer_id().result
    c.topic.hold()
    first = c.add_partitions(begun, T1)
    assert c.add_partitions(begun, T2).result is ErrorCode.CONCURRENT_TRANSACTIONS
    assert not first.is_done
    c.topic.release()
    assert first.result is ErrorCode.NONE
    assert c.add_partitions(begun, T2).result is ErrorCode.NONE


def test_an_id_whose_first_epoch_was_never_written_has_no_transactions() -> None:
    c = Context()
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert c.init_producer_id().result.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert c.add_partitions(producer(0, -1), T1).result is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.end_txn(producer(0, -1), is_commit=True).result is ErrorCode.INVALID_TXN_STATE
    assert c.init_producer_id().result == producer(0, 0)
