"""From Prepare* to Complete*: the markers of a transaction whose end is decided.

Nothing can undo that decision any more, so whatever fails is tried again, for as long as this broker owns the id. When
all markers stand, the end is written. A partition that is no more needs no marker.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kohort.clock import Clock
from kohort.errors import ErrorCode
from kohort.group.answers import Answers
from kohort.group.delayed import Timers
from kohort.log.names import TopicPartition
from kohort.transaction.manager import TransactionStateManager
from kohort.transaction.metadata import TransactionMetadata, TxnTransitMetadata
from kohort.transaction.states import TransactionState

logger = logging.getLogger(__name__)

_FIRST_DELAY_MS = 20
_LONGEST_DELAY_MS = 5_000

_NEEDS_NO_MARKER = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""Either it stands, or the producer cannot have written anything that is still there."""

_NOT_OURS = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""A newer producer or a newer coordinator was there: the transaction is theirs."""


class TxnMarker(NamedTuple):
    """The end of a transaction in one partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


MarkersCallback = Callable[[Mapping[TopicPartition, ErrorCode]], None]
"""Told what became of each marker."""


class MarkerWriter(Protocol):
    """Brings markers into the partitions of a transaction, wherever they are led."""

    def write(self, markers: Sequence[TxnMarker], done: MarkersCallback) -> None:
        """Write them all. `done` hears once, at once or later and on the coordinator's own thread, when each one is as
        durable as promised or has failed. A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION."""


class _Ending:
    """A transaction on its way to Complete*."""

    __slots__ = ("delay_ms", "metadata", "transit")

    def __init__(self, metadata: TransactionMetadata, transit: TxnTransitMetadata) -> None:
        self.metadata = metadata
        self.transit = transit
        self.delay_ms = _FIRST_DELAY_MS


class TransactionMarkers:
    """Sends the markers of all transactions that end."""

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        answers: Answers,
        manager: TransactionStateManager,
        writer: MarkerWriter,
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._answers = answers
        self._manager = manager
        self._writer = writer

    def send(self, metadata: TransactionMetadata) -> None:
        """PrepareCommit or PrepareAbort stands in the log: do what it says."""
        self._write(_Ending(metadata, metadata.prepare_complete(self._clock.now_ms())))

    def _write(self, ending: _Ending) -> None:
        """The markers that are missing."""
        metadata = ending.metadata
        if not self._manager.is_here(metadata):
            return
        if not metadata.topic_partitions:
            self._complete(ending)
            return
        coordinator_epoch = self._manager.epoch_of(metadata.partition)
        is_commit = metadata.state is TransactionState.PREPARE_COMMIT
        markers = [
            TxnMarker(partition, metadata.producer_id, metadata.producer_epoch, coordinator_epoch, is_commit)
            for partition in metadata.topic_partitions
        ]

        def done(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            with self._answers:
                self._written(ending, errors)

        self._writer.write(markers, done)

    def _written(self, ending: _Ending, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        metadata = ending.metadata
        if not self._manager.is_here(metadata):
            logger.info("markers of %s were written for somebody else", metadata.transactional_id)
            return
        metadata.remove_partitions({partition for partition, error in errors.items() if error in _NEEDS_NO_MARKER})
        for partition in metadata.topic_partitions:
            error = errors.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if error in _NOT_OURS:
                logger.warning(
                    "%s of %s is left alone, its marker for %s is %s",
                    metadata.state,
                    metadata.transactional_id,
                    partition,
                    error.name,
                )
                return
            logger.warning("marker of %s for %s was not written: %s", metadata.transactional_id, partition, error.name)
        if metadata.topic_partitions:
            self._again(ending, self._write)
        else:
            self._complete(ending)

    def _complete(self, ending: _Ending) -> None:
        """All markers stand: write that. No partition is listed any more, so a reload sends none again."""

        def settled(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE and self._manager.is_here(ending.metadata):
                self._again(ending, self._complete)

        if self._manager.is_here(ending.metadata):
            self._manager.store(ending.metadata, ending.transit, settled=settled, keep_pending=True)

    def _again(self, ending: _Ending, step: Callable[[_Ending], None]) -> None:
        self._timers.after(ending.delay_ms, step, ending)
        ending.delay_ms = min(2 * ending.delay_ms, _LONGEST_DELAY_MS)
