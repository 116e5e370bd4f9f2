"""confluent-kafka, which is librdkafka, against a broker that it has no reason to suspect."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.broker.running import Running, running

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def topic(broker: Running) -> str:
    """A topic of 4 partitions with 10 records in each."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.create_topics([NewTopic(name, 4, 1)]).values():
        future.result(PATIENCE_S)
    produce(broker, name, 10)
    return name


def produce(broker: Running, topic: str, records: int, **settings: Any) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": broker.address, **settings})
    for number in range(records):
        for partition in range(4):
            producer.produce(
                topic,
                f"{partition}-{number}",
                key=str(number),
                partition=partition,
                on_delivery=lambda error, _: errors.append(error),
            )
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * (4 * records)


def consumer(broker: Running, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            "enable.auto.commit": False,
            **settings,
        }
    )


def poll_until(is_enough: Callable[[], bool], *consumers: Consumer) -> list[Any]:
    """Records, until there is enough of what is waited for."""
    found = []
    for _ in range(int(PATIENCE_S * 20)):
        if is_enough():
            return found
        for each in consumers:
            message = each.poll(0.05)
            if message is not None:
                assert message.error() is None, message.error()
                found.append(message)
    raise AssertionError(f"not enough after {PATIENCE_S} s: {len(found)} records")


def read(count: int, *consumers: Consumer) -> set[str]:
    found: list[Any] = []
    while len(found) < count:
        before = len(found)
        for each in consumers:
            found += each.consume(count - len(found), 0.2)
        assert len(found) > before or not found or consumers
    assert all(message.error() is None for message in found)
    return {message.value().decode() for message in found}


def test_a_group_reads_commits_and_goes_on_where_it_was(broker: Running, topic: str) -> None:
    group = f"{topic}-group"
    first = consumer(broker, group)
    first.subscribe([topic])
    assert len(read(40, first)) == 40
    first.commit(asynchronous=False)
    first.close()
    produce(broker, topic, 1)
    second = consumer(broker, group)
    second.subscribe([topic])
    assert read(4, second) == {f"{partition}-0" for partition in range(4)}
    committed = second.committed([TopicPartition(topic, partition) for partition in range(4)], PATIENCE_S)
    assert [partition.offset for partition in committed] == [10] * 4
    second.close()


def test_partitions_are_shared_and_taken_over(broker: Running, topic: str) -> None:
    group = f"{topic}-group"
    one, two = consumer(broker, group), consumer(broker, group)
    one.subscribe([topic])
    poll_until(lambda: len(one.assignment()) == 4, one)
    two.subscribe([topic])
    poll_until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
    owned = [(p.topic, p.partition) for each in (one, two) for p in each.assignment()]
    assert sorted(owned) == [(topic, partition) for partition in range(4)]
    one.close()
    poll_until(lambda: len(two.assignment()) == 4, two)
    two.close()


def test_cooperative_members_share_without_a_halt(broker: Running, topic: str) -> None:
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    one, two = consumer(broker, f"{topic}-group", **settings), consumer(broker, f"{topic}-group", **settings)
    one.subscribe([topic])
    poll_until(lambda: len(one.assignment()) == 4, one)
    two.subscribe([topic])
    poll_until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
    two.close()
    poll_until(lambda: len(one.assignment()) == 4, one)
    one.close()


def test_a_static_member_that_restarts_causes_no_rebalance(broker: Running, topic: str) -> None:
    group = f"{topic}-group"
    one = consumer(broker, group, **{"group.instance.id": "one"})
    two = consumer(broker, group, **{"group.instance.id": "two"})
    for each in (one, two):
        each.subscribe([topic])
    poll_until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
    before = broker.on_loop(lambda: broker.broker.groups.manager.get_group(group).generation_id)
    owned = {p.partition for p in two.assignment()}
    two.close()
    again = consumer(broker, group, **{"group.instance.id": "two"})
    again.subscribe([topic])
    poll_until(lambda: len(again.assignment()) == 2, one, again)
    assert {p.partition for p in again.assignment()} == owned
    assert broker.on_loop(lambda: broker.broker.groups.manager.get_group(group).generation_id) == before
    for each in (one, again):
        each.close()


def test_metadata_of_a_commit_comes_back(broker: Running, topic: str) -> None:
    simple = consumer(broker, f"{topic}-group")
    wanted = TopicPartition(topic, 2, 7, metadata="wörtlich", leader_epoch=0)
    simple.commit(offsets=[wanted], asynchronous=False)
    (found,) = simple.committed([TopicPartition(topic, 2)], PATIENCE_S)
    assert (found.offset, found.metadata) == (7, "wörtlich")
    simple.close()


def test_a_pattern_finds_topics_and_a_seek_goes_back(broker: Running, topic: str) -> None:
    reader = consumer(broker, f"{topic}-group")
    reader.subscribe([f"^{topic[:-1]}."])
    assert len(read(40, reader)) == 40
    reader.seek(TopicPartition(topic, 1, 5))
    assert read(5, reader) == {f"1-{number}" for number in range(5, 10)}
    low, high = reader.get_watermark_offsets(TopicPartition(topic, 1), PATIENCE_S)
    assert (low, high) == (0, 10)
    reader.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_of_an_idempotent_producer_arrive(broker: Running, topic: str, codec: str) -> None:
    produce(broker, topic, 5, **{"compression.type": codec, "enable.idempotence": True, "linger.ms": 5})
    reader = consumer(broker, f"{topic}-{codec}")
    reader.subscribe([topic])
    assert len(read(60, reader)) == 40
    reader.close()


def test_groups_are_listed_described_changed_and_deleted(broker: Running, topic: str) -> None:
    group = f"{topic}-group"
    admin = AdminClient({"bootstrap.servers": broker.address})
    member = consumer(broker, group)
    member.subscribe([topic])
    read(40, member)
    member.commit(asynchronous=False)
    listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(PATIENCE_S)
    assert group in {found.group_id for found in listed.valid}
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    assert described.state is ConsumerGroupState.STABLE
    assert len(described.members[0].assignment.topic_partitions) == 4
    with pytest.raises(KafkaException):
        admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    member.close()
    changed = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([changed])[group].result(PATIENCE_S)
    told = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE_S)
    assert {p.partition: p.offset for p in told.topic_partitions} == {0: 3, 1: 10, 2: 10, 3: 10}
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert group not in {found.group_id for found in listed.valid}


def test_topics_grow_and_go(broker: Running, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(PATIENCE_S)
    assert len(admin.list_topics(topic, PATIENCE_S).topics[topic].partitions) == 6
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    assert topic not in admin.list_topics(timeout=PATIENCE_S).topics
