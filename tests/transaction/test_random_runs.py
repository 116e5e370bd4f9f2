"""Producers, logs that fail, markers that fail, reloads and restarts, all at random: what was promised is kept.

TransactionCoordinatorConcurrencyTest testConcurrentRandomSequences
TransactionCoordinatorConcurrencyTest testConcurrentLoadUnloadPartitions
TransactionCoordinatorConcurrencyTest testConcurrentTransactionExpiration
Python: threads that meet by chance have become steps in a random order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.metadata import TransactionMetadata
from kohort.transaction.records import TransactionValue
from kohort.transaction.replaying import replay_transactions
from kohort.transaction.requests import InitProducerIdResult
from kohort.transaction.states import PREPARED_STATES, TransactionState
from tests.group.context import Answer
from tests.transaction.context import ID, OTHER_ID, PARTITIONS, Context

LOG_ERRORS = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.MESSAGE_TOO_LARGE]
MARKER_ERRORS = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR]
STEPS = 80


@dataclass
class Client:
    """A producer as it sees itself, with what it was told."""

    transactional_id: str
    me: InitProducerIdResult | None = None
    added: set[TopicPartition] = field(default_factory=set)
    waiting: tuple[Answer, Callable[[object], None]] | None = None

    def listen(self) -> None:
        if self.waiting is not None and self.waiting[0].is_done:
            answer, then = self.waiting
            self.waiting = None
            then(answer.result)


class Run:
    """One run; `promises` are the ends that clients were told of, with the partitions that must be in them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.c = Context()
        self.epoch = 0
        self.clients = [Client(ID), Client(ID), Client(OTHER_ID)]
        self.given: list[InitProducerIdResult] = []
        self.promises: list[tuple[InitProducerIdResult, set[TopicPartition], bool]] = []
        self.was_read = False

    def run(self) -> None:
        deeds = [self.init, self.add, self.add, self.end, self.end, self.log, self.markers, self.pass_time, self.reload]
        for _ in range(STEPS):
            self.random.choice(deeds)()
            for client in self.clients:
                client.listen()
        self.heal()

    def init(self) -> None:
        client = self.random.choice(self.clients)
        if client.waiting is None:
            timeout = self.random.choice([20_000, 900_000])
            answer = self.c.init_producer_id(client.transactional_id, timeout=timeout)
            client.waiting = (answer, partial(self.began, client))

    def began(self, client: Client, result: InitProducerIdResult) -> None:
        if result.error is ErrorCode.NONE:
            self.given.append(result)
            client.me, client.added = result, set()

    def add(self) -> None:
        client = self.random.choice(self.clients)
        if client.waiting is None and client.me is not None:
            some = self.random.sample(PARTITIONS, self.random.randint(1, 3))
            answer = self.c.add_partitions(client.me, *some, transactional_id=client.transactional_id)
            client.waiting = (answer, partial(self.joined, client, {TopicPartition(*each) for each in some}))

    def joined(self, client: Client, some: set[TopicPartition], error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            client.added |= some

    def end(self) -> None:
        client = self.random.choice(self.clients)
        if client.waiting is None and client.me is not None and client.added:
            is_commit = self.random.random() < 0.5
            answer = self.c.end_txn(client.me, is_commit=is_commit, transactional_id=client.transactional_id)
            client.waiting = (answer, partial(self.ended, client, client.me, is_commit))

    def ended(self, client: Client, me: InitProducerIdResult, is_commit: bool, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self.promises.append((me, client.added, is_commit))
            client.added = set()
        elif error is ErrorCode.INVALID_PRODUCER_EPOCH:
            client.me = None

    def log(self) -> None:
        topic = self.c.topic
        match self.random.randrange(5):
            case 0:
                topic.fail_next(self.random.choice(LOG_ERRORS))
            case 1:
                topic.hold()
            case 2 if topic.held:
                topic.release_one()
            case 3 if topic.held and not self.was_read:
                topic.fail_held(self.random.choice(LOG_ERRORS))
            case _:
                self.release_log()

    def release_log(self) -> None:
        self.c.topic.release()
        self.was_read = False

    def markers(self) -> None:
        match self.random.randrange(3):
            case 0:
                self.c.desk.hold()
            case 1:
                self.c.desk.fail(*self.random.choice(PARTITIONS), self.random.choice(MARKER_ERRORS))
            case _:
                self.c.desk.release()

    def pass_time(self) -> None:
        self.c.sleep(self.random.choice([1, 50, 1_000, 10_001, 30_000]))

    def reload(self) -> None:
        """What was read is taken for safe, so it must not fail any more."""
        self.epoch += 1
        self.was_read = bool(self.c.topic.held)
        if self.random.random() < 0.5:
            self.c.elect(epoch=self.epoch)
        else:
            self.c.coordinator.shutdown()
            self.c = Context(
                topic=self.c.topic,
                clock=self.c.clock,
                desk=self.c.desk,
                new_producer_id=self.c.new_producer_id,
                own=False,
            )
            self.c.elect(epoch=self.epoch)

    def heal(self) -> None:
        """Everything works again, and everything that is due happens."""
        self.c.topic._errors.clear()
        self.release_log()
        self.c.desk.release()
        for _ in range(200):
            self.c.sleep(5_001)
        for client in self.clients:
            client.listen()


def value(metadata: TransactionMetadata) -> TransactionValue:
    return TransactionValue(
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.txn_timeout_ms,
        metadata.state,
        metadata.topic_partitions,
        metadata.txn_last_update_timestamp,
        metadata.txn_start_timestamp,
    )


@pytest.mark.parametrize("seed", range(150))
def test_what_was_promised_is_kept(seed: int) -> None:
    run = Run(seed)
    run.run()
    records = [(key, written) for key, written in run.c.records() if written is not None]
    prepared = [written for _, written in records if written.state in PREPARED_STATES]
    markers = {(m.partition, m.producer_id, m.producer_epoch, m.is_commit) for m in run.c.desk.written}
    due = {
        (partition, end.producer_id, end.producer_epoch, end.state is TransactionState.PREPARE_COMMIT)
        for end in prepared
        for partition in end.topic_partitions
    }
    assert markers == due, "all that was decided happened, and nothing else"
    for me, added, is_commit in run.promises:
        state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        assert any(
            (end.producer_id, end.producer_epoch, end.state) == (me.producer_id, me.producer_epoch, state)
            and added <= set(end.topic_partitions)
            for end in prepared
        ), (me, added, is_commit)
    assert len(set(run.given)) == len(run.given), "no two producers are the same"
    stored = replay_transactions(run.c.topic.log(0), 1 << 20).transactions
    for transactional_id in (ID, OTHER_ID):
        known = run.c.find(transactional_id)
        assert not isinstance(known, ErrorCode)
        if known is None or known.producer_epoch < 0:
            assert transactional_id not in stored
            continue
        assert (known.pending_state, known.state in PREPARED_STATES) == (None, False)
        start = known.txn_start_timestamp
        in_log = stored[known.transactional_id]
        if known.state is TransactionState.EMPTY:
            start = in_log.txn_start_timestamp  # memory keeps that of the transaction before, as Kafka does
        assert value(known)._replace(txn_start_timestamp=start) == in_log
