"""InitProducerId: who a producer is, and whom it fences."""

import pytest

from kohort.errors import ErrorCode, KohortError
from kohort.transaction.requests import InitProducerIdResult
from kohort.transaction.states import TransactionState
from tests.transaction.context import ELSEWHERE, ID, OTHER_ID, PARTITIONS, Context, producer

MAX_EPOCH = 32_767


def refused(error: ErrorCode) -> InitProducerIdResult:
    return InitProducerIdResult(error, -1, -1)


def test_an_empty_transactional_id_is_an_invalid_request() -> None:
    """TransactionCoordinatorTest shouldReturnInvalidRequestWhenTransactionalIdIsEmpty"""
    c = Context()
    assert c.init_producer_id("").result == refused(ErrorCode.INVALID_REQUEST)
    assert c.init_producer_id("").result == refused(ErrorCode.INVALID_REQUEST)


def test_a_transactional_id_that_no_record_can_hold_is_an_invalid_request() -> None:
    c = Context()
    assert c.init_producer_id("é" * 16_384).result == refused(ErrorCode.INVALID_REQUEST)


def test_without_a_transactional_id_a_producer_gets_the_next_id_and_epoch_0() -> None:
    """TransactionCoordinatorTest shouldAcceptInitPidAndReturnNextPidWhenTransactionalIdIsNull"""
    c = Context(own=False)
    assert c.init_producer_id(None).result == producer(0, 0)
    assert c.init_producer_id(None, timeout=0).result == producer(1, 0)
    assert c.records() == []


def test_a_new_transactional_id_begins_at_epoch_0() -> None:
    """TransactionCoordinatorTest shouldInitPidWithEpochZeroForNewTransactionalId"""
    c = Context()
    assert c.init_producer_id().result == producer(0, 0)
    assert c.init_producer_id(OTHER_ID).result == producer(1, 0)
    assert [(key, value and value.state) for key, value in c.records()] == [(ID, "Empty"), (OTHER_ID, "Empty")]


def test_a_producer_that_goes_on_where_nobody_knows_it_gets_a_new_id() -> None:
    """TransactionCoordinatorTest shouldGenerateNewProducerIdIfNoStateAndProducerIdAndEpochProvided"""
    c = Context()
    assert c.init_producer_id(expected=(10, 1)).result == producer(0, 0)


@pytest.mark.parametrize("timeout", [-1, 0, 900_001])
def test_a_timeout_that_is_too_short_or_too_long_is_refused(timeout: int) -> None:
    """TransactionStateManagerTest testValidateTransactionTimeout"""
    c = Context()
    assert c.init_producer_id(timeout=timeout).result == refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    assert c.find() is None


@pytest.mark.parametrize("timeout", [1, 900_000])
def test_the_shortest_and_the_longest_timeout_are_accepted(timeout: int) -> None:
    """TransactionStateManagerTest testValidateTransactionTimeout"""
    c = Context()
    assert c.init_producer_id(timeout=timeout).result == producer(0, 0)
    assert c.metadata().txn_timeout_ms == timeout


def test_an_id_that_is_not_owned_is_asked_for_elsewhere() -> None:
    """TransactionCoordinatorTest shouldRespondWithNotCoordinatorOnInitPidWhenNotCoordinator"""
    c = Context()
    assert c.init_producer_id(ELSEWHERE).result == refused(ErrorCode.NOT_COORDINATOR)
    assert c.init_producer_id().result.producer_id == 0, "nobody was given an id"


def test_an_id_that_is_loading_is_asked_for_later() -> None:
    """TransactionCoordinatorTest shouldRespondWithCoordinatorLoadInProgressOnInitPidWhenCoordintorLoading"""
    c = Context(own=False)
    c.topic.hold_loads()
    c.elect()
    assert c.init_producer_id().result == refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    c.topic.finish_loads()
    assert c.init_producer_id().result == producer(0, 0)


