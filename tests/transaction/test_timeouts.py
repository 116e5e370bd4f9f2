"""Transactions that are open for too long, and answers that take too long."""

import pytest

from kohort.errors import ErrorCode
from kohort.transaction.states import TransactionState
from tests.transaction.context import ABORT_INTERVAL, ID, OTHER_ID, PARTITIONS, Context, producer


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    """TransactionCoordinatorTest shouldAbortExpiredTransactionsInOngoingStateAndBumpEpoch"""
    c = Context()
    open_one = c.ongoing(timeout=1)
    c.sleep(ABORT_INTERVAL + 1)
    assert c.states() == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    prepared = c.records()[2][1]
    assert prepared is not None
    assert (prepared.producer_epoch, prepared.txn_last_update_timestamp) == (1, c.clock.now_ms())
    assert [tuple(marker.partition) for marker in c.desk.written] == list(PARTITIONS)
    assert {(marker.producer_epoch, marker.is_commit) for marker in c.desk.written} == {(1, False)}
    assert c.end_txn(open_one, is_commit=True).result is ErrorCode.INVALID_PRODUCER_EPOCH
    assert c.init_producer_id(expected=(0, 0)).result.error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert c.init_producer_id().result == producer(0, 2)


def test_after_a_fence_a_question_asked_again_gets_no_epoch() -> None:
    c = Context()
    c.init_producer_id(timeout=1)
    assert c.init_producer_id(timeout=1, expected=(0, 0)).result == producer(0, 1)
    c.add_partitions(producer(0, 1), PARTITIONS[0])
    c.sleep(ABORT_INTERVAL + 1)
    assert (c.metadata().producer_epoch, c.metadata().last_producer_epoch) == (2, -1)
    assert c.init_producer_id(expected=(0, 0)).result.error is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_is_not_aborted_before_its_time() -> None:
    c = Context()
    open_one = c.ongoing(timeout=ABORT_INTERVAL + 1)
    c.sleep(ABORT_INTERVAL + 1)
    assert c.state() == "Ongoing"
    assert c.end_txn(open_one, is_commit=True).result is ErrorCode.NONE


def test_adding_partitions_does_not_put_the_timeout_off() -> None:
    c = Context()
    open_one = c.ongoing(timeout=15_000)
    c.sleep(ABORT_INTERVAL + 1)
    assert c.add_partitions(open_one, ("more", 0)).result is ErrorCode.NONE
    c.sleep(ABORT_INTERVAL + 1)
    assert c.state() == "CompleteAbort"


def test_only_open_transactions_time_out() -> None:
    """TransactionStateManagerTest shouldOnlyConsiderTransactionsInTheOngoingStateToAbort"""
    c = Context()
    c.elect(1)
    c.put("ongoing", state=TransactionState.ONGOING, txn_timeout_ms=1_000)
    c.put("not-expiring", state=TransactionState.ONGOING, txn_timeout_ms=10_000)
    for state in set(TransactionState) - {TransactionState.ONGOING}:
        c.put(state.value, state=state, txn_timeout_ms=1_000)
    c.sleep(2_000)
    assert [found.transactional_id for found in c.manager.timed_out_transactions()] == ["ongoing"]


def test_a_transaction_that_is_about_to_end_is_not_aborted() -> None:
    """TransactionCoordinatorTest shouldNotAbortExpiredTransactionsThatHaveAPendingStateTransition"""
    c = Context()
    open_one = c.ongoing(timeout=20_000)
    c.topic.hold()
    ending = c.end_txn(open_one, is_commit=True)
    c.sleep(ABORT_INTERVAL + 1)
    c.sleep(ABORT_INTERVAL + 1)
    c.topic.release()
    assert c.state() == "CompleteCommit"
    assert ending.is_done


def test_a_fence_that_cannot_be_written_is_tried_again_with_the_same_epoch() -> None:
    """TransactionCoordinatorTest shouldNotBumpEpochWhenAbortingExpiredTransactionIfAppendToLogFails"""
    c = Context()
    open_one = c.ongoing(timeout=1)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.sleep(ABORT_INTERVAL + 1)
    assert (c.state(), c.pending()) == ("Ongoing", None)
    assert (c.metadata().producer_epoch, c.metadata().has_failed_epoch_fence) == (1, True)
    assert c.end_txn(open_one, is_commit=True).result is ErrorCode.INVALID_PRODUCER_EPOCH
    c.sleep(ABORT_INTERVAL + 1)
    assert c.state() == "CompleteAbort"
    assert (c.metadata().producer_epoch, c.metadata().has_failed_epoch_fence) == (1, False)


def test_one_transaction_that_cannot_be_aborted_does_not_hinder_the_others() -> None:
    c = Context()
    c.put("two", state=TransactionState.ONGOING, producer_epoch=32_767, txn_timeout_ms=1)
    c.ongoing(timeout=1)
    c.sleep(ABORT_INTERVAL + 1)
    assert (c.state("two"), c.state()) == ("Ongoing", "CompleteAbort")


def test_a_transaction_that_was_loaded_times_out_from_its_start() -> None:
    c = Context()
    c.ongoing(timeout=15_000)
    c.clock.advance(14_000)
    successor = c.restarted()
    successor.sleep(ABORT_INTERVAL + 1)
    assert successor.state() == "CompleteAbort"


def test_after_shutdown_nothing_times_out() -> None:
    c = Context()
    c.ongoing(timeout=1)
    c.coordinator.shutdown()
    c.sleep(10 * ABORT_INTERVAL)
    assert c.states() == ["Empty", "Ongoing"]
    assert c.init_producer_id().result.error is ErrorCode.NOT_COORDINATOR
    assert c.init_producer_id(None).result == producer(1, 0)


def test_an_epoch_that_takes_too_long_to_write_is_asked_for_later() -> None:
    """Python: Kafka's purgatory answers and takes back what is pending; here that stays until the log has spoken, so
    that memory never contradicts what is written."""
    c = Context()
    c.topic.hold()
    first = c.init_producer_id(timeout=500)
    c.sleep(500)
    assert not first.is_done
    c.sleep(1)
    assert first.result.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert c.init_producer_id().result.error is ErrorCode.CONCURRENT_TRANSACTIONS
    c.topic.release()
    assert (c.state(), c.metadata().producer_epoch) == ("Empty", 0)
    assert c.init_producer_id().result == producer(0, 1)


@pytest.mark.parametrize("is_written", [True, False])
def test_an_end_that_takes_too_long_to_write_still_happens_if_it_is_written(is_written: bool) -> None:
    c = Context()
    open_one = c.ongoing(timeout=500)
    c.topic.hold()
    ending = c.end_txn(open_one, is_commit=True)
    c.sleep(501)
    assert ending.result is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert c.desk.asked == 0
    if is_written:
        c.topic.release()
        assert c.state() == "CompleteCommit"
        assert c.end_txn(open_one, is_commit=True).result is ErrorCode.NONE
    else:
        c.topic.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert (c.state(), c.pending(), c.desk.asked) == ("Ongoing", None, 0)


def test_who_is_answered_in_time_is_not_answered_again() -> None:
    c = Context()
    c.topic.hold()
    first = c.init_producer_id(timeout=500)
    c.topic.release()
    assert first.result == producer(0, 0)
    c.sleep(501)


def test_many_transactions_time_out_together() -> None:
    c = Context()
    c.ongoing(timeout=1)
    c.ongoing(("other", 0), transactional_id=OTHER_ID, timeout=1)
    c.sleep(ABORT_INTERVAL + 1)
    assert (c.state(ID), c.state(OTHER_ID)) == ("CompleteAbort", "CompleteAbort")
