"""An unmodified client, end to end: aiokafka writes, reads in a group, commits, and goes on where it was."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from tests.broker.data_plane import make_topic
from tests.broker.running import Running, running

TOPIC = "events"
GROUP = "readers"
PATIENCE_S = 30.0


def run(step: Callable[[], Awaitable[None]]) -> None:
    async def within_time() -> None:
        await asyncio.wait_for(step(), PATIENCE_S)

    asyncio.run(within_time())


async def write(broker: Running, *texts: str, topic: str = TOPIC, **settings: object) -> list[int]:
    """The offset of each text, all of them in partition 0."""
    async with AIOKafkaProducer(bootstrap_servers=broker.address, **settings) as producer:
        return [(await producer.send_and_wait(topic, text.encode(), partition=0)).offset for text in texts]


def reader(broker: Running, *topics: str, **settings: object) -> AIOKafkaConsumer:
    wanted = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 50, **settings}
    return AIOKafkaConsumer(*topics, bootstrap_servers=broker.address, **wanted)


async def read(consumer: AIOKafkaConsumer, count: int) -> list[str]:
    return [(await consumer.getone()).value.decode() for _ in range(count)]


@pytest.mark.parametrize("settings", [{"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}])
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read(settings: dict[str, object], codec: str | None) -> None:
    with running() as broker:

        async def story() -> None:
            make_topic(broker, TOPIC)
            texts = [f"text {number} " * 20 for number in range(5)]
            async with AIOKafkaProducer(
                bootstrap_servers=broker.address, compression_type=codec, **settings
            ) as producer:
                for text in texts:
                    await (await producer.send(TOPIC, text.encode()))
            async with reader(broker, TOPIC) as consumer:
                assert await read(consumer, 5) == texts

        run(story)


def test_a_topic_is_made_when_somebody_writes_to_it() -> None:
    with running() as broker:

        async def story() -> None:
            assert await write(broker, "a", "b") == [0, 1]

        run(story)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_group_goes_on_where_it_committed(tmp_path: Path, on_disk: bool) -> None:
    with running(tmp_path if on_disk else None) as broker:

        async def story() -> None:
            await write(broker, *"abcde")
            async with reader(broker, TOPIC, group_id=GROUP) as consumer:
                assert await read(consumer, 3) == ["a", "b", "c"]
                await consumer.commit({TopicPartition(TOPIC, 0): 3})
                assert await consumer.committed(TopicPartition(TOPIC, 0)) == 3
            async with reader(broker, TOPIC, group_id=GROUP) as consumer:
                assert await read(consumer, 2) == ["d", "e"]

        run(story)


def test_a_group_goes_on_where_it_committed_after_the_broker_came_back(tmp_path: Path) -> None:
    with running(tmp_path) as broker:

        async def before() -> None:
            await write(broker, *"abc", enable_idempotence=True)
            async with reader(broker, TOPIC, group_id=GROUP) as consumer:
                assert await read(consumer, 2) == ["a", "b"]
                await consumer.commit({TopicPartition(TOPIC, 0): 2})

        run(before)

    with running(tmp_path) as broker:

        async def afterwards() -> None:
            assert await write(broker, "d", enable_idempotence=True) == [3]
            async with reader(broker, TOPIC, group_id=GROUP) as consumer:
                assert await read(consumer, 2) == ["c", "d"]

        run(afterwards)


def test_two_members_of_a_group_share_the_partitions() -> None:
    with running() as broker:

        async def story() -> None:
            make_topic(broker, TOPIC, 4)
            async with reader(broker, TOPIC, group_id=GROUP) as first:
                assert len(first.assignment()) == 4
                async with reader(broker, TOPIC, group_id=GROUP) as second:
                    while len(first.assignment()) != 2:
                        await first.getmany(timeout_ms=10)
                    assert len(second.assignment()) == 2
                    assert not first.assignment() & second.assignment()
                while len(first.assignment()) != 4:
                    await first.getmany(timeout_ms=10)

        run(story)


def test_a_reader_that_waits_gets_what_is_written_meanwhile(tmp_path: Path) -> None:
    with running(tmp_path) as broker:

        async def story() -> None:
            make_topic(broker, TOPIC)
            async with reader(broker, TOPIC, fetch_max_wait_ms=20_000) as consumer:
                waiting = asyncio.ensure_future(consumer.getone())
                while not broker.on_loop(lambda: len(broker.broker.long_polls.waiting)):
                    await asyncio.sleep(0)
                await write(broker, "news")
                assert (await waiting).value == b"news"

        run(story)


def test_offsets_are_found_by_time_and_at_both_ends() -> None:
    with running() as broker:

        async def story() -> None:
            make_topic(broker, TOPIC)
            partition = TopicPartition(TOPIC, 0)
            async with AIOKafkaProducer(bootstrap_servers=broker.address) as producer:
                for number in range(4):
                    await producer.send_and_wait(TOPIC, b"x", timestamp_ms=1_000 * (number + 1))
            async with reader(broker) as consumer:
                consumer.assign([partition])
                assert await consumer.beginning_offsets([partition]) == {partition: 0}
                assert await consumer.end_offsets([partition]) == {partition: 4}
                found = (await consumer.offsets_for_times({partition: 2_500}))[partition]
                assert (found.offset, found.timestamp) == (2, 3_000)
                assert await consumer.offsets_for_times({partition: 9_000}) == {partition: None}

        run(story)


def test_an_offset_that_is_not_there_is_told_to_who_wants_to_know() -> None:
    with running() as broker:

        async def story() -> None:
            await write(broker, "a")
            async with reader(broker, auto_offset_reset="none") as consumer:
                partition = TopicPartition(TOPIC, 0)
                consumer.assign([partition])
                consumer.seek(partition, 99)
                with pytest.raises(OffsetOutOfRangeError):
                    await consumer.getone()

        run(story)
