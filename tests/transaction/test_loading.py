"""From the log into memory and out of it again: elections, resignations, reloads in every state."""

import pytest

from kohort.errors import ErrorCode, KohortError
from kohort.log.names import TopicPartition
from kohort.records.batch import Record, RecordBatch
from kohort.transaction.records import TransactionalId, TransactionValue, encode_key, tombstones
from kohort.transaction.states import TransactionState
from tests.transaction.context import ELSEWHERE, ID, OTHER_ID, PARTITIONS, TIMEOUT, Context, producer

T1 = (TopicPartition("topic1", 0), TopicPartition("topic1", 1))
T2 = (TopicPartition("topic2", 0), TopicPartition("topic2", 1), TopicPartition("topic2", 2))


def value(state: TransactionState, *partitions: TopicPartition, producer_id: int = 1) -> TransactionValue:
    return TransactionValue(producer_id, 0, 1_000, state, partitions, 1_600_000_000_000, 1_600_000_000_000)


def test_of_each_id_the_last_record_counts() -> None:
    """TransactionStateManagerTest testLoadAndRemoveTransactionsForPartition"""
    c = Context(own=False)
    c.write(value(TransactionState.ONGOING, *T1))
    c.write(value(TransactionState.ONGOING, *T1, *T2))
    last_of_one = value(TransactionState.PREPARE_COMMIT, *T1, *T2)
    c.write(last_of_one)
    for state in (TransactionState.ONGOING, TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT):
        c.write(value(state, *T2, producer_id=2), OTHER_ID)
    c.write(value(TransactionState.EMPTY, producer_id=2), OTHER_ID)
    assert (c.find(), c.find(OTHER_ID)) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)
    c.desk.hold()
    c.elect()
    one, two = c.metadata(), c.metadata(OTHER_ID)
    assert (one.producer_id, one.producer_epoch, one.state) == (1, 0, "PrepareCommit")
    assert one.topic_partitions == T1 + T2
    assert (one.txn_timeout_ms, one.txn_start_timestamp, one.txn_last_update_timestamp) == (
        last_of_one.txn_timeout_ms,
        last_of_one.txn_start_timestamp,
        last_of_one.txn_last_update_timestamp,
    )
    assert (two.producer_id, two.state, two.topic_partitions) == (2, "Empty", ())
    c.resign(epoch=0)
    assert (c.find(), c.find(OTHER_ID)) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize("end", ["Commit", "Abort"])
def test_the_markers_of_an_end_that_is_decided_are_written_after_a_load(end: str) -> None:
    """TransactionStateManagerTest shouldWriteTxnMarkersForTransactionInPreparedCommitState
    TransactionStateManagerTest shouldWriteTxnMarkersForTransactionInPreparedAbortState"""
    c = Context(own=False)
    c.write(value(TransactionState(f"Prepare{end}"), *T1))
    c.elect(epoch=3)
    assert [(marker.partition, marker.is_commit) for marker in c.desk.written] == [
        (each, end == "Commit") for each in T1
    ]
    assert {marker.coordinator_epoch for marker in c.desk.written} == {3}
    assert (c.state(), c.states()[-1]) == (f"Complete{end}", f"Complete{end}")


def test_a_tombstone_ends_an_id() -> None:
    c = Context(own=False)
    c.write(value(TransactionState.COMPLETE_COMMIT))
    c.topic.write(0, tombstones([TransactionalId(ID)], 0))
    c.elect()
    assert c.find() is None
    assert c.init_producer_id().result == producer(0, 0)


def test_an_id_is_found_where_its_hash_says() -> None:
    """TransactionStateManagerTest testAddGetPids"""
    c = Context()
    assert [c.manager.partition_for(TransactionalId(each)) for each in (ID, OTHER_ID, "b", ELSEWHERE)] == [0, 0, 0, 1]
    assert (
        Context(own=False, transaction_state_log_num_partitions=50).coordinator.partition_for(
            TransactionalId("polygenelubricants")
        )
        == 0
    ), "its hash is the smallest of all"
    assert c.find() is None
    one = c.put()
    assert c.find() is one
    assert c.put() is one, "what is known stays"


