"""One transactional id: epochs, producer ids, partitions, and times of day that go back."""

from typing import Any

import pytest

from kohort.errors import ErrorCode, IllegalState
from kohort.log.names import TopicPartition
from kohort.transaction.metadata import TransactionMetadata, TxnTransitMetadata
from kohort.transaction.records import TransactionalId
from kohort.transaction.states import TransactionState

NOW = 1_600_000_000_000
PRODUCER = 23_423
MAX_EPOCH = 32_767
T1, T2 = TopicPartition("topic1", 0), TopicPartition("topic2", 0)


def metadata(**fields: Any) -> TransactionMetadata:
    told = {"producer_id": PRODUCER, "txn_timeout_ms": 30_000, "txn_last_update_timestamp": NOW} | fields
    return TransactionMetadata(TransactionalId("txnlId"), **told)


def bump(known: TransactionMetadata, expected: int | None = None, now: int = NOW) -> None:
    transit = known.prepare_increment_producer_epoch(30_000, expected, now)
    assert isinstance(transit, TxnTransitMetadata)
    known.complete_transition_to(transit)


def epochs(known: TransactionMetadata) -> tuple[int, int, int]:
    return known.producer_id, known.producer_epoch, known.last_producer_epoch


def times(known: TransactionMetadata) -> tuple[int, int]:
    return known.txn_start_timestamp, known.txn_last_update_timestamp


def test_the_first_epoch_is_0() -> None:
    """TransactionMetadataTest testInitializeEpoch"""
    known = metadata()
    bump(known)
    assert epochs(known) == (PRODUCER, 0, -1)


def test_a_new_producer_gets_the_next_epoch() -> None:
    """TransactionMetadataTest testNormalEpochBump"""
    known = metadata(producer_epoch=735)
    bump(known)
    assert epochs(known) == (PRODUCER, 736, -1)


def test_the_last_epoch_is_not_given_to_a_producer() -> None:
    """TransactionMetadataTest testBumpEpochNotAllowedIfEpochsExhausted"""
    known = metadata(producer_epoch=MAX_EPOCH - 1)
    assert known.is_producer_epoch_exhausted
    with pytest.raises(IllegalState):
        known.prepare_increment_producer_epoch(30_000, None, NOW)


def test_a_clock_that_goes_back_does_not_hinder_a_new_epoch() -> None:
    """TransactionMetadataTest testTolerateUpdateTimeShiftDuringEpochBump"""
    known = metadata(producer_epoch=1, txn_start_timestamp=1)
    bump(known, 1, NOW - 1)
    assert epochs(known) == (PRODUCER, 2, 1)
    assert times(known) == (1, NOW - 1)


def test_a_clock_that_goes_back_does_not_hinder_a_new_producer_id() -> None:
    """TransactionMetadataTest testTolerateUpdateTimeResetDuringProducerIdRotation"""
    known = metadata(producer_epoch=1, txn_start_timestamp=1)
    known.complete_transition_to(
        known.prepare_producer_id_rotation(PRODUCER + 1, 30_000, NOW - 1, record_last_epoch=True)
    )
    assert epochs(known) == (PRODUCER + 1, 0, 1)
    assert times(known) == (1, NOW - 1)


def test_the_first_partition_sets_the_start_and_the_second_does_not() -> None:
    """TransactionMetadataTest testTolerateTimeShiftDuringAddPartitions"""
    known = metadata(producer_epoch=1, txn_start_timestamp=NOW)
    known.complete_transition_to(known.prepare_add_partitions((T1,), NOW - 1))
    assert known.topic_partitions == (T1,)
    assert times(known) == (NOW - 1, NOW - 1)
    known.complete_transition_to(known.prepare_add_partitions((T2,), NOW - 2))
    assert known.topic_partitions == (T1, T2)
    assert times(known) == (NOW - 1, NOW - 2)
    assert epochs(known) == (PRODUCER, 1, -1)


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_a_clock_that_goes_back_does_not_hinder_an_end(state: TransactionState) -> None:
    """TransactionMetadataTest testTolerateTimeShiftDuringPrepareCommit
    TransactionMetadataTest testTolerateTimeShiftDuringPrepareAbort"""
    known = metadata(producer_epoch=1, state=TransactionState.ONGOING, txn_start_timestamp=1)
    known.complete_transition_to(known.prepare_abort_or_commit(state, NOW - 1))
    assert known.state is state
    assert epochs(known) == (PRODUCER, 1, -1)
    assert times(known) == (1, NOW - 1)


