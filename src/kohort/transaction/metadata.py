"""One transactional id: its producer, its epoch and its transaction.

Nothing changes at once. `prepare_…` checks a change against the table of states, notes where it leads (`pending_state`)
and returns what is to be written; while that is pending nothing else may begin. Written, it becomes true by
`complete_transition_to`; if it cannot be written, whoever tried takes the pending state back.
"""

from collections.abc import Collection
from typing import NamedTuple

from kohort.errors import ErrorCode, IllegalState
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kohort.transaction.records import NO_TIMESTAMP, TransactionalId, TransactionValue
from kohort.transaction.states import IDLE_STATES, PREPARED_STATES, VALID_PREVIOUS_STATES, TransactionState

MAX_PRODUCER_EPOCH = 0x7FFF


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """The highest epoch is never given to a producer: it is kept to fence the last one."""
    return producer_epoch >= MAX_PRODUCER_EPOCH - 1


class TxnTransitMetadata(NamedTuple):
    """What an id shall become when it has been written."""

    producer_id: int
    last_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    txn_timeout_ms: int
    txn_state: TransactionState
    topic_partitions: tuple[TopicPartition, ...]
    txn_start_timestamp: int
    txn_last_update_timestamp: int

    def value(self) -> TransactionValue:
        """What of it is written; the producer before and its epoch are not (value version 0 has no room)."""
        return TransactionValue(
            self.producer_id,
            self.producer_epoch,
            self.txn_timeout_ms,
            self.txn_state,
            self.topic_partitions,
            self.txn_last_update_timestamp,
            self.txn_start_timestamp,
        )