def test_ids_that_belong_elsewhere_are_passed_over() -> None:
    c = Context(own=False)
    c.write(value(TransactionState.PREPARE_COMMIT, *T1), ELSEWHERE)
    c.elect()
    assert c.desk.asked == 0
    c.elect(1)
    assert c.find(ELSEWHERE) is None


def test_a_partition_that_is_not_owned_is_not_ours() -> None:
    """TransactionStateManagerTest shouldReturnNotCooridnatorErrorIfTransactionIdPartitionNotOwned"""
    c = Context(own=False)
    assert c.find() is ErrorCode.NOT_COORDINATOR


def test_one_partition_can_be_given_up_without_the_other() -> None:
    """TransactionStateManagerTest testDeletePartition"""
    c = Context()
    c.elect(1)
    c.put("b", producer_id=5)
    c.put("a", producer_id=10)
    c.resign(0)
    assert c.find("b") is ErrorCode.NOT_COORDINATOR
    assert c.metadata("a").producer_id == 10


def test_a_partition_that_is_given_up_while_it_loads_is_not_owned() -> None:
    """TransactionStateManagerTest testDeleteLoadingPartition"""
    c = Context(own=False)
    c.write(value(TransactionState.PREPARE_COMMIT, *T1))
    c.topic.hold_loads()
    c.elect()
    assert c.find() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    c.resign()
    c.topic.finish_loads()
    assert c.find() is ErrorCode.NOT_COORDINATOR
    assert c.desk.asked == 0


def test_a_newer_election_loads_again() -> None:
    """TransactionStateManagerTest testSuccessfulReimmigration"""
    c = Context(own=False)
    c.write(value(TransactionState.ONGOING, *T1))
    c.elect(epoch=0)
    before = c.metadata()
    c.elect(epoch=1)
    assert c.metadata() is not before
    assert c.manager.epoch_of(0) == 1


def test_of_two_loads_the_newer_counts() -> None:
    c = Context(own=False)
    c.topic.hold_loads()
    c.elect(epoch=0)
    c.elect(epoch=1)
    c.topic.finish_loads()
    assert (c.find(), c.manager.epoch_of(0)) == (None, 1)


def test_old_news_of_elections_and_resignations_are_passed_over() -> None:
    c = Context(own=False)
    c.elect(epoch=5)
    known = c.put()
    c.elect(epoch=4)
    c.elect(epoch=5)
    c.resign(epoch=4)
    assert c.find() is known
    c.resign(epoch=6)
    c.elect(epoch=5)
    assert c.find() is ErrorCode.NOT_COORDINATOR


def test_a_load_that_fails_leaves_the_partition_unavailable() -> None:
    """TransactionStateManagerTest testLoadTransactionMetadataWithCorruptedLog
    Repaired: a load of `__transaction_state` that fails leaves the partition unavailable; Kafka 2.6.3 serves what it
    could read."""
    c = Context(own=False)
    c.topic.fail_loads(KohortError("no disk"))
    c.elect()
    assert c.init_producer_id().result.error is ErrorCode.NOT_COORDINATOR
    c.topic.fail_loads(None)
    c.elect()
    assert c.init_producer_id().result == producer(0, 0)


@pytest.mark.parametrize(
    ("key", "written"), [(encode_key(TransactionalId(ID)), b"\x00\x63"), (None, b""), (b"\x00", b"")]
)
def test_a_record_that_cannot_be_read_fails_the_load(key: bytes | None, written: bytes) -> None:
    c = Context(own=False)
    c.write(value(TransactionState.ONGOING, *T1))
    c.topic.write(0, RecordBatch.build([Record(0, 0, key, written)]).encode())
    c.elect()
    assert c.find() is ErrorCode.NOT_COORDINATOR


def test_a_record_of_an_unknown_kind_is_passed_over() -> None:
    """TransactionStateManagerTest testIgnoreUnknownRecordType"""
    c = Context(own=False)
    c.write(value(TransactionState.ONGOING, *T1))
    c.topic.write(0, RecordBatch.build([Record(0, 0, b"\x7f\xff??", b"??")]).encode())
    c.write(value(TransactionState.ONGOING, *T2, producer_id=2), OTHER_ID)
    c.elect()
    assert (c.metadata().producer_id, c.metadata(OTHER_ID).producer_id) == (1, 2)


