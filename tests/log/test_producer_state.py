"""Idempotence: which batch of a producer is taken. Most cases are those of Kafka's ProducerStateManagerTest."""

import pytest

from kohort.errors import (
    ClientError,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kohort.log.partition import AppendOrigin
from kohort.log.producer_entry import ProducerEntry
from tests.log.log_bench import TIME, Bench, batch, marker

LAST = (1 << 31) - 1
PRODUCER = 7


def send(
    bench: Bench, sequence: int, count: int = 1, *, epoch: int = 0, transactional: bool = False, **other: int
) -> tuple[int, int, bool]:
    """A client's batch; gives first offset, last offset, and whether it was there already."""
    data = batch(
        *["v"] * count, producer=PRODUCER, epoch=epoch, sequence=sequence, transactional=transactional, **other
    )
    info = bench.log.append(data)
    return info.first_offset, info.last_offset, info.is_duplicate


def end(bench: Bench, *, epoch: int = 0, commit: bool = True, coordinator_epoch: int = 0) -> None:
    data = marker(PRODUCER, epoch=epoch, commit=commit, coordinator_epoch=coordinator_epoch)
    bench.log.append(data, origin=AppendOrigin.COORDINATOR)


def entry(bench: Bench) -> ProducerEntry:
    return bench.log.producer_state.entries[PRODUCER]


def test_a_batch_that_continues_the_numbering_is_taken() -> None:
    """testBasicIdMapping"""
    bench = Bench()
    assert send(bench, 0) == (0, 0, False)
    assert send(bench, 1) == (1, 1, False)
    assert send(bench, 2, 3) == (2, 4, False)
    assert send(bench, 5) == (5, 5, False)


@pytest.mark.parametrize("sequence", [0, 1, 3, LAST])
def test_a_batch_that_does_not_is_refused(sequence: int) -> None:
    bench = Bench()
    send(bench, 0, 2)
    with pytest.raises(OutOfOrderSequence):
        send(bench, sequence)
    assert bench.log.log_end_offset == 2
    assert entry(bench).last_sequence == 1


def test_a_producer_of_whom_nothing_is_known_may_begin_anywhere() -> None:
    """testNoValidationOnFirstEntryWhenLoadingLog, and KIP-360: UNKNOWN_PRODUCER_ID does not arise."""
    bench = Bench()
    assert send(bench, 16) == (0, 0, False)
    assert send(bench, 17) == (1, 1, False)


def test_sequences_wrap_around() -> None:
    """testProducerSequenceWrapAround"""
    bench = Bench()
    send(bench, LAST)
    assert send(bench, 0) == (1, 1, False)


def test_sequences_wrap_around_inside_a_batch() -> None:
    """testProducerSequenceWithWrapAroundBatchRecord"""
    bench = Bench()
    send(bench, LAST - 9, 20)
    assert entry(bench).last_sequence == 9
    assert send(bench, LAST - 9, 20) == (0, 19, True)
    assert send(bench, 10) == (20, 20, False)


def test_a_sequence_before_the_wrap_is_refused_behind_it() -> None:
    """testProducerSequenceInvalidWrapAround"""
    bench = Bench()
    send(bench, LAST)
    with pytest.raises(OutOfOrderSequence):
        send(bench, 1)


def test_the_last_five_batches_are_recognised_when_they_come_again() -> None:
    bench = Bench()
    for n in range(7):
        send(bench, 2 * n, 2)
    for n in range(2, 7):
        assert send(bench, 2 * n, 2) == (2 * n, 2 * n + 1, True)
    for n in range(2):
        with pytest.raises(OutOfOrderSequence):
            send(bench, 2 * n, 2)
    assert bench.log.log_end_offset == 14


def test_a_repeated_batch_must_be_the_same_in_extent() -> None:
    bench = Bench()
    send(bench, 0, 2)
    with pytest.raises(OutOfOrderSequence):
        send(bench, 0, 1)


def test_a_newer_epoch_fences_the_older() -> None:
    """testBasicIdMapping, its last case"""
    bench = Bench()
    send(bench, 0, epoch=1)
    send(bench, 0, epoch=2)
    with pytest.raises(InvalidProducerEpoch):
        send(bench, 1, epoch=1)


def test_a_newer_epoch_begins_with_sequence_0() -> None:
    """testOutOfSequenceAfterControlRecordEpochBump, for data"""
    bench = Bench()
    send(bench, 0)
    with pytest.raises(OutOfOrderSequence):
        send(bench, 1, epoch=1)
    assert send(bench, 0, epoch=1) == (1, 1, False)
    assert len(entry(bench).batches) == 1


def test_a_marker_with_a_newer_epoch_fences_and_starts_the_numbering_over() -> None:
    """testControlRecordBumpsProducerEpoch, testOutOfSequenceAfterControlRecordEpochBump"""
    bench = Bench()
    send(bench, 0)
    end(bench, epoch=1, commit=False)
    with pytest.raises(InvalidProducerEpoch):
        send(bench, 1, epoch=0)
    with pytest.raises(OutOfOrderSequence):
        send(bench, 1, epoch=1)
    send(bench, 0, epoch=1)


def test_a_marker_leaves_the_numbering_of_its_epoch() -> None:
    """updateProducerTransactionState"""
    bench = Bench()
    send(bench, 0, transactional=True)
    end(bench)
    assert entry(bench).last_sequence == 0
    send(bench, 1, transactional=True)


def test_a_marker_for_an_unknown_producer_is_taken_and_fixes_the_numbering() -> None:
    """testAppendTxnMarkerWithNoProducerState"""
    bench = Bench()
    end(bench, epoch=3)
    with pytest.raises(OutOfOrderSequence):
        send(bench, 8, epoch=3)
    send(bench, 0, epoch=3)


def test_a_marker_of_an_older_epoch_is_refused() -> None:
    """testOldEpochForControlRecord"""
    bench = Bench()
    send(bench, 0, epoch=5)
    with pytest.raises(InvalidProducerEpoch):
        end(bench, epoch=4)


def test_a_coordinator_that_is_no_longer_in_charge_is_refused() -> None:
    """testCoordinatorFencing"""
    bench = Bench()
    send(bench, 0, transactional=True)
    end(bench, coordinator_epoch=2)
    end(bench, coordinator_epoch=2)
    with pytest.raises(TransactionCoordinatorFenced):
        end(bench, coordinator_epoch=1)
    end(bench, coordinator_epoch=5)
    assert entry(bench).coordinator_epoch == 5


def test_a_coordinator_is_fenced_after_a_restart_too() -> None:
    """testCoordinatorFencedAfterReload"""
    bench = Bench()
    send(bench, 0, transactional=True)
    end(bench, coordinator_epoch=99)
    bench.restart()
    with pytest.raises(TransactionCoordinatorFenced):
        end(bench, coordinator_epoch=97)


def test_a_plain_batch_within_a_transaction_is_refused() -> None:
    """testNonTransactionalAppendWithOngoingTransaction"""
    bench = Bench()
    send(bench, 0, transactional=True)
    with pytest.raises(InvalidTxnState):
        send(bench, 1)
    assert entry(bench).last_sequence == 0


def test_a_transaction_begins_with_its_first_batch() -> None:
    """testTxnFirstOffsetMetadataCached"""
    bench = Bench()
    bench.log.append(batch("a"))
    send(bench, 0, transactional=True)
    send(bench, 1, transactional=True)
    assert entry(bench).current_txn_first_offset == 1
    end(bench)
    assert entry(bench).current_txn_first_offset is None


def test_the_group_coordinator_writes_sequence_0_again_and_again() -> None:
    """testSequenceNotValidatedForGroupMetadataTopic; epochs are checked"""
    bench = Bench()
    commit = batch("a", producer=PRODUCER, epoch=1, sequence=0, transactional=True)
    for offset in range(3):
        info = bench.log.append(commit, origin=AppendOrigin.COORDINATOR)
        assert (info.first_offset, info.is_duplicate) == (offset, False)
    old = batch("a", producer=PRODUCER, epoch=0, sequence=0, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        bench.log.append(old, origin=AppendOrigin.COORDINATOR)


def test_a_refused_append_changes_nothing_even_if_its_first_batches_were_good() -> None:
    bench = Bench()
    good = batch("a", producer=PRODUCER, epoch=5, sequence=0)
    bad = batch("a", producer=PRODUCER, epoch=4, sequence=0)
    with pytest.raises(ClientError):
        bench.log.append(good + bad, origin=AppendOrigin.COORDINATOR)
    assert not bench.log.producer_state.entries


def test_a_silent_producer_is_forgotten() -> None:
    """testPidExpirationTimeout, testRemoveExpiredPidsOnReload"""
    bench = Bench(producer_id_expiration_ms=1000)
    send(bench, 0)
    bench.clock.advance(999)
    bench.log.tick()
    with pytest.raises(OutOfOrderSequence):
        send(bench, 5)
    bench.clock.advance(1)
    bench.log.tick()
    assert send(bench, 5, time=TIME + 1000) == (1, 1, False)
    bench.log.close()
    bench.clock.advance(1000)
    bench.open(clean=True)
    assert not bench.log.producer_state.entries


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    """testProducersWithOngoingTransactionsDontExpire"""
    bench = Bench(producer_id_expiration_ms=1000)
    send(bench, 0, transactional=True)
    bench.clock.advance(100_000)
    bench.log.tick()
    assert entry(bench).current_txn_first_offset == 0
    end(bench)
    bench.log.tick()
    assert not bench.log.producer_state.entries


def test_after_a_clean_stop_the_last_batch_is_known_and_after_a_crash_all_five() -> None:
    """testTakeSnapshot: a snapshot keeps one batch of each producer"""
    bench = Bench()
    for n in range(3):
        send(bench, n)
    bench.open()
    assert send(bench, 1) == (1, 1, True)
    bench.restart()
    assert send(bench, 2) == (2, 2, True)
    with pytest.raises(OutOfOrderSequence):
        send(bench, 1)
    assert send(bench, 3) == (3, 3, False)


def test_a_batch_that_was_cut_off_may_come_again() -> None:
    """testTruncateAndReloadRemovesOutOfRangeSnapshots"""
    bench = Bench()
    for n in range(6):
        send(bench, n)
        if n == 3:
            bench.log.roll()
    bench.log.truncate_to(3)
    assert entry(bench).last_sequence == 2
    assert send(bench, 3) == (3, 3, False)
    with pytest.raises(OutOfOrderSequence):
        send(bench, 5)
