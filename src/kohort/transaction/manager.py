"""The transactional ids of this broker: which it owns, how they get into the log and back out of it.

An id lives in one partition of `__transaction_state`. Whoever leads that partition owns the id: it loads the partition
when elected, answers from memory, writes every change to the log before it tells anybody, and lets go of everything
when it resigns. A partition whose load failed is owned by nobody: no answer is better than a wrong one.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kohort.clock import Clock
from kohort.config import TransactionConfig
from kohort.errors import ClientError, ErrorCode, KohortError
from kohort.group.answers import Answers
from kohort.group.delayed import Timer, Timers
from kohort.group.metrics import LoadTimes
from kohort.group.placement import partition_for
from kohort.records.garbage import garbage_collector_paused
from kohort.transaction.metadata import TransactionMetadata, TxnTransitMetadata
from kohort.transaction.records import TransactionalId, transaction_batch
from kohort.transaction.replaying import TransactionLogState
from kohort.transaction.requests import ErrorCallback
from kohort.transaction.states import PREPARED_STATES
from kohort.transaction.transaction_log import TransactionLog, append_error

logger = logging.getLogger(__name__)


class _Load(NamedTuple):
    """A load under way."""

    epoch: int
    began_ms: int


class TransactionStateManager:
    """Transactional ids in memory and their way to the log and back."""

    def __init__(
        self, config: TransactionConfig, clock: Clock, timers: Timers, answers: Answers, log: TransactionLog
    ) -> None:
        self.config = config
        self._clock = clock
        self._timers = timers
        self._answers = answers
        self._log = log
        self._owned: dict[int, dict[TransactionalId, TransactionMetadata]] = {}
        self._loading: dict[int, _Load] = {}
        self._epochs: dict[int, int] = {}
        self.failed_loads: dict[int, KohortError] = {}
        """Partitions that should be here and are not, and why."""
        self.partition_loads = LoadTimes(clock)

    # Ids

    def find(self, transactional_id: TransactionalId) -> TransactionMetadata | ErrorCode | None:
        """What is known of an id, None if nobody has used it, or why this broker cannot tell."""
        partition = self.partition_for(transactional_id)
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        owned = self._owned.get(partition)
        return ErrorCode.NOT_COORDINATOR if owned is None else owned.get(transactional_id)

    def add(self, metadata: TransactionMetadata) -> TransactionMetadata | ErrorCode:
        """Keep an id; if it is known already, what is known stays."""
        found = self.find(metadata.transactional_id)
        if found is not None:
            return found
        metadata.partition = self.partition_for(metadata.transactional_id)
        return self._owned[metadata.partition].setdefault(metadata.transactional_id, metadata)

    def forget(self, metadata: TransactionMetadata) -> None:
        """The id is gone from the log."""
        del self._owned[metadata.partition][metadata.transactional_id]

    def is_here(self, metadata: TransactionMetadata) -> bool:
        """Whether it is still this that is known of its id: it was neither let go of nor loaded anew."""
        return self._owned.get(metadata.partition, {}).get(metadata.transactional_id) is metadata

    def is_valid_timeout(self, transaction_timeout_ms: int) -> bool:
        return 0 < transaction_timeout_ms <= self.config.transaction_max_timeout_ms

    def timed_out_transactions(self) -> Sequence[TransactionMetadata]:
        """Those open for too long, by the time of day that stands in their records."""
        now = self._clock.now_ms()
        return [metadata for metadata in self._each() if metadata.has_timed_out(now)]

    def expired_ids(self) -> Sequence[TransactionMetadata]:
        """Those that nobody has used for `transactional.id.expiration.ms`, one partition after the other."""
        now = self._clock.now_ms()
        return [
            metadata
            for metadata in self._each()
            if metadata.has_expired(now, self.config.transactional_id_expiration_ms)
        ]

    def known_ids(self) -> Sequence[TransactionMetadata] | ErrorCode:
        """All ids that this broker owns; an error while some of them are still being loaded."""
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._loading else list(self._each())

    def _each(self) -> Iterator[TransactionMetadata]:
        for owned in self._owned.values():
            yield from owned.values()

    # Partitions

    def partition_for(self, transactional_id: TransactionalId) -> int:
        return partition_for(transactional_id, self.config.transaction_state_log_num_partitions)

    @property
    def partitions(self) -> Sequence[int]:
        """Owned or about to be."""
        return sorted(self._owned.keys() | self._loading.keys())

    def epoch_of(self, partition: int) -> int:
        """The newest leader epoch heard of; markers bear it as the coordinator's."""
        return self._epochs[partition]

    def load(self, partition: int, epoch: int, on_prepared: Callable[[TransactionMetadata], None]) -> None:
        """This broker was elected: read the partition. What is older than what is known already is passed over.

        `on_prepared` hears of each transaction whose end is decided and whose markers may be missing.
        """
        known = self._epochs.get(partition, epoch)
        is_here = partition in self._owned or partition in self._loading
        if epoch < known or (epoch == known and is_here):
            logger.info("election for partition %d at epoch %d passed over: epoch is %d", partition, epoch, known)
            return
        if is_here:
            self.unload(partition, None)
        self._epochs[partition] = epoch
        self.failed_loads.pop(partition, None)
        load = self._loading[partition] = _Load(epoch, self._clock.monotonic_ms())
        logger.info("loading partition %d at epoch %d", partition, epoch)

        def done(result: TransactionLogState | KohortError) -> None:
            with self._answers:
                self._on_loaded(partition, load, result, on_prepared)

        self._log.load(partition, done)

    def _on_loaded(
        self,
        partition: int,
        load: _Load,
        result: TransactionLogState | KohortError,
        on_prepared: Callable[[TransactionMetadata], None],
    ) -> None:
        if self._loading.get(partition) is not load:
            logger.info("load of partition %d at epoch %d is outdated", partition, load.epoch)
            return
        del self._loading[partition]
        if isinstance(result, KohortError):
            self.failed_loads[partition] = result
            logger.error("partition %d could not be loaded and stays unavailable: %s", partition, result)
            return
        with garbage_collector_paused():
            # Those that belong elsewhere are passed over, should somebody have moved the log.
            owned = self._owned[partition] = {
                transactional_id: TransactionMetadata.loaded(transactional_id, value, partition)
                for transactional_id, value in result.transactions.items()
                if self.partition_for(transactional_id) == partition
            }
        duration = self._clock.monotonic_ms() - load.began_ms
        self.partition_loads.record(duration, result.records)
        logger.info("loaded %d transactional ids from partition %d in %d ms", len(owned), partition, duration)
        if result.unknown_keys:
            logger.warning("%d records of partition %d are of an unknown kind", result.unknown_keys, partition)
        for metadata in [metadata for metadata in owned.values() if metadata.state in PREPARED_STATES]:
            on_prepared(metadata)

    def unload(self, partition: int, epoch: int | None) -> None:
        """Somebody else leads the partition now. Without an epoch it is given up for good reason anyway."""
        known = self._epochs.get(partition)
        if epoch is not None:
            if known is not None and epoch < known:
                logger.info(
                    "resignation from partition %d at epoch %d passed over: epoch is %d", partition, epoch, known
                )
                return
            self._epochs[partition] = epoch
        self._loading.pop(partition, None)
        self.failed_loads.pop(partition, None)
        owned = self._owned.pop(partition, {})
        logger.info("unloaded %d transactional ids of partition %d", len(owned), partition)

    # Writing

    def append(self, partition: int, records: bytes, settled: ErrorCallback) -> None:
        """Write a batch. `settled` hears what became of it, whenever that is known."""

        def done(error: ErrorCode, _: int) -> None:
            with self._answers:
                settled(error)

        self._log.append(partition, records, done)

    def store(
        self,
        metadata: TransactionMetadata,
        transit: TxnTransitMetadata,
        *,
        respond: ErrorCallback | None = None,
        settled: ErrorCallback | None = None,
        keep_pending: bool = False,
    ) -> None:
        """Write what an id shall become. Written, it is that; otherwise what was pending is taken back, unless
        `keep_pending` says that it will be tried again.

        `respond` hears once how it went, or that it takes longer than the transaction may; `settled` how it went,
        however long it took. Until then the change stays pending: nobody knows better than the log.
        """
        waiting = [] if respond is None else [respond]
        timer = Timer(lambda: waiting.pop()(append_error(ErrorCode.REQUEST_TIMED_OUT)))

        def done(log_error: ErrorCode) -> None:
            timer.cancel()
            error = self._settle(metadata, transit, log_error, keep_pending=keep_pending)
            if waiting:
                waiting.pop()(error)
            if settled is not None:
                settled(error)

        if not self.is_here(metadata):
            done(self._why_gone(metadata))
            return
        try:
            records = transaction_batch(metadata.transactional_id, transit.value(), self._clock.now_ms())
        except ClientError as error:
            done(error.code)
            return
        self.append(metadata.partition, records, done)
        if waiting:
            self._timers.schedule(timer, transit.txn_timeout_ms)

    def _settle(
        self, metadata: TransactionMetadata, transit: TxnTransitMetadata, log_error: ErrorCode, *, keep_pending: bool
    ) -> ErrorCode:
        error = append_error(log_error)
        is_here = self.is_here(metadata)
        if error is not ErrorCode.NONE:
            logger.warning("%s was not written as %s: %s", metadata.transactional_id, transit.txn_state, log_error.name)
            if is_here and not keep_pending:
                metadata.pending_state = None
        elif is_here:
            metadata.complete_transition_to(transit)
        else:
            error = self._why_gone(metadata)
        return error

    def _why_gone(self, metadata: TransactionMetadata) -> ErrorCode:
        found = self.find(metadata.transactional_id)
        return found if isinstance(found, ErrorCode) else ErrorCode.NOT_COORDINATOR
