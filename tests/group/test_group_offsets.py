"""The book-keeping of one group's offsets: which commits count, which are on their way, and in which order they win."""

import pytest

from kohort.group.group_offsets import GroupOffsets
from kohort.log.names import TopicPartition
from kohort.records.state import Committed
from tests.group.context import value

FOO = TopicPartition("foo", 0)
BAR = TopicPartition("bar", 0)
PRODUCER = 13232
OTHER_PRODUCER = 5
FIRST = value(37)
SECOND = value(57)


@pytest.fixture
def offsets() -> GroupOffsets:
    return GroupOffsets()


# Plain commits


def test_a_commit_can_be_read_when_the_log_has_it(offsets: GroupOffsets) -> None:
    """GM testOffsetCommit"""
    offsets.prepare_commit([FOO])
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.on_commit_append({FOO: FIRST}, 3)
    assert offsets.has_any
    assert offsets.get(FOO) == FIRST
    assert offsets.committed(FOO) == Committed(3, FIRST)


def test_a_commit_that_fails_leaves_nothing(offsets: GroupOffsets) -> None:
    """GM testOffsetCommitFailure"""
    offsets.prepare_commit([FOO])
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.fail_pending_commit([FOO])
    assert not offsets.has_any
    assert not offsets.has_pending_for(FOO)
    assert offsets.get(FOO) is None


def test_a_commit_that_fails_does_not_touch_the_one_behind_it(offsets: GroupOffsets) -> None:
    """GM testOffsetCommitFailureWithAnotherPending"""
    offsets.prepare_commit([FOO])
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.prepare_commit([FOO])
    offsets.fail_pending_commit([FOO])
    assert offsets.has_any
    assert offsets.has_pending_for(FOO)
    assert offsets.get(FOO) is None
    offsets.on_commit_append({FOO: SECOND}, 3)
    assert offsets.has_any
    assert not offsets.has_pending_for(FOO)
    assert offsets.get(FOO) == SECOND


def test_two_commits_on_their_way_are_read_one_after_the_other(offsets: GroupOffsets) -> None:
    """GM testOffsetCommitWithAnotherPending"""
    offsets.prepare_commit([FOO])
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.prepare_commit([FOO])
    assert offsets.has_any
    offsets.on_commit_append({FOO: FIRST}, 4)
    assert offsets.get(FOO) == FIRST
    assert offsets.has_pending_for(FOO)
    offsets.on_commit_append({FOO: SECOND}, 5)
    assert offsets.get(FOO) == SECOND
    assert not offsets.has_pending_for(FOO)


def test_the_second_of_two_commits_may_fail_and_the_first_stays(offsets: GroupOffsets) -> None:
    offsets.prepare_commit([FOO])
    offsets.prepare_commit([FOO])
    offsets.on_commit_append({FOO: FIRST}, 4)
    offsets.fail_pending_commit([FOO])
    assert offsets.get(FOO) == FIRST
    assert not offsets.has_pending_for(FOO)


def test_two_equal_commits_on_their_way_are_two(offsets: GroupOffsets) -> None:
    offsets.prepare_commit([FOO])
    offsets.prepare_commit([FOO])
    offsets.on_commit_append({FOO: FIRST}, 4)
    assert offsets.has_pending_for(FOO)
    offsets.on_commit_append({FOO: FIRST}, 5)
    assert not offsets.has_pending_for(FOO)
    assert offsets.committed(FOO) == Committed(5, FIRST)


def test_a_plain_commit_on_its_way_is_pending(offsets: GroupOffsets) -> None:
    """GM testHasPendingNonTxnOffsets"""
    offsets.prepare_commit([FOO])
    assert offsets.has_pending_for(FOO)
    assert not offsets.has_pending_for(BAR)


def test_the_partitions_of_one_commit_stand_one_behind_the_other(offsets: GroupOffsets) -> None:
    offsets.prepare_commit([FOO, BAR])
    offsets.on_commit_append({FOO: FIRST, BAR: SECOND}, 7)
    assert offsets.committed(FOO) == Committed(7, FIRST)
    assert offsets.committed(BAR) == Committed(8, SECOND)


# Transactional commits


def test_a_transactional_commit_on_its_way_is_pending(offsets: GroupOffsets) -> None:
    """GM testHasPendingTxnOffsets"""
    offsets.prepare_txn_commit(OTHER_PRODUCER, [FOO])
    assert offsets.has_pending_for(FOO)
    assert not offsets.has_pending_for(TopicPartition("non-exist", 0))


def test_a_plain_commit_behind_a_transactional_one_wins(offsets: GroupOffsets) -> None:
    """GM testConsumerBeatsTransactionalOffsetCommit"""
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.prepare_commit([FOO])
    offsets.on_txn_commit_append(PRODUCER, {FOO: FIRST}, 3)
    offsets.on_commit_append({FOO: SECOND}, 4)
    assert offsets.get(FOO) == SECOND
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert offsets.has_any
    assert offsets.get(FOO) == SECOND
    assert not offsets.has_pending_for(FOO)


def test_a_transactional_commit_behind_a_plain_one_wins_when_it_is_committed(offsets: GroupOffsets) -> None:
    """GM testTransactionBeatsConsumerOffsetCommit"""
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.prepare_commit([FOO])
    offsets.on_commit_append({FOO: SECOND}, 3)
    offsets.on_txn_commit_append(PRODUCER, {FOO: FIRST}, 4)
    assert offsets.get(FOO) == SECOND
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert offsets.get(FOO) == FIRST


