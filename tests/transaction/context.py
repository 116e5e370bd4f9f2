"""A transaction coordinator in virtual time, and short words to talk to it.

    c = Context()
    producer = c.init_producer_id().result          # producer id 0, epoch 0
    c.add_partitions(producer, ("orders", 0))
    c.end_txn(producer, is_commit=True)             # the markers are written at once, unless c.desk is told otherwise
    assert c.state() == "CompleteCommit"

Requests return an `Answer`. The topic has two partitions; `ID` and `OTHER_ID` are on the one that is owned, `ELSEWHERE`
is not.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kohort.clock import VirtualClock
from kohort.config import TransactionConfig
from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.coordinator import TransactionCoordinator
from kohort.transaction.metadata import TransactionMetadata
from kohort.transaction.records import TransactionalId, TransactionValue, decode_key, decode_value, transaction_batch
from kohort.transaction.requests import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    InitProducerIdResult,
    ProducerIdAndEpoch,
)
from kohort.transaction.states import TransactionState
from tests.group.context import Answer
from tests.transaction.marker_desk import MarkerDesk
from tests.transaction.transaction_topic import TransactionTopic

ID = "one"
OTHER_ID = "two"
ELSEWHERE = "a"
TIMEOUT = 60_000
PARTITIONS = (("topic1", 0), ("topic1", 1), ("topic2", 0))
ABORT_INTERVAL = 10_000
EXPIRATION = 604_800_000

CONFIG = TransactionConfig(transaction_state_log_num_partitions=2)

Partition = tuple[str, int]


class Context:
    """A coordinator with its clock, its log and the partitions that its producers write to."""

    def __init__(
        self,
        *,
        topic: TransactionTopic | None = None,
        clock: VirtualClock | None = None,
        desk: MarkerDesk | None = None,
        new_producer_id: Callable[[], int] | None = None,
        own: bool = True,
        **settings: Any,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.config = replace(CONFIG, **settings)
        buffer_size = self.config.transaction_state_log_load_buffer_size
        self.topic = topic or TransactionTopic(self.clock, read_size=buffer_size)
        self.desk = desk or MarkerDesk()
        self.new_producer_id = new_producer_id or itertools.count().__next__
        self.coordinator = TransactionCoordinator(self.config, self.clock, self.topic, self.desk, self.new_producer_id)
        self.manager = self.coordinator.manager
        self.coordinator.startup()
        if own:
            self.elect()

    # Time and the log

    def sleep(self, ms: int) -> None:
        """Time passes, all at once; then whatever is due happens."""
        self.clock.advance(ms)
        self.coordinator.timers.run_due()

    def elect(self, partition: int = 0, epoch: int = 0) -> None:
        self.coordinator.on_election(partition, epoch)

    def resign(self, partition: int = 0, epoch: int | None = None) -> None:
        self.coordinator.on_resignation(partition, epoch)

    def restarted(self, **settings: Any) -> "Context":
        """Another coordinator on the same log, clock and partitions, which has loaded what this one owned."""
        successor = Context(
            topic=self.topic,
            clock=self.clock,
            desk=self.desk,
            new_producer_id=self.new_producer_id,
            own=False,
            **settings,
        )
        for partition in self.manager.partitions:
            successor.elect(partition, self.manager.epoch_of(partition))
        return successor

    def records(self, start: int = 0, partition: int = 0) -> list[tuple[str | None, TransactionValue | None]]:
        """What was written, decoded: ids, and values or None for tombstones."""
        return [
            (decode_key(record.key or b""), None if record.value is None else decode_value(record.value))
            for record in self.topic.records(partition, start)
        ]

    def states(self) -> list[str]:
        """The states that were written, in their order; a tombstone is Dead."""
        return ["Dead" if value is None else value.state.value for _, value in self.records()]

    def write(self, value: TransactionValue, transactional_id: str = ID, partition: int = 0) -> None:
        """A record of another coordinator."""
        self.topic.write(partition, transaction_batch(TransactionalId(transactional_id), value, self.clock.now_ms()))

    # Ids

    def find(self, transactional_id: str = ID) -> TransactionMetadata | ErrorCode | None:
        return self.manager.find(TransactionalId(transactional_id))

    def metadata(self, transactional_id: str = ID) -> TransactionMetadata:
        found = self.find(transactional_id)
        assert isinstance(found, TransactionMetadata), found
        return found

    def state(self, transactional_id: str = ID) -> str:
        return self.metadata(transactional_id).state.value

    def pending(self, transactional_id: str = ID) -> TransactionState | None:
        return self.metadata(transactional_id).pending_state

    def put(self, transactional_id: str = ID, **fields: Any) -> TransactionMetadata:
        """An id in memory only, as Kafka's tests make them: producer 10, epoch 1."""
        now = self.clock.now_ms()
        told = {
            "producer_id": 10,
            "last_producer_id": 10,
            "producer_epoch": 1,
            "txn_timeout_ms": TIMEOUT,
            "txn_last_update_timestamp": now,
            "txn_start_timestamp": now,
        }
        metadata = self.manager.add(TransactionMetadata(TransactionalId(transactional_id), **(told | fields)))
        assert isinstance(metadata, TransactionMetadata)
        return metadata

    # Requests

    def init_producer_id(
        self, transactional_id: str | None = ID, *, timeout: int = TIMEOUT, expected: tuple[int, int] | None = None
    ) -> Answer[InitProducerIdResult]:
        answer: Answer[InitProducerIdResult] = Answer()
        told = None if expected is None else ProducerIdAndEpoch(*expected)
        self.coordinator.handle_init_producer_id(InitProducerIdRequest(_id(transactional_id), timeout, told), answer)
        return answer

    def add_partitions(
        self, producer: InitProducerIdResult, *partitions: Partition, transactional_id: str | None = ID
    ) -> Answer[ErrorCode]:
        answer: Answer[ErrorCode] = Answer()
        request = AddPartitionsToTxnRequest(
            _id(transactional_id),
            producer.producer_id,
            producer.producer_epoch,
            tuple(TopicPartition(*partition) for partition in partitions),
        )
        self.coordinator.handle_add_partitions_to_txn(request, answer)
        return answer

    def end_txn(
        self, producer: InitProducerIdResult, *, is_commit: bool, transactional_id: str | None = ID
    ) -> Answer[ErrorCode]:
        answer: Answer[ErrorCode] = Answer()
        request = EndTxnRequest(_id(transactional_id), producer.producer_id, producer.producer_epoch, is_commit)
        self.coordinator.handle_end_txn(request, answer)
        return answer

    def ongoing(
        self, *partitions: Partition, transactional_id: str = ID, timeout: int = TIMEOUT
    ) -> InitProducerIdResult:
        """A producer with a transaction on these partitions, all of `PARTITIONS` if none are given."""
        producer = self.init_producer_id(transactional_id, timeout=timeout).result
        added = self.add_partitions(producer, *(partitions or PARTITIONS), transactional_id=transactional_id)
        assert added.result is ErrorCode.NONE
        return producer

    def ended(self, *, is_commit: bool, transactional_id: str = ID) -> InitProducerIdResult:
        """A producer whose transaction is complete."""
        producer = self.ongoing(transactional_id=transactional_id)
        assert self.end_txn(producer, is_commit=is_commit, transactional_id=transactional_id).result is ErrorCode.NONE
        return producer


def producer(producer_id: int = 10, producer_epoch: int = 1) -> InitProducerIdResult:
    return InitProducerIdResult(ErrorCode.NONE, producer_id, producer_epoch)


def _id(transactional_id: str | None) -> TransactionalId | None:
    return None if transactional_id is None else TransactionalId(transactional_id)