@pytest.mark.parametrize(
    "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
)
def test_the_next_producer_gets_the_next_epoch_and_its_own_timeout(state: TransactionState) -> None:
    """TransactionCoordinatorTest shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingEmptyTransaction
    TransactionCoordinatorTest shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteTransaction
    TransactionCoordinatorTest
    shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteCommitTransaction"""
    c = Context()
    known = c.put(state=state)
    c.sleep(5)
    assert c.init_producer_id(timeout=10).result == producer(10, 2)
    assert (known.state, known.txn_timeout_ms, known.producer_epoch) == (TransactionState.EMPTY, 10, 2)
    assert known.txn_last_update_timestamp == c.clock.now_ms()


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_a_transaction_that_is_ending_is_waited_for(state: TransactionState) -> None:
    """TransactionCoordinatorTest
    shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareCommitState
    TransactionCoordinatorTest
    shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareAbortState"""
    c = Context()
    c.put(state=state)
    assert c.init_producer_id().result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)


def test_an_open_transaction_is_aborted_first() -> None:
    """TransactionCoordinatorTest shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState"""
    c = Context()
    old = c.ongoing()
    assert c.init_producer_id().result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert c.states() == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    assert {(marker.producer_epoch, marker.is_commit) for marker in c.desk.written} == {(1, False)}
    assert c.end_txn(old, is_commit=True).result is ErrorCode.INVALID_PRODUCER_EPOCH
    assert c.init_producer_id().result == producer(0, 2)
    assert c.add_partitions(old, PARTITIONS[0]).result is ErrorCode.INVALID_PRODUCER_EPOCH


def test_while_the_abort_is_under_way_the_client_waits() -> None:
    c = Context()
    c.ongoing()
    c.desk.hold()
    assert c.init_producer_id().result.error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert c.init_producer_id().result.error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert c.states()[-1] == "PrepareAbort"
    c.desk.release()
    assert c.init_producer_id().result == producer(0, 2)


def test_an_epoch_that_could_not_be_written_is_not_raised_again() -> None:
    """TransactionCoordinatorTest shouldNotRepeatedlyBumpEpochDueToInitPidDuringOngoingTxnIfAppendToLogFails"""
    c = Context()
    c.ongoing()
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS, times=2)
    for _ in range(2):
        assert c.init_producer_id().result == refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert (c.metadata().producer_epoch, c.metadata().has_failed_epoch_fence) == (1, True)
    assert c.init_producer_id().result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert (c.metadata().producer_epoch, c.metadata().has_failed_epoch_fence) == (1, False)


def test_when_epochs_run_out_the_highest_one_fences() -> None:
    """TransactionCoordinatorTest shouldUseLastEpochToFenceWhenEpochsAreExhausted"""
    c = Context()
    c.put(producer_epoch=MAX_EPOCH - 1, state=TransactionState.ONGOING)
    assert c.init_producer_id().result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert c.metadata().producer_epoch == MAX_EPOCH
    assert c.init_producer_id().result == producer(0, 0), "a new producer id"


def test_when_the_highest_epoch_could_not_be_written_it_is_tried_again() -> None:
    c = Context()
    c.put(producer_epoch=MAX_EPOCH - 1, state=TransactionState.ONGOING)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert c.init_producer_id().result == refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert c.init_producer_id().result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert c.init_producer_id().result == producer(0, 0)


def test_when_epochs_are_used_up_there_is_a_new_producer_id() -> None:
    """TransactionCoordinatorTest shouldGenerateNewProducerIdIfEpochsExhausted"""
    c = Context()
    c.put(producer_epoch=MAX_EPOCH - 1, last_producer_epoch=MAX_EPOCH - 2)
    assert c.init_producer_id().result == producer(0, 0)
    assert (c.metadata().last_producer_id, c.metadata().last_producer_epoch) == (10, -1)


def test_of_a_producer_whose_last_epoch_nobody_knows_only_the_current_one_goes_on() -> None:
    """TransactionCoordinatorTest testInitProducerIdWithNoLastProducerData"""
    c = Context()
    c.put(last_producer_id=-1, producer_epoch=2)
    assert c.init_producer_id(expected=(10, 1)).result == refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert c.init_producer_id(expected=(10, 2)).result == producer(10, 3)


