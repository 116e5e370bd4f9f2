"""kafka-python against a broker that it has no reason to suspect."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

from tests.broker.running import Running, running

PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings={"num.partitions": "4"}) as found:
        yield found


@pytest.fixture
def topic(broker: Running) -> str:
    """A topic of 4 partitions with 10 records in each."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    producer = KafkaProducer(bootstrap_servers=broker.address)
    sent = [
        producer.send(name, f"{partition}-{number}".encode(), partition=partition)
        for number in range(10)
        for partition in range(4)
    ]
    assert [future.get(30).offset for future in sent] == [number for number in range(10) for _ in range(4)]
    producer.close()
    return name


def consumer(broker: Running, group: str | None, *topics: str, **settings: Any) -> KafkaConsumer:
    return KafkaConsumer(
        *topics,
        bootstrap_servers=broker.address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=PATIENCE_MS,
        **settings,
    )


def values(reader: KafkaConsumer, count: int) -> set[str]:
    return {next(reader).value.decode() for _ in range(count)}


def test_a_group_reads_commits_and_goes_on_where_it_was(broker: Running, topic: str) -> None:
    first = consumer(broker, f"{topic}-group", topic)
    assert len(values(first, 40)) == 40
    first.commit()
    first.close()
    producer = KafkaProducer(bootstrap_servers=broker.address)
    producer.send(topic, b"one more", partition=3).get(30)
    producer.close()
    second = consumer(broker, f"{topic}-group", topic)
    assert values(second, 1) == {"one more"}
    assert second.committed(TopicPartition(topic, 0)) == 10
    second.close()


def test_offsets_carry_metadata_and_a_seek_goes_back(broker: Running, topic: str) -> None:
    simple = consumer(broker, f"{topic}-group")
    partition = TopicPartition(topic, 2)
    simple.assign([partition])
    simple.commit({partition: OffsetAndMetadata(4, "a note", -1)})
    committed = simple.committed(partition, metadata=True)
    assert (committed.offset, committed.metadata) == (4, "a note")
    simple.seek(partition, 7)
    assert values(simple, 3) == {"2-7", "2-8", "2-9"}
    assert simple.end_offsets([partition]) == {partition: 10}
    assert simple.beginning_offsets([partition]) == {partition: 0}
    simple.close()


def test_groups_are_listed_and_described(broker: Running, topic: str) -> None:
    group = f"{topic}-group"
    member = consumer(broker, group, topic)
    values(member, 40)
    member.commit()
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    assert topic in admin.list_topics()
    offsets = admin.list_group_offsets(group)[group]
    assert {found.partition: told.offset for found, told in offsets.items()} == dict.fromkeys(range(4), 10)
    assert group in {found["group_id"] for found in admin.list_groups()}
    (described,) = admin.describe_groups([group]).values()
    assert described["group_state"] == "Stable"
    member.close()
    admin.delete_groups([group])
    assert group not in {found["group_id"] for found in admin.list_groups()}
    admin.close()
