"""What becomes of transactional commits when their partition is loaded."""

from kohort.clock import VirtualClock
from kohort.errors import KohortError
from kohort.group.offsets_log import LoadCallback
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.state import State
from tests.group.context import Context, Partition
from tests.group.log_builder import OFFSETS, batch, commits, loaded, marker, offset_tombstones, offsets_of, written
from tests.group.offsets_topic import OffsetsTopic

PRODUCER, OTHER_PRODUCER = 1000, 1001
ABORTED: dict[Partition, int] = {("foo", 2): 231, ("foo", 3): 4551, ("bar", 1): 89921}
PENDING: dict[Partition, int] = {("foo", 3): 2312, ("foo", 4): 45512, ("bar", 2): 899212}
FOO_0 = ("foo", 0)


def txn(offsets: dict[Partition, int], producer_id: int = PRODUCER) -> bytes:
    return batch(*commits(offsets), producer_id=producer_id)


def commit(producer_id: int = PRODUCER) -> bytes:
    return marker(producer_id, is_commit=True)


def abort(producer_id: int = PRODUCER) -> bytes:
    return marker(producer_id, is_commit=False)


def positions(c: Context, partitions: dict[Partition, int]) -> list[int]:
    return [c.group().offsets.committed(TopicPartition(*partition)).position for partition in partitions]


def test_committed_transactional_offsets_make_an_empty_group() -> None:
    """GMM testLoadTransactionalOffsetsWithoutGroup"""
    c = loaded(txn(OFFSETS), commit(), start=0)
    assert c.state() == "Empty"
    assert offsets_of(c) == OFFSETS


def test_aborted_transactional_offsets_make_no_group() -> None:
    """GMM testDoNotLoadAbortedTransactionalOffsetCommits"""
    c = loaded(txn(OFFSETS), abort(), start=0)
    assert c.find() is None


def test_offsets_of_an_open_transaction_are_pending() -> None:
    """GMM testGroupLoadedWithPendingCommits"""
    c = loaded(txn(OFFSETS), start=0)
    group = c.group()
    assert group.state is GroupState.EMPTY
    assert len(group.offsets) == 0
    assert group.offsets.has_any
    assert group.offsets.has_pending_from(PRODUCER)
    assert all(group.offsets.has_pending_for(TopicPartition(*partition)) for partition in OFFSETS)
    assert c.manager.is_group_open_for_producer(PRODUCER, group.group_id)


def test_what_a_producer_aborted_is_forgotten_when_it_commits_something_else() -> None:
    """GMM testLoadWithCommittedAndAbortedTransactionalOffsetCommits"""
    c = loaded(txn(ABORTED), abort(), txn(OFFSETS), commit(), start=0)
    assert c.state() == "Empty"
    assert offsets_of(c) == OFFSETS
    assert not c.group().offsets.has_pending_from(PRODUCER)


def test_an_open_transaction_behind_others_is_decided_by_a_marker_that_comes_later() -> None:
    """GMM testLoadWithCommittedAndAbortedAndPendingTransactionalOffsetCommits

    Python: a committed offset remembers the log offset of its own record, not of its batch
    """
    c = loaded(txn(OFFSETS), commit(), txn(ABORTED), abort(), txn(PENDING), start=0)
    offsets = c.group().offsets
    assert c.state() == "Empty"
    assert offsets_of(c) == OFFSETS
    assert positions(c, OFFSETS) == [0, 1, 2]
    assert offsets.has_pending_from(PRODUCER)
    assert offsets.has_pending_for(TopicPartition("foo", 3))

    c.end_txn(PRODUCER, c.partition(), is_commit=True, producer_epoch=2)
    assert not offsets.has_pending_from(PRODUCER)
    assert offsets_of(c) == OFFSETS | PENDING
    assert offsets_of(c.restarted()) == OFFSETS | PENDING


def test_a_loaded_open_transaction_can_be_aborted() -> None:
    c = loaded(txn(OFFSETS), commit(), txn(PENDING), start=0)
    c.end_txn(PRODUCER, c.partition(), is_commit=False, producer_epoch=2)
    assert offsets_of(c) == OFFSETS
    assert not c.group().offsets.producers
    assert not c.manager.is_group_open_for_producer(PRODUCER, c.group().group_id)


