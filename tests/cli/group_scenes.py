"""A broker with groups of real clients, and the command run against it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition

from kohort.cli.groups import groups
from kohort.testing import Broker
from tests.broker.group_clients import commit as send_commit
from tests.broker.group_clients import find_coordinator
from tests.broker.wire_client import WireClient

PATIENCE_S = 600.0
JOIN_GROUP, SYNC_GROUP = 11, 14
TOPIC = "orders"
HOSTILE = [
    "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>",
    'a,b"c',
    "red\x1b[31m\x1b]0;title\x07",
    "right\u202eleft",
    "nul\0and\ttab",
    "группа-消费者组-🦊",
    "two\nlines",
    "x" * 32_000,
]


@contextmanager
def told_broker() -> Iterator[Broker]:
    """Three partitions with 30, 7 and 0 records, a second topic with none."""
    with Broker() as broker:
        broker.create_topic(TOPIC, 3)
        broker.create_topic("payments", 1)
        produce(broker, 30, 0)
        produce(broker, 7, 1)
        yield broker


def produce(broker: Broker, count: int, partition: int, timestamp: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(TOPIC, f"record {number}".encode(), partition=partition, timestamp=timestamp)
    assert producer.flush(PATIENCE_S) == 0


def commit(broker: Broker, group: str, offsets: dict[int, int], metadata: str = "", topic: str = TOPIC) -> None:
    """Offsets of a group without members."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "enable.auto.commit": False})
    try:
        wanted = [TopicPartition(topic, partition, offset, metadata) for partition, offset in offsets.items()]
        consumer.commit(offsets=wanted, asynchronous=False)
    finally:
        consumer.close()


def commit_as_is(broker: Broker, group: str, offset: int) -> None:
    """A name that no text in C can hold is sent as it is."""
    with WireClient(broker.port) as client:
        find_coordinator(client, group)
        assert send_commit(client, group, TOPIC, {0: offset}) == 0


@contextmanager
def member(broker: Broker, group: str, client_id: str, **settings: Any) -> Iterator[Consumer]:
    """The only member of a group, with everything assigned."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "client.id": client_id,
            "enable.auto.commit": False,
            **settings,
        }
    )
    try:
        consumer.subscribe([TOPIC])
        while not consumer.assignment():
            consumer.poll(0.1)
        broker.wait_for_group(group, state="Stable", members=1)
        yield consumer
    finally:
        consumer.close()


@contextmanager
def opaque_member(broker: Broker, group: str, protocol_type: str) -> Iterator[None]:
    """The only member of a group of whatever kind, which nobody but its like can read."""
    with WireClient(broker.port) as client:
        find_coordinator(client, group)
        joined = client.ask(
            JOIN_GROUP,
            2,
            group_id=group,
            session_timeout=60_000,
            rebalance_timeout=60_000,
            member_id="",
            protocol_type=protocol_type,
            protocols=[{"name": "sessioned", "metadata": b"\xff"}],
        )
        me = {"member_id": joined.member_id, "assignment": b"\xff\xff"}
        synced = client.ask(
            SYNC_GROUP,
            1,
            group_id=group,
            generation_id=joined.generation_id,
            assignments=[me],
            member_id=me["member_id"],
        )
        assert (joined.error_code, synced.error_code) == (0, 0)
        yield


def run(broker: Broker, command: str, *arguments: str, **more: Any) -> Result:
    """`kohort groups COMMAND`; an error that people would see as a line is raised as it is."""
    given = [command, "--bootstrap", broker.bootstrap_servers, *arguments]
    return CliRunner().invoke(groups, given, **more)


def told(broker: Broker, command: str, *arguments: str) -> Any:
    done = run(broker, command, *arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def offsets_of(broker: Broker, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    """What the broker has in mind."""
    found = broker.groups().get(group)
    if found is None:
        return {}
    return {(key.topic, key.partition): (value.offset, value.metadata) for key, value in found.offsets.items()}


def rows(text: str) -> list[list[str]]:
    """A table's lines as words, the heading first."""
    return [line.split() for line in text.splitlines() if line.strip()]