@pytest.mark.parametrize(
    ("state", "end"),
    [
        (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
        (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
    ],
)
def test_a_clock_that_goes_back_does_not_hinder_completion(state: TransactionState, end: TransactionState) -> None:
    """TransactionMetadataTest testTolerateTimeShiftDuringCompleteCommit
    TransactionMetadataTest testTolerateTimeShiftDuringCompleteAbort"""
    known = metadata(producer_epoch=1, state=state, txn_start_timestamp=1)
    known.complete_transition_to(known.prepare_complete(NOW - 1))
    assert known.state is end
    assert epochs(known) == (PRODUCER, 1, -1)
    assert times(known) == (1, NOW - 1)


def test_the_highest_epoch_fences_the_last_producer() -> None:
    """TransactionMetadataTest testFenceProducerAfterEpochsExhausted"""
    known = metadata(producer_epoch=MAX_EPOCH - 1, state=TransactionState.ONGOING)
    fence = known.prepare_fence_producer_epoch()
    assert (fence.producer_epoch, fence.last_producer_epoch) == (MAX_EPOCH, -1)
    assert known.pending_state is TransactionState.PREPARE_EPOCH_FENCE
    known.fence(fence)
    known.complete_transition_to(known.prepare_abort_or_commit(TransactionState.PREPARE_ABORT, NOW))
    assert epochs(known) == (PRODUCER, MAX_EPOCH, -1)


def test_nobody_is_fenced_beyond_the_highest_epoch() -> None:
    """TransactionMetadataTest testFenceProducerNotAllowedIfItWouldOverflow"""
    known = metadata(producer_epoch=MAX_EPOCH, state=TransactionState.ONGOING)
    with pytest.raises(IllegalState):
        known.prepare_fence_producer_epoch()


def test_a_fence_with_the_highest_epoch_that_failed_can_be_tried_again() -> None:
    """Repaired: a fence with the highest epoch that could not be written is tried again; Kafka 2.6.3 refuses to, and
    the transaction stays open until the coordinator loads it again."""
    known = metadata(producer_epoch=MAX_EPOCH, state=TransactionState.ONGOING)
    known.has_failed_epoch_fence = True
    assert known.prepare_fence_producer_epoch().producer_epoch == MAX_EPOCH


def test_only_what_is_about_to_be_fenced_can_be() -> None:
    known = metadata(producer_epoch=1, state=TransactionState.ONGOING)
    fence = known.prepare_fence_producer_epoch()
    known.pending_state = None
    with pytest.raises(IllegalState):
        known.fence(fence)


def test_a_new_producer_id_begins_at_epoch_0() -> None:
    """TransactionMetadataTest testRotateProducerId"""
    known = metadata(producer_epoch=MAX_EPOCH - 1)
    known.complete_transition_to(known.prepare_producer_id_rotation(9893, 30_000, NOW, record_last_epoch=True))
    assert epochs(known) == (9893, 0, MAX_EPOCH - 1)
    assert known.last_producer_id == PRODUCER


@pytest.mark.parametrize(
    "state", [TransactionState.ONGOING, TransactionState.PREPARE_ABORT, TransactionState.PREPARE_COMMIT]
)
def test_a_transaction_keeps_its_producer_id(state: TransactionState) -> None:
    """TransactionMetadataTest testRotateProducerIdInOngoingState
    TransactionMetadataTest testRotateProducerIdInPrepareAbortState
    TransactionMetadataTest testRotateProducerIdInPrepareCommitState"""
    known = metadata(producer_epoch=MAX_EPOCH - 1, state=state)
    with pytest.raises(IllegalState):
        known.prepare_producer_id_rotation(9893, 30_000, NOW, record_last_epoch=False)


def test_a_producer_that_goes_on_with_an_id_that_is_new_begins_at_0() -> None:
    """TransactionMetadataTest testAttemptedEpochBumpWithNewlyCreatedMetadata"""
    known = metadata()
    bump(known, 735)
    assert epochs(known) == (PRODUCER, 0, -1)


def test_a_producer_that_goes_on_gets_the_next_epoch_and_its_own_is_remembered() -> None:
    """TransactionMetadataTest testEpochBumpWithCurrentEpochProvided"""
    known = metadata(producer_epoch=735)
    bump(known, 735)
    assert epochs(known) == (PRODUCER, 736, 735)


def test_a_producer_that_asks_again_gets_the_same_epoch() -> None:
    """TransactionMetadataTest testAttemptedEpochBumpWithLastEpoch"""
    known = metadata(producer_epoch=735, last_producer_epoch=734)
    bump(known, 734)
    assert epochs(known) == (PRODUCER, 735, 734)


def test_a_producer_that_asks_again_gets_the_last_epoch_too() -> None:
    """Repaired: a producer that goes on (KIP-360), gets the last epoch and asks again is answered; Kafka 2.6.3 answers
    UNKNOWN_SERVER_ERROR."""
    known = metadata(producer_epoch=MAX_EPOCH - 1, last_producer_epoch=MAX_EPOCH - 2)
    bump(known, MAX_EPOCH - 2)
    assert epochs(known) == (PRODUCER, MAX_EPOCH - 1, MAX_EPOCH - 2)


def test_a_producer_with_an_older_epoch_is_fenced() -> None:
    """TransactionMetadataTest testAttemptedEpochBumpWithFencedEpoch"""
    known = metadata(producer_epoch=735, last_producer_id=PRODUCER, last_producer_epoch=734)
    assert known.prepare_increment_producer_epoch(30_000, 733, NOW) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert known.pending_state is None


def test_what_was_not_prepared_cannot_be_completed() -> None:
    known = metadata(producer_epoch=1)
    transit = known.prepare_add_partitions((T1,), NOW)
    known.pending_state = None
    with pytest.raises(IllegalState):
        known.complete_transition_to(transit)


@pytest.mark.parametrize(
    "changes",
    [
        {"producer_id": 1},
        {"producer_epoch": 7},
        {"txn_timeout_ms": 1},
        {"topic_partitions": (T2,)},
        {"txn_state": TransactionState.PREPARE_ABORT},
    ],
)
def test_what_does_not_follow_is_refused(changes: dict[str, Any]) -> None:
    known = metadata(producer_epoch=1, state=TransactionState.ONGOING, topic_partitions=(T1,), txn_start_timestamp=1)
    transit = known.prepare_add_partitions((T2,), NOW)
    with pytest.raises(IllegalState):
        known.complete_transition_to(transit._replace(**changes))


@pytest.mark.parametrize("changes", [{"topic_partitions": ()}, {"txn_start_timestamp": 2}, {"producer_epoch": 2}])
def test_an_end_changes_neither_partitions_nor_start_nor_producer(changes: dict[str, Any]) -> None:
    known = metadata(producer_epoch=1, state=TransactionState.ONGOING, topic_partitions=(T1,), txn_start_timestamp=1)
    transit = known.prepare_abort_or_commit(TransactionState.PREPARE_COMMIT, NOW)
    with pytest.raises(IllegalState):
        known.complete_transition_to(transit._replace(**changes))


@pytest.mark.parametrize("changes", [{"topic_partitions": (T1,)}, {"txn_start_timestamp": 2}, {"producer_epoch": 5}])
def test_a_new_epoch_is_the_next_one_and_comes_without_a_transaction(changes: dict[str, Any]) -> None:
    known = metadata(producer_epoch=1)
    transit = known.prepare_increment_producer_epoch(30_000, None, NOW)
    assert isinstance(transit, TxnTransitMetadata)
    with pytest.raises(IllegalState):
        known.complete_transition_to(transit._replace(**changes))


def test_neither_a_fence_nor_an_end_of_an_id_is_ever_complete() -> None:
    fenced = metadata(producer_epoch=1, state=TransactionState.ONGOING)
    with pytest.raises(IllegalState):
        fenced.complete_transition_to(fenced.prepare_fence_producer_epoch()._replace(producer_epoch=1))
    gone = metadata(producer_epoch=1)
    with pytest.raises(IllegalState):
        gone.complete_transition_to(gone.prepare_dead())


def test_markers_belong_to_a_transaction_that_ends() -> None:
    known = metadata(producer_epoch=1, state=TransactionState.ONGOING, topic_partitions=(T1, T2))
    with pytest.raises(IllegalState):
        known.remove_partitions({T1})
    known.state = TransactionState.PREPARE_COMMIT
    known.remove_partitions({T1})
    assert known.topic_partitions == (T2,)


def test_a_producer_id_below_0_is_none() -> None:
    known = metadata(producer_epoch=MAX_EPOCH - 1)
    with pytest.raises(IllegalState):
        known.prepare_producer_id_rotation(-1, 30_000, NOW, record_last_epoch=False)
