"""Transactional ids that nobody uses any more: first their tombstones are safe in the log, then memory forgets.

However many go, they go in batches with pauses between them, in which the coordinator serves others.
"""

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from kohort.clock import Clock
from kohort.errors import ErrorCode
from kohort.group.delayed import Timer, Timers, Turns
from kohort.transaction.manager import TransactionStateManager
from kohort.transaction.metadata import TransactionMetadata
from kohort.transaction.records import tombstones

logger = logging.getLogger(__name__)

_TOMBSTONES_A_BATCH = 500
_KEY_BYTES_A_BATCH = 500_000


class Expiration:
    """Removes expired ids every `transaction.remove.expired.transaction.cleanup.interval.ms`."""

    def __init__(self, manager: TransactionStateManager, clock: Clock, timers: Timers) -> None:
        self._manager = manager
        self._clock = clock
        self._timers = timers
        self._turns = Turns(clock, timers, work_a_turn=_TOMBSTONES_A_BATCH)
        self._timer = Timer(self._sweep)

    def start(self) -> None:
        interval = self._manager.config.transaction_remove_expired_transaction_cleanup_interval_ms
        self._timers.schedule(self._timer, interval)

    def stop(self) -> None:
        self._timer.cancel()

    def _sweep(self) -> None:
        self.start()
        self.remove_expired_transactional_ids()

    def remove_expired_transactional_ids(self) -> None:
        """All that have expired by now."""
        for batch in _batches(self._manager.expired_ids()):
            self._turns.soon(partial(self._remove, batch))

    def _remove(self, batch: list[TransactionMetadata]) -> int:
        """Write the tombstones of those that nobody has used since they were found."""
        now, expiration = self._clock.now_ms(), self._manager.config.transactional_id_expiration_ms
        going = [
            metadata for metadata in batch if self._manager.is_here(metadata) and metadata.has_expired(now, expiration)
        ]
        if going:
            for metadata in going:
                metadata.prepare_dead()
            records = tombstones([metadata.transactional_id for metadata in going], now)
            self._manager.append(going[0].partition, records, partial(self._removed, going))
        return len(batch)

    def _removed(self, gone: list[TransactionMetadata], error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            logger.warning("%d expired transactional ids stay until the next time: %s", len(gone), error.name)
        for metadata in gone:
            if error is not ErrorCode.NONE:
                metadata.pending_state = None
            elif self._manager.is_here(metadata):
                self._manager.forget(metadata)


def _batches(expired: Sequence[TransactionMetadata]) -> Iterator[list[TransactionMetadata]]:
    """As many of one partition as fit: a batch must not be larger than a log takes."""
    batch: list[TransactionMetadata] = []
    size = 0
    for metadata in expired:
        is_full = len(batch) == _TOMBSTONES_A_BATCH or size >= _KEY_BYTES_A_BATCH
        if batch and (is_full or metadata.partition != batch[0].partition):
            yield batch
            batch, size = [], 0
        batch.append(metadata)
        size += 3 * len(metadata.transactional_id) + 20
    if batch:
        yield batch
