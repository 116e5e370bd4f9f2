"""Unmodified clients and the things that a test does to their broker."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import OffsetMetadataTooLargeError
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

from kohort.testing import Broker
from tests.testing.members import GROUP, TOPIC

PATIENCE_S = 60.0


def run(step: Callable[[], Awaitable[None]]) -> None:
    async def within_time() -> None:
        await asyncio.wait_for(step(), PATIENCE_S)

    asyncio.run(within_time())


def aio_reader(broker: Broker, **settings: object) -> AIOKafkaConsumer:
    wanted = {
        "group_id": GROUP,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 50,
        "retry_backoff_ms": 10,
        **settings,
    }
    return AIOKafkaConsumer(TOPIC, bootstrap_servers=broker.bootstrap_servers, **wanted)


def write(broker: Broker, *texts: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for text in texts:
        producer.produce(TOPIC, text.encode())
    assert producer.flush(PATIENCE_S) == 0


def librdkafka_reader(broker: Broker, **settings: object) -> Consumer:
    wanted = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 50,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 100,
        **settings,
    }
    consumer = Consumer(wanted)
    consumer.subscribe([TOPIC])
    return consumer


def read(consumer: Consumer, count: int) -> list[str]:
    """Errors on the way are librdkafka's to overcome."""
    texts: list[str] = []
    while len(texts) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        if message.error() is None:
            texts.append(message.value().decode())
    return texts


@pytest.mark.parametrize("cleanly", [True, False], ids=["restarted", "killed"])
def test_librdkafka_goes_on_after_the_broker_was_gone(cleanly: bool) -> None:
    with Broker() as broker:
        write(broker, "a", "b")
        consumer = librdkafka_reader(broker)
        assert read(consumer, 2) == ["a", "b"]
        consumer.commit(asynchronous=False)
        if not cleanly:
            broker.kill()
        broker.restart()
        write(broker, "c")
        assert read(consumer, 1) == ["c"]
        consumer.close()
        assert broker.groups()[GROUP].offsets[TOPIC, 0].offset == 2


def test_librdkafka_hears_why_a_commit_failed() -> None:
    with Broker() as broker:
        write(broker, "a")
        consumer = librdkafka_reader(broker)
        read(consumer, 1)
        broker.fail_next("OffsetCommit", "OFFSET_METADATA_TOO_LARGE")
        offsets = [ConfluentPartition(TOPIC, 0, 1)]
        with pytest.raises(KafkaException, match="OFFSET_METADATA_TOO_LARGE"):
            consumer.commit(offsets=offsets, asynchronous=False)
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        assert broker.groups()[GROUP].offsets[TOPIC, 0].offset == 1


def test_librdkafka_writes_once_although_an_answer_was_lost() -> None:
    with Broker() as broker:
        write(broker, "a")
        lost = broker.drop_next("Produce", applied=True)
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "retry.backoff.ms": 10}
        )
        producer.produce(TOPIC, b"b")
        assert producer.flush(PATIENCE_S) == 0
        assert lost.taken == 1
        write(broker, "c")
        consumer = librdkafka_reader(broker)
        assert read(consumer, 3) == ["a", "b", "c"]
        consumer.close()


def test_librdkafka_finds_its_coordinator_again_when_it_has_moved() -> None:
    with Broker() as broker:
        write(broker, "a")
        consumer = librdkafka_reader(broker)
        read(consumer, 1)
        with broker.move_coordinator(GROUP), broker.fail_next("Heartbeat", "NOT_COORDINATOR") as noticed:
            noticed.wait()
        consumer.commit(offsets=[ConfluentPartition(TOPIC, 0, 1)], asynchronous=False)
        assert broker.groups()[GROUP].offsets[TOPIC, 0].offset == 1
        consumer.close()


def test_aiokafka_joins_again_when_its_session_has_run_out() -> None:
    with Broker(clock="virtual") as broker:

        async def story() -> None:
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                await producer.send_and_wait(TOPIC, b"a")
            async with aio_reader(broker, session_timeout_ms=10_000) as consumer:
                assert (await consumer.getone()).value == b"a"
                before = broker.groups()[GROUP]
                with broker.hold_next("Heartbeat", times=None) as silence:
                    await asyncio.to_thread(silence.wait)
                    broker.clock.advance(10_000)
                    assert broker.groups()[GROUP].members == ()
                after = await asyncio.to_thread(broker.wait_for_group, GROUP, members=1)
                assert after.generation > before.generation
                assert after.members[0].member_id != before.members[0].member_id

        run(story)


def test_aiokafka_hears_why_a_commit_failed() -> None:
    with Broker() as broker:

        async def story() -> None:
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                await producer.send_and_wait(TOPIC, b"a")
            async with aio_reader(broker) as consumer:
                await consumer.getone()
                broker.fail_next("OffsetCommit", "OFFSET_METADATA_TOO_LARGE")
                with pytest.raises(OffsetMetadataTooLargeError):
                    await consumer.commit({TopicPartition(TOPIC, 0): 1})

        run(story)