def test_a_producer_with_another_id_is_fenced() -> None:
    """TransactionCoordinatorTest testFenceProducerWhenMappingExistsWithDifferentProducerId"""
    c = Context()
    c.put(producer_id=11, last_producer_epoch=0)
    assert c.init_producer_id(expected=(10, 1)).result == refused(ErrorCode.INVALID_PRODUCER_EPOCH)


def test_a_producer_that_goes_on_may_ask_twice() -> None:
    """TransactionCoordinatorTest testInitProducerIdWithCurrentEpochProvided"""
    c = Context()
    c.put(producer_epoch=10, last_producer_epoch=9)
    assert c.init_producer_id(expected=(10, 10)).result == producer(10, 11)
    assert c.init_producer_id(expected=(10, 10)).result == producer(10, 11)


def test_a_producer_cannot_go_on_after_another_has_come() -> None:
    """TransactionCoordinatorTest testInitProducerIdStaleCurrentEpochProvided"""
    c = Context()
    c.put(producer_epoch=10, last_producer_epoch=9)
    assert c.init_producer_id().result == producer(10, 11)
    assert c.init_producer_id(expected=(10, 10)).result == refused(ErrorCode.INVALID_PRODUCER_EPOCH)


def test_a_producer_that_goes_on_with_a_new_id_may_ask_twice() -> None:
    """TransactionCoordinatorTest testRetryInitProducerIdAfterProducerIdRotation"""
    c = Context()
    c.put(producer_epoch=MAX_EPOCH - 1, last_producer_epoch=MAX_EPOCH - 2)
    assert c.init_producer_id(expected=(10, MAX_EPOCH - 1)).result == producer(0, 0)
    assert c.init_producer_id(expected=(10, MAX_EPOCH - 1)).result == producer(0, 0)


def test_an_older_epoch_of_the_id_before_is_fenced() -> None:
    """TransactionCoordinatorTest testInitProducerIdWithInvalidEpochAfterProducerIdRotation"""
    c = Context()
    c.put(producer_epoch=MAX_EPOCH - 1, last_producer_epoch=MAX_EPOCH - 2)
    assert c.init_producer_id(expected=(10, MAX_EPOCH - 1)).result == producer(0, 0)
    assert c.init_producer_id(expected=(10, MAX_EPOCH - 2)).result == refused(ErrorCode.INVALID_PRODUCER_EPOCH)


def test_a_producer_that_was_fenced_with_the_highest_epoch_is_told_so() -> None:
    """Repaired: InitProducerId of a producer that was fenced with the highest epoch is INVALID_PRODUCER_EPOCH; Kafka
    2.6.3 answers UNKNOWN_SERVER_ERROR."""
    c = Context()
    c.put(producer_epoch=MAX_EPOCH, state=TransactionState.COMPLETE_ABORT)
    assert c.init_producer_id(expected=(10, MAX_EPOCH - 1)).result == refused(ErrorCode.INVALID_PRODUCER_EPOCH)


def test_while_an_end_is_being_written_nobody_gets_an_epoch() -> None:
    """TransactionCoordinatorTest shouldNotBumpEpochWithPendingTransaction"""
    c = Context()
    open_one = c.ongoing()
    c.topic.hold()
    ending = c.end_txn(open_one, is_commit=True)
    assert c.init_producer_id(expected=(0, 0)).result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert c.init_producer_id().result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    c.topic.release()
    assert ending.result is ErrorCode.NONE


def test_of_two_new_producers_at_once_one_waits() -> None:
    """TransactionCoordinatorConcurrencyTest testConcurrentNewInitProducerIdRequests"""
    c = Context()
    c.topic.hold()
    first, second = c.init_producer_id(), c.init_producer_id()
    assert second.result == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert not first.is_done
    c.topic.release()
    assert first.result == producer(0, 0)


def test_without_producer_ids_the_server_is_at_fault() -> None:
    def none_left() -> int:
        raise KohortError("no ids left")

    c = Context(new_producer_id=none_left)
    assert c.init_producer_id().result == refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert c.init_producer_id(None).result == refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert c.find() is None