def test_transactions_of_several_producers_are_all_loaded() -> None:
    """GMM testLoadTransactionalOffsetCommitsFromMultipleProducers

    Python: a committed offset remembers the log offset of its own record, not of its batch
    """
    c = loaded(txn(OFFSETS), commit(), txn(ABORTED, OTHER_PRODUCER), commit(OTHER_PRODUCER), start=0)
    assert c.state() == "Empty"
    assert offsets_of(c) == OFFSETS | ABORTED
    assert len(c.group().offsets) == 6
    assert positions(c, OFFSETS) == [0, 1, 2]
    assert positions(c, ABORTED) == [4, 5, 6]


def test_a_plain_commit_behind_a_transactional_one_wins() -> None:
    """GMM testGroupLoadWithConsumerAndTransactionalOffsetCommitsConsumerWins"""
    c = loaded(txn({FOO_0: 23}), batch(*commits({FOO_0: 24})), commit(), start=0)
    assert c.state() == "Empty"
    assert offsets_of(c) == {FOO_0: 24}
    assert positions(c, {FOO_0: 24}) == [1]
    assert c.group().offsets.has_any
    assert not c.group().offsets.has_pending_from(PRODUCER)


def test_a_transactional_commit_behind_a_plain_one_wins() -> None:
    """GMM testGroupLoadWithConsumerAndTransactionalOffsetCommitsTransactionWins"""
    c = loaded(batch(*commits({FOO_0: 24})), txn({FOO_0: 23}), commit(), start=0)
    assert c.state() == "Empty"
    assert offsets_of(c) == {FOO_0: 23}
    assert positions(c, {FOO_0: 23}) == [1]
    assert c.group().offsets.has_any
    assert not c.group().offsets.has_pending_from(PRODUCER)


def test_of_two_open_transactions_the_later_record_wins_in_whatever_order_they_end() -> None:
    for producers in ((PRODUCER, OTHER_PRODUCER), (OTHER_PRODUCER, PRODUCER)):
        c = loaded(txn({FOO_0: 1}), txn({FOO_0: 2}, OTHER_PRODUCER), start=0)
        for producer in producers:
            c.end_txn(producer, c.partition(), is_commit=True, producer_epoch=2)
        assert offsets_of(c) == offsets_of(c.restarted()) == {FOO_0: 2}


def test_a_tombstone_ends_a_pending_commit_that_stands_before_it() -> None:
    """Repaired: what a running coordinator removes does not come back after a restart, as it does up to Kafka 3.9"""
    c = loaded(txn({FOO_0: 1, ("foo", 1): 2}), batch(*offset_tombstones(FOO_0)), start=0)
    assert list(c.group().offsets.pending(PRODUCER)) == [TopicPartition("foo", 1)]
    c.end_txn(PRODUCER, c.partition(), is_commit=True, producer_epoch=2)
    assert offsets_of(c) == offsets_of(c.restarted()) == {("foo", 1): 2}


class EarlyReader(OffsetsTopic):
    """Reads a partition at once, and tells what it has read when asked to."""

    def load(self, partition: int, done: LoadCallback) -> None:
        read: list[State | KohortError] = []
        super().load(partition, read.append)
        self.tell = lambda: done(read[0])


def test_markers_that_arrive_while_the_partition_is_loading_are_applied_after_it() -> None:
    clock = VirtualClock()
    c = Context(topic=EarlyReader(clock), clock=clock, own=False)
    for producer, partition in ((PRODUCER, 0), (OTHER_PRODUCER, 1), (1002, 2)):
        c.topic.write(c.partition(), txn({("foo", partition): 5}, producer))
    c.elect(c.partition())
    c.end_txn(PRODUCER, c.partition(), is_commit=True, producer_epoch=2)
    c.end_txn(OTHER_PRODUCER, c.partition(), is_commit=False, producer_epoch=2)
    c.end_txn(1002, 1 - c.partition(), is_commit=True)
    assert c.find() is None
    c.topic.tell()
    assert offsets_of(c) == {FOO_0: 5}
    assert list(c.group().offsets.producers) == [1002]


def test_markers_that_the_load_has_read_itself_change_nothing_more() -> None:
    c = written(txn({FOO_0: 1}), txn({("foo", 1): 2}, OTHER_PRODUCER), start=0)
    c.topic.hold_loads()
    c.elect(c.partition())
    c.end_txn(PRODUCER, c.partition(), is_commit=True, producer_epoch=2)
    c.end_txn(OTHER_PRODUCER, c.partition(), is_commit=False, producer_epoch=2)
    c.topic.finish_loads()
    assert offsets_of(c) == {FOO_0: 1}
    assert not c.group().offsets.producers
    c.txn_commit(PRODUCER, {FOO_0: 7}, producer_epoch=2)
    assert c.group().offsets.has_pending_from(PRODUCER)
