"""The transaction coordinator: every request about producers and their transactions comes through here.

It finds the transactional id, decides whether what is asked for may happen, and has it written. `manager.py` knows who
owns an id and how it gets into the log, `metadata.py` what may follow on what, `markers.py` how a transaction ends in
the partitions that it wrote to, `expiry.py` when an id goes.

One task calls it, with one request at a time. An answer is given when all that belongs to it is done, so whoever gets
it may ask again at once.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from kohort.clock import Clock
from kohort.config import TransactionConfig
from kohort.errors import ErrorCode, IllegalState, KohortError
from kohort.group.answers import Answers
from kohort.group.delayed import Timer, Timers
from kohort.group.records import is_writable
from kohort.records.batch import NO_PRODUCER_EPOCH
from kohort.transaction.expiry import Expiration
from kohort.transaction.manager import TransactionStateManager
from kohort.transaction.markers import MarkerWriter, TransactionMarkers
from kohort.transaction.metadata import TransactionMetadata, TxnTransitMetadata, is_epoch_exhausted
from kohort.transaction.records import TransactionalId
from kohort.transaction.requests import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    ErrorCallback,
    InitProducerIdCallback,
    InitProducerIdRequest,
    InitProducerIdResult,
    ProducerIdAndEpoch,
)
from kohort.transaction.states import IDLE_STATES, PREPARED_STATES, TransactionState
from kohort.transaction.transaction_log import TransactionLog

logger = logging.getLogger(__name__)

T = TypeVar("T")

ProducerIds = Callable[[], int]
"""Gives a producer id that nobody had before, on this broker or any other; a `KohortError` if there is none."""

_ANSWERS_TO_END: dict[tuple[TransactionState, bool], ErrorCode] = {
    (TransactionState.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (TransactionState.COMPLETE_ABORT, False): ErrorCode.NONE,
    (TransactionState.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
    (TransactionState.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
}
"""To a producer that commits (True) or aborts what it has ended already; all else is INVALID_TXN_STATE."""


class TransactionCoordinator:
    """Kafka 2.6's TransactionCoordinator."""

    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        log: TransactionLog,
        marker_writer: MarkerWriter,
        new_producer_id: ProducerIds,
    ) -> None:
        self._config = config
        self._clock = clock
        self._new_producer_id = new_producer_id
        self._answers = Answers()
        self.timers = Timers(clock, self._answers)
        self.manager = TransactionStateManager(config, clock, self.timers, self._answers, log)
        self._markers = TransactionMarkers(clock, self.timers, self._answers, self.manager, marker_writer)
        self._expiration = Expiration(self.manager, clock, self.timers)
        self._abort_timer = Timer(self._abort_and_repeat)

    # Life

    def startup(self, *, enable_transactional_id_expiration: bool = True) -> None:
        self._schedule_abort()
        if enable_transactional_id_expiration:
            self._expiration.start()

    def shutdown(self) -> None:
        """No id is owned any more: all who come later are sent elsewhere."""
        self._abort_timer.cancel()
        self._expiration.stop()
        with self._answers:
            for partition in self.manager.partitions:
                self.manager.unload(partition, None)

    def on_election(self, partition: int, epoch: int) -> None:
        """This broker leads a partition of the transaction topic now: load it, write the markers that may be missing,
        and serve its ids."""
        with self._answers:
            self.manager.load(partition, epoch, self._markers.send)

    def on_resignation(self, partition: int, epoch: int | None) -> None:
        """This broker does not lead it any more: let go of its ids and their markers."""
        with self._answers:
            self.manager.unload(partition, epoch)

    def partition_for(self, transactional_id: TransactionalId) -> int:
        return self.manager.partition_for(transactional_id)

    def snapshot(self) -> dict[str, float]:
        """Every metric, by its Kafka name."""
        loads = self.manager.partition_loads
        return {"partition-load-time-max": loads.maximum(), "partition-load-time-avg": loads.average()}

    # A producer begins

    def handle_init_producer_id(self, request: InitProducerIdRequest, respond: InitProducerIdCallback) -> None:
        """A producer id and an epoch; whoever had the transactional id before is fenced by it."""
        with self._answers:
            answer = self._answers.when_done(respond)
            if request.transactional_id is None:
                answer(self._without_transactional_id())
                return
            found = self._attempt(partial(self._find_or_create, request.transactional_id, request))
            if isinstance(found, ErrorCode):
                answer(InitProducerIdResult(found))
                return
            transit = self._attempt(partial(self._prepare_init, found, request))
            if isinstance(transit, ErrorCode):
                answer(InitProducerIdResult(transit))
            elif transit.txn_state is TransactionState.PREPARE_EPOCH_FENCE:
                # The producer before left a transaction open. It is aborted first; the client comes again.
                later = ErrorCode.CONCURRENT_TRANSACTIONS
                self._abort_fenced(found, transit, lambda error: answer(InitProducerIdResult(error or later)))
            else:
                self.manager.store(found, transit, respond=lambda error: answer(_init_result(error, transit)))

    def _without_transactional_id(self) -> InitProducerIdResult:
        producer_id = self._attempt(self._new_producer_id)
        if isinstance(producer_id, ErrorCode):
            return InitProducerIdResult(producer_id)
        return InitProducerIdResult(ErrorCode.NONE, producer_id, 0)

    def _find_or_create(
        self, transactional_id: TransactionalId, request: InitProducerIdRequest
    ) -> TransactionMetadata | ErrorCode:
        if not transactional_id or not is_writable(transactional_id):
            return ErrorCode.INVALID_REQUEST
        if not self.manager.is_valid_timeout(request.transaction_timeout_ms):
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        found = self.manager.find(transactional_id)
        if found is not None:
            return found
        return self.manager.add(
            TransactionMetadata(
                transactional_id,
                producer_id=self._new_producer_id(),
                txn_timeout_ms=request.transaction_timeout_ms,
                txn_last_update_timestamp=self._clock.now_ms(),
            )
        )

    def _prepare_init(
        self, metadata: TransactionMetadata, request: InitProducerIdRequest
    ) -> TxnTransitMetadata | ErrorCode:
        expected, timeout, now = request.expected, request.transaction_timeout_ms, self._clock.now_ms()
        if metadata.pending_state is not None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if expected is not None and not _may_go_on(metadata, expected):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if metadata.state in PREPARED_STATES:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if metadata.state is TransactionState.ONGOING:
            return metadata.prepare_fence_producer_epoch()
        if metadata.state not in IDLE_STATES:
            raise IllegalState(f"{metadata.transactional_id} is {metadata.state}, which no id ever becomes")
        expected_epoch = None if expected is None else expected.producer_epoch
        if metadata.is_producer_epoch_exhausted and expected_epoch in (None, metadata.producer_epoch):
            return metadata.prepare_producer_id_rotation(
                self._new_producer_id(), timeout, now, record_last_epoch=expected is not None
            )
        return metadata.prepare_increment_producer_epoch(timeout, expected_epoch, now)

    # A transaction

    def handle_add_partitions_to_txn(self, request: AddPartitionsToTxnRequest, respond: ErrorCallback) -> None:
        """Partitions join the transaction; the first ones begin it."""
        with self._answers:
            answer = self._answers.when_done(respond)
            found = self._find(request.transactional_id)
            if isinstance(found, ErrorCode):
                answer(found)
                return
            transit = self._attempt(partial(self._prepare_add, found, request))
            if isinstance(transit, ErrorCode):
                answer(transit)
            else:
                self.manager.store(found, transit, respond=answer)

    def _prepare_add(
        self, metadata: TransactionMetadata, request: AddPartitionsToTxnRequest
    ) -> TxnTransitMetadata | ErrorCode:
        error = _stranger(metadata, request.producer_id, request.producer_epoch)
        if error is not ErrorCode.NONE:
            return error
        if metadata.pending_state is not None or metadata.state in PREPARED_STATES:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_ongoing = metadata.state is TransactionState.ONGOING
        if is_ongoing and set(request.partitions) <= set(metadata.topic_partitions):
            return ErrorCode.NONE  # they are all in it already, nothing needs to be written
        return metadata.prepare_add_partitions(request.partitions, self._clock.now_ms())

    def handle_end_txn(self, request: EndTxnRequest, respond: ErrorCallback) -> None:
        """Commit or abort. The answer means that the end is decided; the markers follow."""
        with self._answers:
            answer = self._answers.when_done(respond)
            found = self._find(request.transactional_id)
            if isinstance(found, ErrorCode):
                answer(found)
                return
            transit = self._attempt(partial(self._prepare_end, found, request))
            if isinstance(transit, ErrorCode):
                answer(transit)
            else:
                self._end(found, transit, answer, is_fence=False)

    def _prepare_end(self, metadata: TransactionMetadata, request: EndTxnRequest) -> TxnTransitMetadata | ErrorCode:
        error = _stranger(metadata, request.producer_id, request.producer_epoch)
        if error is not ErrorCode.NONE:
            return error
        if metadata.pending_state is not None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if metadata.state is TransactionState.ONGOING:
            state = TransactionState.PREPARE_COMMIT if request.is_commit else TransactionState.PREPARE_ABORT
            return metadata.prepare_abort_or_commit(state, self._clock.now_ms())
        return _ANSWERS_TO_END.get((metadata.state, request.is_commit), ErrorCode.INVALID_TXN_STATE)

    def _abort_fenced(self, metadata: TransactionMetadata, transit: TxnTransitMetadata, respond: ErrorCallback) -> None:
        """Abort for a producer that is shut out from now on."""
        metadata.fence(transit)
        abort = metadata.prepare_abort_or_commit(TransactionState.PREPARE_ABORT, self._clock.now_ms())
        self._end(metadata, abort, respond, is_fence=True)

    def _end(
        self, metadata: TransactionMetadata, transit: TxnTransitMetadata, respond: ErrorCallback, *, is_fence: bool
    ) -> None:
        def settled(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._markers.send(metadata)
            elif is_fence:
                metadata.has_failed_epoch_fence = True

        self.manager.store(metadata, transit, respond=respond, settled=settled)

    # What happens by itself

    def _schedule_abort(self) -> None:
        interval = self._config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self.timers.schedule(self._abort_timer, interval)

    def _abort_and_repeat(self) -> None:
        self._schedule_abort()
        self.abort_timed_out_transactions()

    def abort_timed_out_transactions(self) -> None:
        """Shut out the producers of transactions that are open for too long, and abort them."""
        with self._answers:
            for metadata in self.manager.timed_out_transactions():
                transit = self._attempt(metadata.prepare_fence_producer_epoch)
                if not isinstance(transit, ErrorCode):
                    self._abort_fenced(metadata, transit, partial(_note_abort, metadata.transactional_id))

    def remove_expired_transactional_ids(self) -> None:
        """Remove ids that nobody uses any more; otherwise done every
        `transaction.remove.expired.transaction.cleanup.interval.ms`."""
        with self._answers:
            self._expiration.remove_expired_transactional_ids()

    # Helpers

    def _find(self, transactional_id: TransactionalId | None) -> TransactionMetadata | ErrorCode:
        if not transactional_id or not is_writable(transactional_id):
            return ErrorCode.INVALID_REQUEST
        found = self.manager.find(transactional_id)
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING if found is None else found

    def _attempt(self, prepare: Callable[[], T | ErrorCode]) -> T | ErrorCode:
        """What cannot be is the server's fault, and nobody else's request must suffer from it."""
        try:
            return prepare()
        except KohortError as wrong:
            logger.error("a request that could not be served: %s", wrong)
            return ErrorCode.UNKNOWN_SERVER_ERROR


def _init_result(error: ErrorCode, transit: TxnTransitMetadata) -> InitProducerIdResult:
    if error is not ErrorCode.NONE:
        return InitProducerIdResult(error)
    return InitProducerIdResult(ErrorCode.NONE, transit.producer_id, transit.producer_epoch)


def _may_go_on(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether a producer that says who it is may be the one that is known (KIP-360): the id was just created, the
    producer id is the current one (its epoch is looked at later), or it is the one before, whose epochs are used up
    and whose answer was lost."""
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == metadata.producer_id
        or (expected.producer_id == metadata.last_producer_id and is_epoch_exhausted(expected.producer_epoch))
    )


def _stranger(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode:
    """Why this producer may not touch the transaction, if so."""
    if metadata.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer_epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.NONE


def _note_abort(transactional_id: TransactionalId, error: ErrorCode) -> None:
    if error is ErrorCode.NONE:
        logger.info("the transaction of %s took too long and is aborted", transactional_id)
    else:
        logger.warning("the transaction of %s took too long and could not be aborted: %s", transactional_id, error.name)