def test_a_plain_commit_that_is_confirmed_late_does_not_undo_what_stands_behind_it(offsets: GroupOffsets) -> None:
    offsets.prepare_commit([FOO])
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    offsets.on_txn_commit_append(PRODUCER, {FOO: FIRST}, 4)
    offsets.complete_txn(PRODUCER, is_commit=True)
    offsets.on_commit_append({FOO: SECOND}, 3)
    assert offsets.committed(FOO) == Committed(4, FIRST)
    assert not offsets.has_pending_for(FOO)


def test_an_aborted_commit_leaves_the_plain_one(offsets: GroupOffsets) -> None:
    """GM testTransactionalCommitIsAbortedAndConsumerCommitWins"""
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.prepare_commit([FOO])
    offsets.on_commit_append({FOO: SECOND}, 3)
    offsets.on_txn_commit_append(PRODUCER, {FOO: FIRST}, 4)
    assert offsets.get(FOO) == SECOND
    offsets.complete_txn(PRODUCER, is_commit=False)
    assert not offsets.has_pending_from(PRODUCER)
    assert offsets.get(FOO) == SECOND


def test_a_transactional_commit_that_fails_leaves_nothing_pending(offsets: GroupOffsets) -> None:
    """GM testFailedTxnOffsetCommitLeavesNoPendingState"""
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    assert offsets.has_pending_from(PRODUCER)
    assert offsets.has_any
    assert offsets.get(FOO) is None
    offsets.fail_pending_txn_commit(PRODUCER, [FOO])
    assert not offsets.has_any
    assert not offsets.has_pending_from(PRODUCER)
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert not offsets.has_any
    assert not offsets.has_pending_from(PRODUCER)
    assert offsets.get(FOO) is None


def test_what_a_transaction_has_appended_survives_its_later_failure(offsets: GroupOffsets) -> None:
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    offsets.on_txn_commit_append(PRODUCER, {FOO: FIRST}, 3)
    offsets.prepare_txn_commit(PRODUCER, [FOO, BAR])
    offsets.fail_pending_txn_commit(PRODUCER, [FOO, BAR])
    assert offsets.pending(PRODUCER) == {FOO: Committed(3, FIRST)}
    assert not offsets.has_pending_for(BAR)
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert dict(offsets.items()) == {FOO: Committed(3, FIRST)}


def test_two_transactions_do_not_touch_each_other(offsets: GroupOffsets) -> None:
    for producer, committed, position in ((PRODUCER, FIRST, 3), (OTHER_PRODUCER, SECOND, 4)):
        offsets.prepare_txn_commit(producer, [FOO])
        offsets.on_txn_commit_append(producer, {FOO: committed}, position)
    offsets.complete_txn(OTHER_PRODUCER, is_commit=True)
    assert offsets.get(FOO) == SECOND
    assert offsets.has_pending_for(FOO)
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert offsets.committed(FOO) == Committed(4, SECOND)
    assert not offsets.has_pending_for(FOO)


def test_what_is_on_its_way_when_the_marker_comes_belongs_to_the_next_transaction(offsets: GroupOffsets) -> None:
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    offsets.on_txn_commit_append(PRODUCER, {FOO: FIRST}, 3)
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert offsets.get(FOO) == FIRST
    assert offsets.has_pending_from(PRODUCER)
    offsets.on_txn_commit_append(PRODUCER, {FOO: SECOND}, 5)
    assert offsets.get(FOO) == FIRST
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert offsets.committed(FOO) == Committed(5, SECOND)
    assert not offsets.has_pending_from(PRODUCER)


# Tombstones


def test_a_tombstone_ends_what_stands_before_it(offsets: GroupOffsets) -> None:
    offsets.initialize({FOO: Committed(3, FIRST), BAR: Committed(9, FIRST)}, {PRODUCER: {FOO: Committed(4, SECOND)}})
    assert offsets.remove([FOO, BAR], 5) == 1
    assert dict(offsets.items()) == {BAR: Committed(9, FIRST)}
    assert not offsets.has_pending_from(PRODUCER)
    assert offsets.producers == set()


def test_a_tombstone_does_not_touch_what_stands_behind_it(offsets: GroupOffsets) -> None:
    offsets.initialize({FOO: Committed(6, FIRST)}, {PRODUCER: {FOO: Committed(7, SECOND)}})
    offsets.prepare_commit([BAR])
    assert offsets.remove([FOO, BAR], 5) == 0
    offsets.on_commit_append({BAR: SECOND}, 8)
    assert dict(offsets.items()) == {FOO: Committed(6, FIRST), BAR: Committed(8, SECOND)}
    offsets.complete_txn(PRODUCER, is_commit=True)
    assert offsets.get(FOO) == SECOND


def test_it_is_known_what_would_be_left_without_some_partitions(offsets: GroupOffsets) -> None:
    assert offsets.has_only(frozenset())
    offsets.initialize({FOO: Committed(3, FIRST)}, {PRODUCER: {BAR: Committed(4, SECOND)}})
    assert offsets.partitions() == [FOO, BAR]
    assert offsets.has_only(frozenset({FOO, BAR}))
    assert not offsets.has_only(frozenset({FOO}))
    assert not offsets.has_only(frozenset({BAR}))
    offsets.prepare_commit([FOO])
    assert not offsets.has_only(frozenset({FOO, BAR}))


# Two ways to commit


def test_plain_and_transactional_commits_in_one_generation_are_inconsistent(offsets: GroupOffsets) -> None:
    offsets.prepare_txn_commit(PRODUCER, [FOO])
    assert offsets.are_consistent
    offsets.prepare_commit([BAR])
    assert not offsets.are_consistent
    offsets.begin_generation()
    assert offsets.are_consistent
