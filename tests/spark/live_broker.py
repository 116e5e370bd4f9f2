"""A running broker with groups that commit, for tests that read its offsets topic meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kohort.testing import Broker

PATIENCE_S = 60.0
TOPIC = "orders"
SETTINGS = {"offsets.topic.num.partitions": 5, "num.partitions": 2}


def commit(address: str, group: str, offset: int, partition: int = 0, topic: str = TOPIC) -> None:
    """An offset of a group without members."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
    try:
        consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
    finally:
        consumer.close()


class Transaction:
    """A producer that commits offsets of a group in a transaction, which it ends when it is told to."""

    def __init__(self, address: str, name: str) -> None:
        patient = {"transaction.timeout.ms": 900_000}
        self._producer = Producer({"bootstrap.servers": address, "transactional.id": name, **patient})
        self._producer.init_transactions(PATIENCE_S)
        self._consumer = Consumer({"bootstrap.servers": address, "group.id": name, "enable.auto.commit": False})

    def offer(self, offset: int, partition: int = 0) -> None:
        self._producer.begin_transaction()
        where = [TopicPartition(TOPIC, partition, offset)]
        metadata = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(where, metadata, PATIENCE_S)

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)

    def close(self) -> None:
        self._consumer.close()


def produce(address: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(count):
        producer.produce(TOPIC, f"record {number}".encode(), partition=partition)
    assert producer.flush(PATIENCE_S) == 0


def tell_story(address: str) -> list[Transaction]:
    """Commits, transactions committed, aborted and left open, a group that had members; the open one is given back."""
    produce(address, 30)
    for number in range(12):
        commit(address, f"group-{number % 4}", 10 + number, partition=number % 2)
    transactions = [Transaction(address, name) for name in ("kept", "dropped", "hanging")]
    for number, transaction in enumerate(transactions):
        transaction.offer(20 + number)
    transactions[0].commit()
    transactions[1].abort()
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    read = 0
    while read < 30:
        read += len(consumer.consume(30, 1.0))
    consumer.commit(asynchronous=False)
    consumer.close()
    for ended in transactions[:2]:
        ended.close()
    return transactions[2:]


@contextmanager
def committing(address: str, group: str) -> Iterator[None]:
    """A group that goes on committing until the end of the block."""
    over, begun = threading.Event(), threading.Event()

    def go_on() -> None:
        consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
        offset = 0
        while not over.is_set():
            offset += 1
            consumer.commit(offsets=[TopicPartition(TOPIC, 1, offset)], asynchronous=False)
            begun.set()
        consumer.close()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        assert begun.wait(PATIENCE_S)
        yield
    finally:
        over.set()
        thread.join()


def committed(address: str, group: str) -> dict[tuple[str, int], int]:
    """What a cluster answers."""
    admin = AdminClient({"bootstrap.servers": address})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    told = asked[group].result(PATIENCE_S)
    return {(found.topic, found.partition): found.offset for found in told.topic_partitions}


@contextmanager
def told_broker(data: str) -> Iterator[Broker]:
    """A broker that has lived through the story."""
    with Broker(data, settings=SETTINGS) as broker:
        open_ones = tell_story(broker.bootstrap_servers)
        try:
            yield broker
        finally:
            for transaction in open_ones:
                transaction.close()
