"""librdkafka's transactional producer: exactly once, with readers that see only what was committed."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.broker.running import Running, running

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings={"num.partitions": "2"}) as found:
        yield found


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


def transactional(broker: Running, transactional_id: str, **settings: Any) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.address, "transactional.id": transactional_id, "linger.ms": 0, **settings}
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def reader(broker: Running, group: str, topic: str, **settings: Any) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    return consumer


def values(consumer: Consumer, count: int) -> list[str]:
    """So many records, and no more that are there already."""
    found: list[Any] = []
    for _ in range(300):
        found += consumer.consume(100, 0.1)
        if len(found) >= count:
            break
    assert all(message.error() is None for message in found)
    return sorted(message.value().decode() for message in found)


def test_only_what_was_committed_is_read(broker: Running, name: str) -> None:
    producer = transactional(broker, name)
    for outcome in ("kept", "dropped", "kept too"):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(name, f"{outcome} {number}")
        if outcome == "dropped":
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)
    careful = reader(broker, f"{name}-careful", name)
    careless = reader(broker, f"{name}-careless", name, **{"isolation.level": "read_uncommitted"})
    assert values(careful, 10) == sorted(f"{kept} {n}" for kept in ("kept", "kept too") for n in range(5))
    assert len(values(careless, 15)) == 15
    for consumer in (careful, careless):
        consumer.close()


def test_an_open_transaction_holds_careful_readers_back(broker: Running, name: str) -> None:
    producer = transactional(broker, name)
    producer.begin_transaction()
    producer.produce(name, "soon", partition=0)
    producer.flush(PATIENCE_S)
    plain = Producer({"bootstrap.servers": broker.address})
    plain.produce(name, "behind it", partition=0)
    plain.flush(PATIENCE_S)
    consumer = reader(broker, f"{name}-group", name)
    low, high = consumer.get_watermark_offsets(TopicPartition(name, 0), PATIENCE_S)
    assert (low, high) == (0, 0)
    producer.commit_transaction(PATIENCE_S)
    assert values(consumer, 2) == ["behind it", "soon"]
    consumer.close()


def test_a_newer_producer_fences_the_older(broker: Running, name: str) -> None:
    old = transactional(broker, name)
    old.begin_transaction()
    old.produce(name, "of the old one")
    old.flush(PATIENCE_S)
    new = transactional(broker, name)
    new.begin_transaction()
    new.produce(name, "of the new one")
    new.commit_transaction(PATIENCE_S)
    with pytest.raises(KafkaException):
        old.commit_transaction(PATIENCE_S)
    consumer = reader(broker, f"{name}-group", name)
    assert values(consumer, 1) == ["of the new one"]
    consumer.close()


def consume_transform_produce(broker: Running, source: str, target: str, group: str, *, rounds: int) -> None:
    """Each record once more, with its offset in the same transaction; every other transaction is aborted and redone."""
    consumer = reader(broker, group, source)
    producer = transactional(broker, f"{group}-producer")
    done, number = 0, 0
    while done < rounds:
        batch = consumer.consume(3, 5.0)
        if not batch:
            continue
        number += 1
        producer.begin_transaction()
        for message in batch:
            producer.produce(target, f"seen {message.value().decode()}")
        offsets = {}
        for message in batch:
            offsets[message.partition()] = TopicPartition(source, message.partition(), message.offset() + 1)
        producer.send_offsets_to_transaction(list(offsets.values()), consumer.consumer_group_metadata(), PATIENCE_S)
        if number % 2:
            producer.abort_transaction(PATIENCE_S)
            first = {}
            for message in batch:
                first.setdefault(message.partition(), message.offset())
            for partition, offset in first.items():
                consumer.seek(TopicPartition(source, partition, offset))
        else:
            producer.commit_transaction(PATIENCE_S)
            done += len(batch)
    consumer.close()


def test_records_are_transformed_exactly_once(broker: Running, name: str) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(12):
        producer.produce(f"{name}-in", str(number), partition=number % 2)
    producer.flush(PATIENCE_S)
    consume_transform_produce(broker, f"{name}-in", f"{name}-out", name, rounds=12)
    check = reader(broker, f"{name}-check", f"{name}-out")
    assert values(check, 12) == sorted(f"seen {number}" for number in range(12))
    committed = check.committed([TopicPartition(f"{name}-in", 0)], PATIENCE_S)
    assert committed[0].offset < 0
    check.close()


def test_exactly_once_holds_over_a_restart_of_the_broker(tmp_path: Path) -> None:
    settings = {"num.partitions": "2"}
    with running(tmp_path / "data", settings) as broker:
        producer = Producer({"bootstrap.servers": broker.address})
        for number in range(12):
            producer.produce("in", str(number), partition=number % 2)
        producer.flush(PATIENCE_S)
        consume_transform_produce(broker, "in", "out", "g", rounds=6)
        left_open = transactional(broker, "left-open")
        left_open.begin_transaction()
        left_open.produce("out", "never committed")
        left_open.flush(PATIENCE_S)
    with running(tmp_path / "data", settings) as broker:
        again = transactional(broker, "left-open")
        again.begin_transaction()
        again.abort_transaction(PATIENCE_S)
        consume_transform_produce(broker, "in", "out", "g", rounds=6)
        check = reader(broker, "check", "out")
        assert values(check, 12) == sorted(f"seen {number}" for number in range(12))
        check.close()
