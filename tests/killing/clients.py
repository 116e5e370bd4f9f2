"""Clients of librdkafka that commit as fast as they can and write down what they heard."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.killing.place import PARTITIONS, TOPIC
from tests.simulation.ledger import Key, Ledger, Outcome, Read, Write

_PATIENCE_S = 5.0
_SETTINGS = {
    "socket.timeout.ms": 3000,
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,
    # When its only broker is gone librdkafka begins from the start, and then waits without end for a coordinator that
    # it knew before.
    "metadata.recovery.strategy": "none",
}


class Clients:
    """Everybody, in threads, until they are told to end."""

    def __init__(self, address: str, ledger: Ledger, committers: int, transactors: int) -> None:
        self._address, self._ledger = address, ledger
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._offsets: Iterator[int] = count(1)
        self.errors: list[BaseException] = []
        jobs: list[tuple[Callable[[str], None], str]] = [(self._commit, f"c-{n}") for n in range(committers)]
        jobs += [(self._transact, f"t-{n}") for n in range(transactors)]
        self.groups = [group for _, group in jobs]
        self._threads = [threading.Thread(target=self._guarded, args=job, name=job[1], daemon=True) for job in jobs]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def abandon(self) -> None:
        """Tell them to end, but wait for nobody."""
        self._over.set()

    def _guarded(self, job: Callable[[str], None], group: str) -> None:
        try:
            job(group)
        except BaseException as error:  # noqa: BLE001 - the test hears of it, whatever it is
            self.errors.append(error)

    def _begin(self, group: str, partitions: range) -> Write:
        with self._lock:
            offsets: dict[Key, int] = {(group, partition): next(self._offsets) for partition in partitions}
            return self._ledger.write(offsets, time.monotonic())

    def consumer(self, group: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": group,
                "enable.auto.commit": False,
                **_SETTINGS,
            }
        )

    def _commit(self, group: str) -> None:
        consumer = self.consumer(group)
        turn = 0
        while not self._over.is_set():
            turn += 1
            write = self._begin(group, range(turn % PARTITIONS + 1))
            try:
                answered = consumer.commit(offsets=positions(write), asynchronous=False)
            except KafkaException:
                continue  # nobody knows
            if all(one.error is None for one in answered):
                write.end(time.monotonic(), Outcome.OK)
            if turn % 10 == 0:
                self.look(consumer, group)
        consumer.close()

    def look(self, consumer: Consumer, group: str) -> bool:
        """Read every offset of a group; whether there was an answer."""
        began = time.monotonic()
        try:
            found = consumer.committed(
                [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)], _PATIENCE_S
            )
        except KafkaException:
            return False
        now = time.monotonic()
        with self._lock:
            for one in found:
                if one.error is None:
                    offset = one.offset if one.offset >= 0 else None
                    self._ledger.reads.append(Read((group, one.partition), offset, began, now))
        return all(one.error is None for one in found)

    def _transact(self, group: str) -> None:
        consumer = self.consumer(group)
        producer: Producer | None = None
        turn = 0
        while not self._over.is_set():
            turn += 1
            try:
                producer = producer or self._producer(group)
                if not self._transaction(producer, consumer, group, is_commit=turn % 3 != 0):
                    producer = None
            except KafkaException:
                producer = None
        consumer.close()

    def _producer(self, group: str) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._address,
                "transactional.id": group,
                "transaction.timeout.ms": 10_000,
                **_SETTINGS,
            }
        )
        producer.init_transactions(_PATIENCE_S)
        return producer

    def _transaction(self, producer: Producer, consumer: Consumer, group: str, *, is_commit: bool) -> bool:
        """One transaction; whether the producer is good for another."""
        producer.begin_transaction()
        write = self._begin(group, range(2))
        write.outcome = Outcome.FAILED  # until somebody asks for its commit
        producer.send_offsets_to_transaction(positions(write), consumer.consumer_group_metadata(), _PATIENCE_S)
        if not is_commit:
            producer.abort_transaction(_PATIENCE_S)
            return True
        write.outcome = Outcome.UNKNOWN
        producer.commit_transaction(_PATIENCE_S)
        return True


def positions(write: Write) -> list[TopicPartition]:
    return [TopicPartition(TOPIC, partition, offset) for (_, partition), offset in write.offsets.items()]
