"""What a partition remembers of one producer, and the rules that its next batch must keep (Kafka 2.6, KIP-360).

An idempotent producer numbers its records. The log takes a batch only if it continues the numbering, recognises the
last five batches when they are sent again, and refuses a producer whose epoch has been overtaken. A producer of which
nothing is remembered may start with any number: its past may have been deleted, so UNKNOWN_PRODUCER_ID never arises.

Three kinds of writers are told apart. Clients are checked in full. The group coordinator writes the transactional
offsets of many requests under the producer's id, each with sequence 0: only its epoch is checked. What is read back
from the log was checked when it was written, and is not checked again.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kohort.errors import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence, TransactionCoordinatorFenced
from kohort.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader, increment_sequence
from kohort.records.control import ControlType, Marker

NUM_BATCHES_TO_RETAIN = 5
NO_COORDINATOR_EPOCH = -1


class AppendOrigin(Enum):
    """Who appends."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class BatchMetadata(NamedTuple):
    """A batch as its producer's entry remembers it."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        if self.last_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    """A transaction whose marker has been read or written."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


@dataclass(slots=True)
class ProducerEntry:
    """One producer's state. `append` checks first and changes after, so a refused batch leaves no trace."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    current_txn_first_offset: int | None = None
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=NUM_BATCHES_TO_RETAIN))

    def copy(self) -> "ProducerEntry":
        return ProducerEntry(
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
            self.batches.copy(),
        )

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch that this one repeats, if it is among the last five."""
        if header.producer_epoch != self.producer_epoch:
            return None
        wanted = (header.base_sequence, header.last_sequence)
        return next((batch for batch in self.batches if (batch.first_sequence, batch.last_sequence) == wanted), None)

    def append(self, header: BatchHeader, origin: AppendOrigin) -> None:
        """Take a data batch, at the offsets that its header names."""
        self._check_epoch(header.producer_epoch, origin)
        if origin is AppendOrigin.CLIENT:
            self._check_sequence(header)
        if self.current_txn_first_offset is not None and not header.is_transactional:
            raise InvalidTxnState(
                f"producer {self.producer_id} sent a plain batch within the transaction "
                f"that began at offset {self.current_txn_first_offset}"
            )
        self._maybe_update_epoch(header.producer_epoch)
        self.batches.append(
            BatchMetadata(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
        )
        self.last_timestamp = header.max_timestamp
        if header.is_transactional and self.current_txn_first_offset is None:
            self.current_txn_first_offset = header.base_offset

    def append_marker(self, header: BatchHeader, marker: Marker, origin: AppendOrigin) -> CompletedTransaction | None:
        """Take a marker. It completes nothing if the transaction had no batch here."""
        self._check_epoch(header.producer_epoch, origin)
        if marker.coordinator_epoch < self.coordinator_epoch and origin is not AppendOrigin.REPLICATION:
            raise TransactionCoordinatorFenced(
                f"marker for producer {self.producer_id} with coordinator epoch {marker.coordinator_epoch}, "
                f"known is {self.coordinator_epoch}"
            )
        first_offset = self.current_txn_first_offset
        self._maybe_update_epoch(header.producer_epoch)
        self.current_txn_first_offset = None
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp = header.max_timestamp
        if first_offset is None:
            return None
        aborted = marker.type is ControlType.ABORT
        return CompletedTransaction(self.producer_id, first_offset, header.last_offset, aborted)

    def _maybe_update_epoch(self, epoch: int) -> None:
        if epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = epoch

    def _check_epoch(self, epoch: int, origin: AppendOrigin) -> None:
        if epoch < self.producer_epoch and origin is not AppendOrigin.REPLICATION:
            raise InvalidProducerEpoch(
                f"producer {self.producer_id} with epoch {epoch} is fenced by epoch {self.producer_epoch}"
            )

    def _check_sequence(self, header: BatchHeader) -> None:
        if self.producer_epoch == NO_PRODUCER_EPOCH:
            return
        last = self.last_sequence if header.producer_epoch == self.producer_epoch else NO_SEQUENCE
        if header.base_sequence != increment_sequence(last, 1):
            raise OutOfOrderSequence(
                f"producer {self.producer_id}, epoch {header.producer_epoch}: "
                f"sequence {header.base_sequence} after {last}"
            )
