"""Transactional ids that nobody uses any more."""

import pytest

from kohort.errors import ErrorCode
from kohort.transaction.records import TransactionalId
from kohort.transaction.states import IDLE_STATES, TransactionState
from tests.transaction.context import EXPIRATION, ID, OTHER_ID, Context, producer

HOUR = 3_600_000


def expired(c: Context, transactional_id: str = ID, **fields: object) -> None:
    c.put(transactional_id, txn_last_update_timestamp=c.clock.now_ms() - EXPIRATION, **fields)


@pytest.mark.parametrize("state", sorted(IDLE_STATES))
def test_an_idle_id_goes_and_others_stay(state: TransactionState) -> None:
    """TransactionStateManagerTest shouldRemoveCompleteCommitExpiredTransactionalIds
    TransactionStateManagerTest shouldRemoveCompleteAbortExpiredTransactionalIds
    TransactionStateManagerTest shouldRemoveEmptyExpiredTransactionalIds"""
    c = Context()
    expired(c, state=state)
    c.put(OTHER_ID)
    c.coordinator.remove_expired_transactional_ids()
    assert c.find() is None
    assert c.pending(OTHER_ID) is None
    assert c.records() == [(ID, None)]


def test_ids_stay_if_their_tombstones_cannot_be_written() -> None:
    """TransactionStateManagerTest shouldNotRemoveExpiredTransactionalIdsIfLogAppendFails"""
    c = Context()
    expired(c, state=TransactionState.COMPLETE_ABORT)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.coordinator.remove_expired_transactional_ids()
    assert (c.state(), c.pending()) == ("CompleteAbort", None)
    c.coordinator.remove_expired_transactional_ids()
    assert c.find() is None


@pytest.mark.parametrize("state", sorted(set(TransactionState) - IDLE_STATES))
def test_an_id_with_a_transaction_stays(state: TransactionState) -> None:
    """TransactionStateManagerTest shouldNotRemoveOngoingTransactionalIds
    TransactionStateManagerTest shouldNotRemovePrepareAbortTransactionalIds
    TransactionStateManagerTest shouldNotRemovePrepareCommitTransactionalIds"""
    c = Context()
    expired(c, state=state)
    c.coordinator.remove_expired_transactional_ids()
    assert (c.state(), c.pending(), c.records()) == (state.value, None, [])


def test_ids_go_by_themselves_after_a_week() -> None:
    c = Context()
    c.ended(is_commit=True)
    c.sleep(EXPIRATION - 1)
    assert c.state() == "CompleteCommit"
    c.sleep(HOUR + 1)
    assert c.find() is None
    assert c.records()[-1] == (ID, None)
    assert c.restarted().find() is None


def test_an_id_that_is_used_stays() -> None:
    c = Context()
    c.init_producer_id()
    c.clock.advance(EXPIRATION - 1)
    begun = c.init_producer_id().result
    c.sleep(HOUR + 1)
    assert c.state() == "Empty"
    assert c.add_partitions(begun, ("t", 0)).result is ErrorCode.NONE


def test_while_a_tombstone_is_on_the_way_the_id_cannot_be_used() -> None:
    c = Context()
    expired(c)
    c.topic.hold()
    c.coordinator.remove_expired_transactional_ids()
    assert c.pending() is TransactionState.DEAD
    assert c.init_producer_id().result.error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert c.add_partitions(producer(), ("t", 0)).result is ErrorCode.CONCURRENT_TRANSACTIONS
    assert c.end_txn(producer(), is_commit=True).result is ErrorCode.CONCURRENT_TRANSACTIONS
    c.topic.release()
    assert c.init_producer_id().result == producer(0, 0), "as if nobody had ever used it"
    assert c.restarted().metadata().producer_epoch == 0


def test_an_id_that_is_being_written_stays() -> None:
    c = Context()
    expired(c)
    c.topic.hold()
    begun = c.init_producer_id()
    c.coordinator.remove_expired_transactional_ids()
    c.topic.release()
    assert begun.result == producer(10, 2)
    assert c.state() == "Empty"


def test_an_id_without_an_epoch_goes_too() -> None:
    """TransactionStateManagerTest testTransactionExpirationShouldNotFailWithUninitializedTransactionMetadata
    Repaired: a transactional id whose first epoch could not be written expires like any other; in Kafka 2.6.3 it ends
    the whole round, as long as it is there."""
    c = Context()
    expired(c, producer_epoch=-1)
    expired(c, OTHER_ID)
    c.coordinator.remove_expired_transactional_ids()
    assert (c.find(), c.find(OTHER_ID)) == (None, None)


def test_many_ids_go_in_batches_with_pauses() -> None:
    """TransactionStateManagerTest testTransactionExpirationShouldRespectBatchSize"""
    c = Context()
    c.elect(1)
    ids = [f"id_{number}" for number in range(2_001)]
    for transactional_id in ids:
        expired(c, transactional_id)
    c.coordinator.remove_expired_transactional_ids()
    left = sum(c.find(each) is not None for each in ids)
    assert 0 < left < 2_001
    for _ in range(10):
        c.sleep(1)
    assert all(c.find(each) is None for each in ids)
    batches = [len(batch.records) for partition in (0, 1) for batch in c.topic.batches(partition)]
    assert max(batches) == 500
    assert sum(batches) == 2_001
    assert {key for partition in (0, 1) for key, _ in c.records(partition=partition)} == set(ids)


def test_an_id_that_is_used_before_its_turn_comes_stays() -> None:
    c = Context()
    ids = [each for each in (f"id_{number}" for number in range(3_000)) if _is_here(c, each)]
    for transactional_id in ids:
        expired(c, transactional_id)
    c.coordinator.remove_expired_transactional_ids()
    assert c.find(ids[-1]) is not None
    assert c.init_producer_id(ids[-1]).result == producer(10, 2)
    for _ in range(10):
        c.sleep(1)
    assert [each for each in ids if c.find(each) is not None] == [ids[-1]]


def _is_here(c: Context, transactional_id: str) -> bool:
    return c.manager.partition_for(TransactionalId(transactional_id)) == 0


def test_one_partition_that_cannot_be_written_does_not_hinder_the_others() -> None:
    """TransactionStateManagerTest testTransactionalExpirationWithOfflineLogDir
    TransactionStateManagerTest testTransactionalExpirationWithTooSmallBatchSize"""
    c = Context()
    c.elect(1)
    ids = [f"id_{number}" for number in range(20)]
    for transactional_id in ids:
        expired(c, transactional_id)
    c.topic.elsewhere.add(1)
    c.coordinator.remove_expired_transactional_ids()
    for _ in range(5):
        c.sleep(1)
    assert all((c.find(each) is None) == _is_here(c, each) for each in ids)
    assert all(c.pending(each) is None for each in ids if not _is_here(c, each))


def test_what_was_unloaded_meanwhile_is_left_alone() -> None:
    c = Context()
    c.init_producer_id()
    c.clock.advance(EXPIRATION)
    c.topic.hold()
    c.coordinator.remove_expired_transactional_ids()
    c.topic.fail_held(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    c.coordinator.remove_expired_transactional_ids()
    c.elect(epoch=1)
    assert c.find() is None, "its tombstone was in the log already"
    c.init_producer_id()
    c.topic.release()
    assert c.state() == "Empty"
