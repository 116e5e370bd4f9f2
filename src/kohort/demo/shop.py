"""The shop: orders that come in, groups that read them, and a clock that can be wound."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime

from aiokafka import AIOKafkaProducer

from kohort.demo.clients import HEARTBEAT_MS, ORDERS, RECEIPTS, Ledger, Reader
from kohort.errors import KohortError
from kohort.testing import Broker, Group
from kohort.testing.life import Settings

PARTITIONS = 6
RETENTION_MINUTES = 60
SETTINGS: Settings = {
    # Kafka's own default; `kohort serve` syncs before it answers.
    "log.flush.mode": "os",
    # So that members that start together are one generation, as they are in Kafka.
    "group.initial.rebalance.delay.ms": 3_000,
    # Kafka's default is seven days.
    "offsets.retention.minutes": RETENTION_MINUTES,
}

SLOW = "search-index"
_SLOW_PACE = 10
_BOOKS_EVERY = 3
_SECOND_MS = 1_000
_PATIENCE_S = 120.0
_LOOK_S = 0.5

Tell = Callable[[str, str], None]
"""Hears the shop's time and a sentence."""


class StoryFailed(KohortError):
    """The clients did not get on with the story."""


class Shop:
    """Everything that takes part. One event loop has all clients; the broker has a thread of its own."""

    def __init__(self, broker: Broker, tell: Tell) -> None:
        self.broker = broker
        self._tell = tell
        self.pace = 10
        """Orders a minute, in each partition."""
        self.ends = [0] * PARTITIONS
        self.readers: list[Reader] = []
        self._till = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="till", linger_ms=1)
        self.ledger = Ledger(broker.bootstrap_servers, self.reader("ledger", "ledger-1"), broker.clock.now_ms)
        self.keeps_books = True
        self.minutes_past = 0

    def tell(self, sentence: str) -> None:
        self._tell(f"{datetime.fromtimestamp(self.broker.clock.now_ms() / 1000, UTC):%H:%M}", sentence)

    # People come and go

    async def open(self, readers: Iterable[Reader]) -> None:
        """Topics, somebody who sells, and all who read."""
        self.broker.create_topic(ORDERS, PARTITIONS, {"message.timestamp.type": "LogAppendTime"})
        self.broker.create_topic(RECEIPTS)
        self.readers += [self.ledger.reader, *readers]
        await self._till.start()
        await self.ledger.open()
        joining = asyncio.gather(*(reader.join() for reader in self.readers))
        expected = {
            group: sum(reader.group == group for reader in self.readers)
            for group in {reader.group for reader in self.readers}
        }
        await self.until(
            lambda groups: all(
                group in groups and len(groups[group].members) == count for group, count in expected.items()
            )
        )
        async with asyncio.timeout(_PATIENCE_S):
            while not joining.done():  # each newcomer prolongs the delay in which a first generation gathers
                await self.wind(3 * _SECOND_MS)
                await asyncio.wait([joining], timeout=_LOOK_S)
            await joining

    def reader(self, group: str, name: str, *, is_static: bool = False) -> Reader:
        return Reader(self.broker.bootstrap_servers, group, name, is_static=is_static)

    async def add(self, reader: Reader) -> None:
        """A new member; returns when its group has settled."""
        async with self._rebalance(self.of(reader.group)):
            self.readers.append(reader)
            await reader.join()

    async def remove(self, reader: Reader) -> None:
        """A member leaves; returns when its group has settled."""
        self.readers.remove(reader)
        async with self._rebalance(self.of(reader.group)):
            await reader.leave()

    @contextlib.asynccontextmanager
    async def _rebalance(self, stay: list[Reader]) -> AsyncIterator[None]:
        """Whoever stays joins anew, and has partitions again at the end of the block."""
        for one in stay:
            one.is_given.clear()
        yield
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.gather(*(one.is_given.wait() for one in stay))

    async def lose(self, reader: Reader) -> None:
        """A member is gone without a goodbye, as if its machine had lost power."""
        self.readers.remove(reader)
        with self.broker.drop_next("LeaveGroup", client_id=reader.name) as goodbye:
            await reader.leave()
        if not goodbye.taken:
            raise StoryFailed(f"{reader.name} was meant to be lost, but its goodbye has arrived")

    def of(self, group: str) -> list[Reader]:
        return [reader for reader in self.readers if reader.group == group]

    async def close(self) -> None:
        """All clients end. Their goodbyes are not heard, so that the log stays as it is."""
        with self.broker.drop_next("LeaveGroup", times=None):
            for reader in self.readers:
                await reader.leave()
        await self.ledger.close()
        await self._till.stop()

    # Time

    async def minutes(self, count: int) -> None:
        """So many minutes of business, none of them shorter than a heartbeat takes: nobody's session is to end."""
        for _ in range(count):
            await asyncio.gather(self._minute(), asyncio.sleep(HEARTBEAT_MS / 1000))
            await self.wind(60 * _SECOND_MS)

    async def _minute(self) -> None:
        await self.sell()
        await self.business()

    async def business(self) -> None:
        """Everybody reads what there is to read, as fast as they can."""
        self.minutes_past += 1
        async with asyncio.timeout(_PATIENCE_S):
            if self.keeps_books and self.minutes_past % _BOOKS_EVERY == 0:
                await self.ledger.book(self.ends)
            others = [reader for reader in self.readers if reader is not self.ledger.reader]
            await asyncio.gather(
                *(reader.work(self.ends, _SLOW_PACE if reader.group == SLOW else None) for reader in others)
            )

    async def sell(self) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            sold = await asyncio.gather(*(self._sell_in(partition) for partition in range(PARTITIONS)))
        for partition, offset in enumerate(sold):
            self.ends[partition] = offset + self.pace

    async def _sell_in(self, partition: int) -> int:
        batch = self._till.create_batch()
        for number in range(self.pace):
            batch.append(key=None, value=b"order %d" % number, timestamp=self.broker.clock.now_ms())
        batch.close()
        sent = await self._till.send_batch(batch, ORDERS, partition=partition)
        return int((await sent).offset)

    async def wind(self, ms: int) -> None:
        """Time passes for the broker."""
        await asyncio.to_thread(self.broker.clock.advance, ms)

    # Waiting

    async def until(self, condition: Callable[[dict[str, Group]], bool]) -> None:
        """Wait for the broker's groups to be so, a little at a time: an interrupted story must not wait for long."""
        async with asyncio.timeout(_PATIENCE_S):
            while not await asyncio.to_thread(self._is_soon, condition):
                pass

    def _is_soon(self, condition: Callable[[dict[str, Group]], bool]) -> bool:
        try:
            self.broker.wait_until(condition, _LOOK_S)
        except TimeoutError:
            return False
        return True
