"""Batches get into a log once, whatever becomes of the answers."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from kohort.admin.cluster import Cluster, ClusterFailed
from kohort.migration.packing import Outgoing, Packer
from kohort.migration.reading import Refused
from kohort.migration.source import Fate, SourceBatch
from kohort.migration.writer import Writer
from kohort.records.batch import Record, RecordBatch, read_header
from kohort.testing import Broker
from tests.migration.random_logs import NOW_MS
from tests.migration.scenes import TOPIC, read_all

COUNT = 20


def outgoing(first: int = 0, count: int = COUNT, mark: bytes = b"v") -> list[Outgoing]:
    """One record in each batch."""
    packer, found = Packer(first), list[Outgoing]()
    for number in range(first, first + count):
        batch = RecordBatch.build([Record(number, NOW_MS, None, b"%s%d" % (mark, number))])
        data = batch.encode()
        found += packer.add(SourceBatch(read_header(data), data, Fate.DATA), batch.records)
        found += packer.flush()
    return found


@contextmanager
def broker_and_writer(patience_s: float = 30.0) -> Iterator[tuple[Broker, Writer]]:
    with Broker() as broker:
        broker.create_topic(TOPIC, settings={"retention.ms": -1})
        with Cluster(broker.bootstrap_servers, patience_s=patience_s) as cluster:
            yield broker, Writer(cluster, (TOPIC, 0))


def write(writer: Writer, batches: list[Outgoing]) -> None:
    for batch in batches:
        writer.put(batch)


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in read_all(broker)]


WANTED = [b"v%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("skipped", [0, 1, 7])
def test_a_lost_answer_neither_loses_nor_doubles_a_batch(applied: bool, skipped: int) -> None:
    with broker_and_writer() as (broker, writer):
        left = iter(range(skipped))
        broker.drop_next("Produce", applied=applied, times=2, when=lambda _: next(left, None) is None)
        write(writer, outgoing())
        assert values(broker) == WANTED


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"])
@pytest.mark.parametrize("applied", [True, False])
def test_a_refusal_that_passes_is_waited_for(error: str, applied: bool) -> None:
    with broker_and_writer() as (broker, writer):
        left = iter(range(3))
        broker.fail_next("Produce", error, applied=applied, when=lambda _: next(left, None) is None)
        write(writer, outgoing())
        assert values(broker) == WANTED


def test_a_broker_that_starts_again_has_forgotten_us_and_gets_the_batch_that_is_next() -> None:
    """The records are old, and so is what it knows of their producer: it would take the second for the first."""
    with broker_and_writer() as (broker, writer):
        for batch in outgoing()[:10]:
            writer.put(batch)
        broker.restart()
        write(writer, outgoing()[10:])
        assert values(broker) == WANTED


def test_a_batch_that_comes_late_from_one_who_was_killed_is_not_taken_twice() -> None:
    with broker_and_writer() as (broker, writer), broker_writer(broker) as killed:
        fault = broker.hold_next("Produce", times=None)
        with pytest.raises(ClusterFailed, match="does not answer"):
            write(killed, outgoing(count=1))
        fault.cancel()
        write(writer, outgoing(count=10))
        fault.release()
        write(writer, outgoing(10, COUNT - 10))
        assert values(broker) == WANTED


@contextmanager
def broker_writer(broker: Broker) -> Iterator[Writer]:
    """One that is soon out of patience, and gone."""
    with Cluster(broker.bootstrap_servers, patience_s=0.2) as cluster:
        yield Writer(cluster, (TOPIC, 0))


def test_another_refusal_is_told() -> None:
    with broker_and_writer() as (broker, writer):
        broker.fail_next("Produce", "TOPIC_AUTHORIZATION_FAILED")
        with pytest.raises(Refused, match="TOPIC_AUTHORIZATION_FAILED"):
            write(writer, outgoing())


def test_who_writes_to_the_copy_meanwhile_is_noticed() -> None:
    with broker_and_writer(patience_s=1.0) as (broker, writer):
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(TOPIC, b"stranger")
        assert producer.flush() == 0
        with pytest.raises(Refused, match="somebody else writes to it"):
            write(writer, outgoing(count=3))


def test_two_who_copy_at_once_make_one_copy() -> None:
    with broker_and_writer() as (broker, writer), Cluster(broker.bootstrap_servers) as cluster:
        other = Writer(cluster, (TOPIC, 0))
        for batch in outgoing():
            writer.put(batch)
            other.put(batch)
        assert values(broker) == WANTED
