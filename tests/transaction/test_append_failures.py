"""Writes that fail: what the client hears, and that nothing is left behind."""

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.metadata import TxnTransitMetadata
from kohort.transaction.states import TransactionState
from tests.group.context import Answer
from tests.transaction.context import PARTITIONS, Context, producer

MEANING = [
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
    (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
    (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
]


@pytest.mark.parametrize(("error", "told"), MEANING)
def test_an_epoch_that_cannot_be_written_is_not_given(error: ErrorCode, told: ErrorCode) -> None:
    c = Context()
    c.init_producer_id()
    c.topic.fail_next(error)
    assert c.init_producer_id().result == producer(-1, -1)._replace(error=told)
    assert (c.metadata().producer_epoch, c.pending()) == (0, None)
    assert c.init_producer_id().result == producer(0, 1)


@pytest.mark.parametrize(("error", "told"), MEANING)
def test_partitions_that_cannot_be_written_are_not_in_the_transaction(error: ErrorCode, told: ErrorCode) -> None:
    """TransactionStateManagerTest testAppendFailToCoordinatorNotAvailableError
    TransactionStateManagerTest testAppendFailToNotCoordinatorError
    TransactionStateManagerTest testAppendFailToUnknownError"""
    c = Context()
    begun = c.init_producer_id().result
    c.topic.fail_next(error)
    assert c.add_partitions(begun, PARTITIONS[0]).result is told
    assert (c.state(), c.pending(), c.metadata().topic_partitions) == ("Empty", None, ())
    assert c.add_partitions(begun, PARTITIONS[0]).result is ErrorCode.NONE


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize(("error", "told"), MEANING)
def test_an_end_that_cannot_be_written_is_not_decided(error: ErrorCode, told: ErrorCode, is_commit: bool) -> None:
    c = Context()
    open_one = c.ongoing()
    c.topic.fail_next(error)
    assert c.end_txn(open_one, is_commit=is_commit).result is told
    assert (c.state(), c.pending(), c.desk.asked) == ("Ongoing", None, 0)
    assert not c.metadata().has_failed_epoch_fence
    assert c.end_txn(open_one, is_commit=not is_commit).result is ErrorCode.NONE


def test_a_change_that_is_written_becomes_true() -> None:
    """TransactionStateManagerTest testCompleteTransitionWhenAppendSucceeded"""
    c = Context()
    begun = c.init_producer_id().result
    c.topic.hold()
    adding = c.add_partitions(begun, *PARTITIONS[:2])
    assert (c.state(), c.pending(), adding.is_done) == ("Empty", TransactionState.ONGOING, False)
    c.topic.release()
    assert (c.state(), c.pending(), adding.result) == ("Ongoing", None, ErrorCode.NONE)
    assert c.metadata().topic_partitions == tuple(TopicPartition(*each) for each in PARTITIONS[:2])


def test_a_transaction_too_large_for_a_record_is_refused() -> None:
    c = Context()
    begun = c.init_producer_id().result
    assert c.add_partitions(begun, ("t" * 40_000, 0)).result is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.pending() is None
    many = [("t" * 200 + str(number), 0) for number in range(6_000)]
    assert c.add_partitions(begun, *many).result is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (c.state(), c.pending()) == ("Empty", None)


def test_what_was_given_up_meanwhile_is_asked_for_elsewhere() -> None:
    """TransactionStateManagerTest testAppendFailToNotCoordinatorError"""
    c = Context()
    begun = c.init_producer_id().result
    c.topic.hold()
    adding = c.add_partitions(begun, PARTITIONS[0])
    c.resign()
    c.topic.release()
    assert adding.result is ErrorCode.NOT_COORDINATOR


def test_what_is_being_loaded_anew_meanwhile_is_asked_for_later() -> None:
    """TransactionStateManagerTest testAppendFailToCoordinatorLoadingError"""
    c = Context()
    begun = c.init_producer_id().result
    c.topic.hold()
    adding = c.add_partitions(begun, PARTITIONS[0])
    c.topic.hold_loads()
    c.elect(epoch=1)
    c.topic.release()
    assert adding.result is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_what_was_loaded_anew_meanwhile_is_not_touched() -> None:
    """TransactionStateManagerTest testAppendTransactionToLogWhileProducerFenced"""
    c = Context()
    begun = c.init_producer_id().result
    c.topic.hold()
    adding = c.add_partitions(begun, PARTITIONS[0])
    c.elect(epoch=1)
    assert (c.state(), c.pending()) == ("Ongoing", None), "it stood in the log already"
    c.topic.release()
    assert adding.result is ErrorCode.NOT_COORDINATOR
    assert (c.state(), c.pending()) == ("Ongoing", None)


def test_an_end_that_was_written_for_somebody_else_sends_no_markers() -> None:
    c = Context()
    open_one = c.ongoing()
    c.topic.hold()
    ending = c.end_txn(open_one, is_commit=True)
    c.resign()
    c.topic.release()
    assert ending.result is ErrorCode.NOT_COORDINATOR
    assert c.desk.asked == 0
    assert c.restarted().find() is ErrorCode.NOT_COORDINATOR
    c.elect(epoch=1)
    assert (c.state(), c.desk.asked) == ("CompleteCommit", 1)


@pytest.mark.parametrize("is_loading", [True, False])
def test_what_is_not_here_is_not_even_written(is_loading: bool) -> None:
    c = Context()
    c.init_producer_id()
    metadata = c.metadata()
    transit = metadata.prepare_increment_producer_epoch(1, None, 0)
    assert isinstance(transit, TxnTransitMetadata)
    written = c.records()
    if is_loading:
        c.topic.hold_loads()
    c.elect(epoch=1)
    answer: Answer[ErrorCode] = Answer()
    c.manager.store(metadata, transit, respond=answer)
    assert answer.result is (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR)
    assert c.records() == written