def test_a_log_larger_than_the_buffer_is_read_in_stretches() -> None:
    c = Context(transaction_state_log_load_buffer_size=100)
    for number in range(50):
        c.init_producer_id(f"id_{number}")
    loaded = c.restarted(transaction_state_log_load_buffer_size=100)
    for number in range(50):
        if not isinstance(c.find(f"id_{number}"), ErrorCode):
            assert loaded.metadata(f"id_{number}").producer_id == c.metadata(f"id_{number}").producer_id


def test_how_long_loads_take_is_told() -> None:
    """TransactionStateManagerTest testPartitionLoadMetric"""
    c = Context(own=False)
    c.topic.hold_loads()
    c.elect()
    c.clock.advance(70)
    c.topic.finish_loads()
    assert c.coordinator.snapshot() == {"partition-load-time-max": 70, "partition-load-time-avg": 70}


# Reload in each state


def test_reloaded_when_empty_the_next_producer_gets_the_next_epoch() -> None:
    c = Context()
    c.init_producer_id()
    c.init_producer_id()
    assert c.restarted().init_producer_id().result == producer(0, 2)


def test_reloaded_when_empty_the_question_asked_again_is_not_understood() -> None:
    """Version 0 of the record does not hold the epoch before, as in Kafka 2.6."""
    c = Context()
    c.init_producer_id()
    assert c.init_producer_id(expected=(0, 0)).result == producer(0, 1)
    successor = c.restarted()
    assert successor.init_producer_id(expected=(0, 0)).result.error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert successor.init_producer_id(expected=(0, 1)).result == producer(0, 2)


@pytest.mark.parametrize("is_commit", [True, False])
def test_reloaded_when_ongoing_the_producer_goes_on(is_commit: bool) -> None:
    c = Context()
    open_one = c.ongoing()
    successor = c.restarted()
    assert (successor.state(), successor.metadata().txn_timeout_ms) == ("Ongoing", TIMEOUT)
    assert successor.add_partitions(open_one, ("more", 1)).result is ErrorCode.NONE
    assert successor.end_txn(open_one, is_commit=is_commit).result is ErrorCode.NONE
    assert [tuple(marker.partition) for marker in c.desk.written] == [*PARTITIONS, ("more", 1)]


@pytest.mark.parametrize("is_commit", [True, False])
def test_reloaded_when_prepared_all_markers_are_written_again(is_commit: bool) -> None:
    c = Context()
    open_one = c.ongoing()
    c.desk.fail(*PARTITIONS[1], ErrorCode.NOT_LEADER_OR_FOLLOWER)
    c.end_txn(open_one, is_commit=is_commit)
    successor = c.restarted()
    markers = [(tuple(marker.partition), marker.is_commit) for marker in c.desk.written]
    assert markers == [(each, is_commit) for each in (PARTITIONS[0], PARTITIONS[2], *PARTITIONS)]
    assert successor.state() == ("CompleteCommit" if is_commit else "CompleteAbort")
    assert successor.end_txn(open_one, is_commit=is_commit).result is ErrorCode.NONE


@pytest.mark.parametrize("is_commit", [True, False])
def test_reloaded_when_complete_no_marker_is_written_again(is_commit: bool) -> None:
    c = Context()
    done = c.ended(is_commit=is_commit)
    asked = c.desk.asked
    successor = c.restarted()
    assert c.desk.asked == asked
    assert successor.end_txn(done, is_commit=is_commit).result is ErrorCode.NONE
    assert successor.end_txn(done, is_commit=not is_commit).result is ErrorCode.INVALID_TXN_STATE
    assert successor.add_partitions(done, PARTITIONS[0]).result is ErrorCode.NONE


def test_reloaded_after_a_fence_the_old_producer_stays_out() -> None:
    c = Context()
    open_one = c.ongoing()
    c.desk.hold()
    c.init_producer_id()
    c.desk.release()
    successor = c.restarted()
    assert successor.end_txn(open_one, is_commit=True).result is ErrorCode.INVALID_PRODUCER_EPOCH
    assert successor.init_producer_id().result == producer(0, 2)
