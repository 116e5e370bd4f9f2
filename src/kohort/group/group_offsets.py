"""The offsets of one group: committed, and on their way.

A commit is *prepared* before it is written, then *appended* (it has its place in the log) or *failed*. An appended
plain commit is readable at once; a transactional one stays pending until its producer's marker. Whichever commit for
a partition stands later in the log wins, no matter in which order transactions end.

What counts is kept apart from what is hoped for: of commits in flight only their number is known, so that any of them
may fail without touching another. Appends to one log are answered in their order, therefore whatever is still in
flight when a tombstone was appended stands behind it.

Commits that came as bytes (`WrittenCommits`) are kept as they are, the latest of each shape, until somebody looks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from kohort.group.written_commits import WrittenCommits
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import OffsetCommitValue
from kohort.records.state import Committed

_MOST_UNOPENED = 16
"""A group commits in a few shapes, one for each of its members; whoever commits in ever new ones is opened."""


class PendingTransaction:
    """What one producer has committed to this group in a transaction that is still open."""

    __slots__ = ("appended", "in_flight")

    def __init__(self) -> None:
        self.appended: dict[TopicPartition, Committed] = {}
        self.in_flight: dict[TopicPartition, int] = {}

    @property
    def is_empty(self) -> bool:
        return not self.appended and not self.in_flight


class GroupOffsets:
    """Committed and pending offsets."""

    __slots__ = (
        "_committed",
        "_in_flight",
        "_pending_producers",
        "_received_consumer_commits",
        "_transactions",
        "_unopened",
        "_unopened_in_flight",
        "prepared",
        "received_txn_commits",
    )

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, Committed] = {}
        self._unopened: dict[bytes, tuple[int, WrittenCommits]] = {}
        """By shape: where they begin in the log, and what they are."""
        self._in_flight: dict[TopicPartition, int] = {}
        self._unopened_in_flight: dict[int, WrittenCommits] = {}
        """By the identity of the object."""
        self._transactions: dict[int, PendingTransaction] = {}
        self._pending_producers: dict[TopicPartition, dict[int, None]] = {}
        """For each partition the producers whose transactions may commit to it."""
        self.prepared = 0
        """How often something was prepared: if it is the same as before, nobody has committed since."""
        self._received_consumer_commits = False
        self.received_txn_commits = False

    def initialize(
        self,
        committed: dict[TopicPartition, Committed],
        pending: Mapping[int, Mapping[TopicPartition, Committed]],
    ) -> None:
        """What a load has found."""
        self._committed = committed
        for producer_id, offsets in pending.items():
            self._transaction(producer_id).appended.update(offsets)
            for partition in offsets:
                self._pending_producers.setdefault(partition, {})[producer_id] = None

    def __len__(self) -> int:
        return len(self._opened())

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._opened())

    def _opened(self) -> dict[TopicPartition, Committed]:
        """All that is committed."""
        if self._unopened:
            for position, commits in self._unopened.values():
                self._take(commits, position)
            self._unopened.clear()
        return self._committed

    def _counted(self) -> dict[TopicPartition, int]:
        """Plain commits in flight, by partition."""
        for commits in self._unopened_in_flight.values():
            self._count(commits)
        self._unopened_in_flight.clear()
        return self._in_flight

    @property
    def has_any(self) -> bool:
        """Whether anything is committed or may still come to be."""
        return bool(
            self._committed or self._unopened or self._in_flight or self._unopened_in_flight or self._transactions
        )

    def get(self, partition: TopicPartition) -> OffsetCommitValue | None:
        committed = self._opened().get(partition)
        return None if committed is None else committed.value

    def committed(self, partition: TopicPartition) -> Committed | None:
        """With its place in the log."""
        return self._opened().get(partition)

    def items(self) -> Iterable[tuple[TopicPartition, Committed]]:
        return self._opened().items()

    def partitions(self) -> list[TopicPartition]:
        """Every partition with an offset, committed or pending."""
        pending = (partition for transaction in self._transactions.values() for partition in transaction.appended)
        return list(dict.fromkeys((*self._opened(), *pending, *self._partitions_in_flight())))

    def _partitions_in_flight(self) -> Iterator[TopicPartition]:
        yield from self._counted()
        for transaction in self._transactions.values():
            yield from transaction.in_flight

    @property
    def producers(self) -> Collection[int]:
        """Who has a transaction open."""
        return self._transactions.keys()

    def pending(self, producer_id: int) -> Mapping[TopicPartition, Committed]:
        """What will be committed if that producer's transaction is, as far as it stands in the log."""
        transaction = self._transactions.get(producer_id)
        return {} if transaction is None else transaction.appended

    def has_pending_from(self, producer_id: int) -> bool:
        return producer_id in self._transactions

    def has_pending_for(self, partition: TopicPartition) -> bool:
        return partition in self._counted() or self.has_pending_txn_for(partition)

    def has_only(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether nothing would be left without these, and nothing is on its way."""
        return (
            not self._counted()
            and len(self._opened()) <= len(partitions)
            and all(partition in partitions for partition in self._committed)
            and all(
                not transaction.in_flight and all(partition in partitions for partition in transaction.appended)
                for transaction in self._transactions.values()
            )
        )

    def among(self, partitions: frozenset[TopicPartition]) -> list[TopicPartition]:
        """Which of these have an offset, committed or pending."""
        if self._counted() or self._transactions:
            return [partition for partition in self.partitions() if partition in partitions]
        if len(self._opened()) < len(partitions):
            return [partition for partition in self._committed if partition in partitions]
        return sorted(partition for partition in partitions if partition in self._committed)

    def has_pending_txn_for(self, partition: TopicPartition) -> bool:
        return partition in self._pending_producers

    @property
    def are_consistent(self) -> bool:
        """Whether this generation has committed in one way only: mixing plain and transactional commits surprises."""
        return not (self._received_consumer_commits and self.received_txn_commits)

    def begin_generation(self) -> None:
        self._received_consumer_commits = False
        self.received_txn_commits = False

    def prepare_commit(self, offsets: Collection[TopicPartition]) -> None:
        """Plain commits are about to be written."""
        self._received_consumer_commits = True
        self.prepared += 1
        if isinstance(offsets, WrittenCommits):
            self._unopened_in_flight[id(offsets)] = offsets
        else:
            self._count(offsets)

    def on_commit_append(self, offsets: Mapping[TopicPartition, OffsetCommitValue], position: int) -> None:
        """They stand in the log, from `position` on."""
        self._land(offsets)
        if not isinstance(offsets, WrittenCommits):
            self._take(offsets, position)
            return
        self._keep(offsets, position)

    def _keep(self, commits: WrittenCommits, position: int) -> None:
        unopened = self._unopened
        known = unopened.pop(commits.shape, None)
        unopened[commits.shape] = known if known is not None and known[0] > position else (position, commits)
        if len(unopened) > _MOST_UNOPENED:
            self._opened()

    def commit_at_once(self, commits: WrittenCommits, position: int) -> None:
        """They stand in the log already."""
        self._received_consumer_commits = True
        self.prepared += 1
        self._keep(commits, position)

    def fail_pending_commit(self, offsets: Collection[TopicPartition]) -> None:
        """They do not."""
        self._land(offsets)

    def _land(self, offsets: Collection[TopicPartition]) -> None:
        if self._unopened_in_flight.pop(id(offsets), None) is None:
            for partition in offsets:
                _landed(self._in_flight, partition)

    def _count(self, partitions: Iterable[TopicPartition]) -> None:
        in_flight = self._in_flight
        for partition in partitions:
            in_flight[partition] = in_flight.get(partition, 0) + 1

    def _take(self, offsets: Mapping[TopicPartition, OffsetCommitValue], position: int) -> None:
        committed = self._committed
        for place, (partition, value) in enumerate(offsets.items(), position):
            known = committed.get(partition)
            if known is None or known.position < place:
                committed[partition] = Committed(place, value)

    def prepare_txn_commit(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Transactional commits are about to be written."""
        self.received_txn_commits = True
        self.prepared += 1
        in_flight = self._transaction(producer_id).in_flight
        for partition in partitions:
            in_flight[partition] = in_flight.get(partition, 0) + 1
            self._pending_producers.setdefault(partition, {})[producer_id] = None

    def on_txn_commit_append(
        self, producer_id: int, offsets: Mapping[TopicPartition, OffsetCommitValue], position: int
    ) -> None:
        """They stand in the log, from `position` on, and wait for the marker."""
        transaction = self._transactions[producer_id]
        for place, (partition, value) in enumerate(offsets.items(), position):
            _landed(transaction.in_flight, partition)
            transaction.appended[partition] = Committed(place, value)

    def fail_pending_txn_commit(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """They do not: what the transaction appended before still counts."""
        transaction = self._transactions[producer_id]
        for partition in partitions:
            _landed(transaction.in_flight, partition)
        self._tidy(producer_id, partitions)

    def complete_txn(self, producer_id: int, *, is_commit: bool) -> None:
        """The marker stands in the log: what was appended before it counts now, or never.

        What is in flight stands behind it and belongs to the producer's next transaction.
        """
        transaction = self._transactions.get(producer_id)
        if transaction is None:
            return
        if is_commit:
            committed = self._opened()
            for partition, pending in transaction.appended.items():
                known = committed.get(partition)
                if known is None or known.position < pending.position:
                    committed[partition] = pending
        ended = list(transaction.appended)
        transaction.appended.clear()
        self._tidy(producer_id, ended)

    def remove(self, partitions: Iterable[TopicPartition], position: int) -> int:
        """Tombstones stand in the log at `position`: what stands before them is gone. Tells how many were committed."""
        removed, committed = 0, self._opened()
        for partition in partitions:
            known = committed.get(partition)
            if known is not None and known.position < position:
                del committed[partition]
                removed += 1
            for producer_id in list(self._pending_producers.get(partition, ())):
                appended = self._transactions[producer_id].appended
                if partition in appended and appended[partition].position < position:
                    del appended[partition]
                    self._tidy(producer_id, (partition,))
        return removed

    def _tidy(self, producer_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Something of a transaction is settled: forget where nothing of it is pending any more."""
        transaction = self._transactions[producer_id]
        for partition in partitions:
            if partition not in transaction.appended and partition not in transaction.in_flight:
                producers = self._pending_producers[partition]
                del producers[producer_id]
                if not producers:
                    del self._pending_producers[partition]
        if transaction.is_empty:
            del self._transactions[producer_id]

    def _transaction(self, producer_id: int) -> PendingTransaction:
        transaction = self._transactions.get(producer_id)
        if transaction is None:
            transaction = self._transactions[producer_id] = PendingTransaction()
        return transaction


def _landed(in_flight: dict[TopicPartition, int], partition: TopicPartition) -> None:
    left = in_flight[partition] - 1
    if left:
        in_flight[partition] = left
    else:
        del in_flight[partition]