class TransactionMetadata:
    """Kafka 2.6's TransactionMetadata."""

    __slots__ = (
        "has_failed_epoch_fence",
        "last_producer_epoch",
        "last_producer_id",
        "partition",
        "pending_state",
        "producer_epoch",
        "producer_id",
        "state",
        "topic_partitions",
        "transactional_id",
        "txn_last_update_timestamp",
        "txn_start_timestamp",
        "txn_timeout_ms",
    )

    def __init__(
        self,
        transactional_id: TransactionalId,
        *,
        producer_id: int,
        txn_timeout_ms: int,
        txn_last_update_timestamp: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        last_producer_id: int = NO_PRODUCER_ID,
        last_producer_epoch: int = NO_PRODUCER_EPOCH,
        state: TransactionState = TransactionState.EMPTY,
        topic_partitions: tuple[TopicPartition, ...] = (),
        txn_start_timestamp: int = NO_TIMESTAMP,
        partition: int = 0,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.last_producer_id = last_producer_id
        self.producer_epoch = producer_epoch
        self.last_producer_epoch = last_producer_epoch
        self.txn_timeout_ms = txn_timeout_ms
        self.state = state
        self.topic_partitions = topic_partitions
        self.txn_start_timestamp = txn_start_timestamp
        self.txn_last_update_timestamp = txn_last_update_timestamp
        self.partition = partition
        self.pending_state: TransactionState | None = None
        self.has_failed_epoch_fence = False

    @classmethod
    def loaded(
        cls, transactional_id: TransactionalId, value: TransactionValue, partition: int
    ) -> "TransactionMetadata":
        """As it stands in the log."""
        return cls(
            transactional_id,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            txn_timeout_ms=value.txn_timeout_ms,
            state=value.state,
            topic_partitions=value.topic_partitions,
            txn_last_update_timestamp=value.txn_last_update_timestamp,
            txn_start_timestamp=value.txn_start_timestamp,
            partition=partition,
        )

    @property
    def is_producer_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    def has_timed_out(self, now_ms: int) -> bool:
        """Whether its transaction is open for longer than the producer said it would take."""
        is_open = self.state is TransactionState.ONGOING and self.pending_state is None
        return is_open and self.txn_start_timestamp + self.txn_timeout_ms < now_ms

    def has_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether nobody has used the id for so long, and nobody is about to."""
        is_idle = self.state in IDLE_STATES and self.pending_state is None
        return is_idle and self.txn_last_update_timestamp <= now_ms - expiration_ms

    def remove_partitions(self, done: Collection[TopicPartition]) -> None:
        """Their markers stand."""
        if self.state not in PREPARED_STATES:
            raise IllegalState(f"markers were written for {self.transactional_id}, which is {self.state}")
        self.topic_partitions = tuple(partition for partition in self.topic_partitions if partition not in done)

    # What may come next

    def prepare_increment_producer_epoch(
        self, txn_timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TxnTransitMetadata | ErrorCode:
        """The producer gets the next epoch.

        One that says which epoch it has (KIP-360) keeps what it is given: asking again brings the same answer, unless
        another producer came meanwhile.
        """
        if expected_epoch is None:
            epochs = (self.producer_epoch + 1, NO_PRODUCER_EPOCH)
        elif self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
            epochs = (self.producer_epoch + 1, self.producer_epoch)
        elif expected_epoch == self.last_producer_epoch:
            epochs = (self.producer_epoch, self.last_producer_epoch)
        else:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epochs[0] > self.producer_epoch and self.is_producer_epoch_exhausted:
            raise IllegalState(f"producer {self.producer_id} of {self.transactional_id} has no epochs left")
        return self._prepare(
            TransactionState.EMPTY,
            now_ms,
            producer_epoch=epochs[0],
            last_producer_epoch=epochs[1],
            txn_timeout_ms=txn_timeout_ms,
            topic_partitions=(),
            txn_start_timestamp=NO_TIMESTAMP,
        )

    def prepare_producer_id_rotation(
        self, producer_id: int, txn_timeout_ms: int, now_ms: int, *, record_last_epoch: bool
    ) -> TxnTransitMetadata:
        """The epochs of the old producer id are used up: a new id begins at 0."""
        if self.state is TransactionState.ONGOING or self.state in PREPARED_STATES:
            raise IllegalState(f"{self.transactional_id} is {self.state} and cannot get another producer id")
        return self._prepare(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH,
            txn_timeout_ms=txn_timeout_ms,
            topic_partitions=(),
            txn_start_timestamp=NO_TIMESTAMP,
        )

    def prepare_add_partitions(self, partitions: tuple[TopicPartition, ...], now_ms: int) -> TxnTransitMetadata:
        """The first ones begin a transaction."""
        return self._prepare(
            TransactionState.ONGOING,
            now_ms,
            topic_partitions=tuple(dict.fromkeys(self.topic_partitions + partitions)),
            txn_start_timestamp=now_ms if self.state in IDLE_STATES else self.txn_start_timestamp,
        )

    def prepare_abort_or_commit(self, state: TransactionState, now_ms: int) -> TxnTransitMetadata:
        return self._prepare(state, now_ms)

    def prepare_complete(self, now_ms: int) -> TxnTransitMetadata:
        """What comes after all markers. That the end was written also means that a fence before it was."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        self.has_failed_epoch_fence = False
        state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        return self._prepare(state, now_ms, topic_partitions=())

    def prepare_dead(self) -> TxnTransitMetadata:
        return self._prepare(TransactionState.DEAD, self.txn_last_update_timestamp, topic_partitions=())

    def prepare_fence_producer_epoch(self) -> TxnTransitMetadata:
        """The producer is to be shut out before its transaction is aborted for it. No producer is given this epoch, so
        if it could not be written the last time it need not be raised again."""
        epoch = self.producer_epoch if self.has_failed_epoch_fence else self.producer_epoch + 1
        if epoch > MAX_PRODUCER_EPOCH:
            raise IllegalState(f"producer {self.producer_id} of {self.transactional_id} has the highest epoch already")
        return self._prepare(
            TransactionState.PREPARE_EPOCH_FENCE,
            self.txn_last_update_timestamp,
            producer_epoch=epoch,
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )

    def fence(self, transit: TxnTransitMetadata) -> None:
        """From now on the producer is shut out, whether or not that can be written; the way to PrepareAbort is free."""
        if self.pending_state is not TransactionState.PREPARE_EPOCH_FENCE:
            raise IllegalState(f"{self.transactional_id} is not about to be fenced")
        self.pending_state = None
        self.producer_epoch = transit.producer_epoch
        self.last_producer_epoch = NO_PRODUCER_EPOCH

    def _prepare(
        self,
        state: TransactionState,
        now_ms: int,
        *,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        last_producer_epoch: int | None = None,
        txn_timeout_ms: int | None = None,
        topic_partitions: tuple[TopicPartition, ...] | None = None,
        txn_start_timestamp: int | None = None,
    ) -> TxnTransitMetadata:
        """What is not given stays as it is."""
        transit = TxnTransitMetadata(
            producer_id=self.producer_id if producer_id is None else producer_id,
            last_producer_id=self.producer_id,
            producer_epoch=self.producer_epoch if producer_epoch is None else producer_epoch,
            last_producer_epoch=self.last_producer_epoch if last_producer_epoch is None else last_producer_epoch,
            txn_timeout_ms=self.txn_timeout_ms if txn_timeout_ms is None else txn_timeout_ms,
            txn_state=state,
            topic_partitions=self.topic_partitions if topic_partitions is None else topic_partitions,
            txn_start_timestamp=self.txn_start_timestamp if txn_start_timestamp is None else txn_start_timestamp,
            txn_last_update_timestamp=now_ms,
        )
        if self.pending_state is not None:
            raise IllegalState(f"{self.transactional_id} is on its way to {self.pending_state}, not free for {state}")
        if transit.producer_id < 0:
            raise IllegalState(f"{self.transactional_id} would get the producer id {transit.producer_id}")
        # An id whose first epoch was never written has none, and may go like any other.
        if transit.producer_epoch < 0 and state is not TransactionState.DEAD:
            raise IllegalState(f"{self.transactional_id} would get the producer epoch {transit.producer_epoch}")
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise IllegalState(f"{self.transactional_id} cannot go from {self.state} to {state}")
        self.pending_state = state
        return transit

    # What has come

    def complete_transition_to(self, transit: TxnTransitMetadata) -> None:
        """It was written. Whatever does not follow from what is known here is refused: somebody is very wrong."""
        if self.pending_state is not transit.txn_state or not self._follows(transit):
            raise IllegalState(f"{self.transactional_id} cannot become {transit}: it is {self!r}")
        self.producer_id = transit.producer_id
        self.producer_epoch = transit.producer_epoch
        if transit.txn_state is TransactionState.EMPTY:
            self.last_producer_id = transit.last_producer_id
            self.last_producer_epoch = transit.last_producer_epoch
            self.txn_timeout_ms = transit.txn_timeout_ms
        else:
            self.txn_start_timestamp = transit.txn_start_timestamp
            self.topic_partitions = transit.topic_partitions
        self.txn_last_update_timestamp = transit.txn_last_update_timestamp
        self.pending_state = None
        self.state = transit.txn_state

    def _follows(self, transit: TxnTransitMetadata) -> bool:
        state = transit.txn_state
        is_same_producer = (transit.producer_id, transit.producer_epoch) == (self.producer_id, self.producer_epoch)
        if state is TransactionState.EMPTY:
            is_next_epoch = transit.producer_epoch == self.producer_epoch + 1
            is_new_producer = transit.producer_epoch == 0 and transit.producer_id != self.producer_id
            is_idle = not transit.topic_partitions and transit.txn_start_timestamp == NO_TIMESTAMP
            return is_idle and (is_same_producer or is_next_epoch or is_new_producer)
        if not is_same_producer or transit.txn_timeout_ms != self.txn_timeout_ms:
            return False
        if state is TransactionState.ONGOING:
            return set(self.topic_partitions) <= set(transit.topic_partitions)
        if state in PREPARED_STATES:
            known = (set(self.topic_partitions), self.txn_start_timestamp)
            return known == (set(transit.topic_partitions), transit.txn_start_timestamp)
        if state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
            return transit.txn_start_timestamp != NO_TIMESTAMP
        return False

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"TransactionMetadata({fields})"
