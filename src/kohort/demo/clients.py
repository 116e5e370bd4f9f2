"""The clients of the shop: aiokafka, as a program would use it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition

ORDERS, RECEIPTS = "orders", "receipts"
SESSION_MS = 10 * 60_000
"""A member that is silent for so long is gone. On a clock that goes by minutes, 45 s would be over at once."""

HEARTBEAT_MS = 100
"""On the machine's clock."""

_HOUR_MS = 3_600_000
_TRANSACTION_MS = 15 * 60_000


class Reader(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """A consumer of orders: one member of a group."""

    def __init__(self, servers: str, group: str, name: str, *, is_static: bool = False) -> None:
        self.group, self.name, self.is_static = group, name, is_static
        self._servers = servers
        self.is_given = asyncio.Event()
        """Set when it is told its partitions; whoever waits for that clears it before."""
        self.consumer = self._new_consumer()

    def _new_consumer(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            group_id=self.group,
            client_id=self.name,
            group_instance_id=self.name if self.is_static else None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            # These are the client's own, on the machine's clock: how soon it hears of a rebalance, and what it takes
            # for dead. The shop's clock may stand still for longer than a client usually waits for an answer.
            heartbeat_interval_ms=HEARTBEAT_MS,
            retry_backoff_ms=HEARTBEAT_MS // 2,
            max_poll_interval_ms=_HOUR_MS,
            request_timeout_ms=_HOUR_MS,
        )
        consumer.subscribe([ORDERS], listener=self)
        return consumer

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Everything that was read is committed already."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:  # noqa: ARG002
        self.is_given.set()

    async def join(self) -> None:
        """Returns when it has its partitions."""
        await self.consumer.start()

    async def leave(self) -> None:
        """It says goodbye to its group, unless it is static."""
        await self.consumer.stop()

    async def restart(self) -> None:
        """Its process ends and a new one begins."""
        await self.leave()
        self.consumer = self._new_consumer()
        await self.join()

    async def read(self, ends: Sequence[int], at_most: int | None = None) -> dict[TopicPartition, int]:
        """Read its partitions to their ends, or so many messages of each; returns where it stands then."""
        places, left = {}, {}
        for partition in self.consumer.assignment():
            start = await self.consumer.position(partition)
            wanted = ends[partition.partition] - start
            wanted = wanted if at_most is None else min(wanted, at_most)
            places[partition] = start + wanted
            left[partition] = wanted
        while left := {partition: count for partition, count in left.items() if count}:
            # All at once: aiokafka does not fetch for a while as long as it has anything that nobody takes.
            got = await self.consumer.getmany(*left, timeout_ms=1_000, max_records=min(left.values()))
            for partition, messages in got.items():
                left[partition] -= len(messages)
        return places

    async def work(self, ends: Sequence[int], at_most: int | None = None) -> None:
        """Read and commit."""
        if places := await self.read(ends, at_most):
            await self.consumer.commit(places)


class Ledger:
    """Reads orders, writes receipts, and commits both in one transaction: exactly once."""

    def __init__(self, servers: str, reader: Reader, now_ms: Callable[[], int]) -> None:
        self.reader = reader
        self._now_ms = now_ms
        self._producer = AIOKafkaProducer(
            bootstrap_servers=servers,
            client_id=reader.name,
            transactional_id=reader.name,
            transaction_timeout_ms=_TRANSACTION_MS,
            request_timeout_ms=_HOUR_MS,
        )

    async def open(self) -> None:
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.stop()

    async def book(self, ends: Sequence[int], end: Literal["commit", "abort", "none"] = "commit") -> None:
        """One transaction. What it has read before an abort it reads again the next time."""
        consumer = self.reader.consumer
        before = {partition: await consumer.position(partition) for partition in consumer.assignment()}
        await self._producer.begin_transaction()
        places = await self.reader.read(ends)
        for partition, place in places.items():
            receipt = f"{partition.topic}-{partition.partition} up to {place}".encode()
            await self._producer.send_and_wait(RECEIPTS, receipt, timestamp_ms=self._now_ms())
        await self._producer.send_offsets_to_transaction(places, self.reader.group)
        if end == "commit":
            await self._producer.commit_transaction()
        elif end == "abort":
            await self._producer.abort_transaction()
            for partition, place in before.items():
                consumer.seek(partition, place)
