"""The offsets topic of a live cluster, read as the raw batches that stand in its log.

A consumer would hide what a replay needs: control records, producer ids, open transactions. So batches are fetched as
bytes, through a client library's connections, from each partition's first offset to the end that it had when we came.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kohort.errors import CorruptLog
from kohort.log.source import LIVE_SCHEME, BadSource, OnDamage, OnProgress
from kohort.records.batch import RecordBatch, read_batches, read_header, undecided

if TYPE_CHECKING:
    from kohort.records.columns import Columns
    from kohort.records.key_table import KeyTable

_FETCH_BYTES = 8 * 1024 * 1024
_EARLIEST, _LATEST = -2, -1
_READ_UNCOMMITTED = 0


class LiveCluster:
    """A connection to a cluster, used from ordinary code; close it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._client = self._run(self._connect(address.removeprefix(LIVE_SCHEME).rstrip("/")))
        self._metadata = self._run(self._client.fetch_all_metadata())

    def close(self) -> None:
        self._run(self._client.close())
        self._loop.close()

    def partitions(self, topic: str) -> list["LivePartition"]:
        """Every partition of a topic with the offsets that it holds now."""
        numbers = self._metadata.partitions_for_topic(topic)
        if not numbers:
            topics = ", ".join(sorted(self._metadata.topics(exclude_internal_topics=False))[:10])
            raise BadSource(f"{self._address}: no topic {topic}; it has {topics or 'none'}")
        return [
            LivePartition(
                self, topic, number, self._offset(topic, number, _EARLIEST), self._offset(topic, number, _LATEST)
            )
            for number in sorted(numbers)
        ]

    def fetch(self, topic: str, partition: int, offset: int, max_bytes: int) -> bytes:
        """Batches from `offset` on; the last of them may be cut off."""
        from aiokafka.protocol.fetch import FetchRequest

        request = FetchRequest(500, 1, max_bytes, _READ_UNCOMMITTED, [(topic, [(partition, offset, max_bytes)])])
        answer = self._run(self._client.send(self._leader(topic, partition), request))
        ((_, ((_, error, *_, records),)),) = answer.topics
        self._refuse(error, topic, partition)
        return bytes(records)

    def _offset(self, topic: str, partition: int, timestamp: int) -> int:
        from aiokafka.protocol.offset import OffsetRequest

        request = OffsetRequest(-1, _READ_UNCOMMITTED, [(topic, [(partition, timestamp)])])
        answer = self._run(self._client.send(self._leader(topic, partition), request))
        ((_, (found,)),) = answer.topics
        self._refuse(found[1], topic, partition)
        return int(found[3])

    def _leader(self, topic: str, partition: int) -> int:
        from aiokafka import TopicPartition

        leader = self._metadata.leader_for_partition(TopicPartition(topic, partition))
        if leader is None or leader < 0:
            raise BadSource(f"{self._address}: {topic}-{partition} has no leader")
        return int(leader)

    def _refuse(self, error: int, topic: str, partition: int) -> None:
        from aiokafka.errors import for_code

        if error:
            raise BadSource(f"{self._address}: {topic}-{partition}: {for_code(error).__name__}")

    async def _connect(self, address: str) -> Any:
        from aiokafka.client import AIOKafkaClient

        client = AIOKafkaClient(bootstrap_servers=address, client_id="kohort")
        async with contextlib.AsyncExitStack() as on_failure:
            on_failure.push_async_callback(client.close)
            await client.bootstrap()
            on_failure.pop_all()
        return client

    def _run(self, step: Any) -> Any:
        from aiokafka.errors import KafkaConnectionError, KafkaError

        # The library reports on its own what is raised anyway; one line to people is enough.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        try:
            return self._loop.run_until_complete(step)
        except (KafkaError, ValueError, OSError) as error:
            reason = "cannot connect" if isinstance(error, KafkaConnectionError) else error
            raise BadSource(f"{self._address}: {reason}; expected kafka://HOST:PORT of a running broker") from None


@dataclass(frozen=True, slots=True)
class LivePartition:
    """A partition of a live cluster, from its first offset to where it ended when it was asked."""

    cluster: LiveCluster
    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """No broker tells it in passing; 0 stands for unknown."""
        return 0

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[RecordBatch]:
        for data in self._windows():
            for batch in read_batches(data, on_damage=on_damage):
                if batch.header.base_offset < self.end:
                    yield batch
            on_progress(len(data))

    def columns(self, keys: "KeyTable", on_damage: OnDamage, on_progress: OnProgress) -> Iterator["Columns"]:
        import numpy as np

        from kohort.records.columns import decode

        for data in self._windows():
            yield decode(np.frombuffer(data, np.uint8), keys, on_damage=on_damage).columns
            on_progress(len(data))

    def _windows(self) -> Iterator[bytes]:
        """Whole batches, fetch by fetch. A damaged frame ends it: what decodes the bytes will tell."""
        offset, room = self.start, _FETCH_BYTES
        while offset < self.end:
            data = self.cluster.fetch(self.topic, self.partition, offset, room)
            whole, next_offset, damaged = _whole_batches(data, offset, self.end)
            if damaged:
                yield data
                return
            if next_offset == offset:
                if len(data) < room:
                    return
                room *= 2
                continue
            offset = next_offset
            yield data[:whole]


def _whole_batches(data: bytes, offset: int, end: int) -> tuple[int, int, bool]:
    """How many bytes are whole batches below `end`, the offset behind them, and whether damage stopped the count.

    A fetch may end inside a batch.
    """
    position = 0
    while position < len(data) and offset < end and not undecided(data, position):
        try:
            header = read_header(data, position, verify=False)
        except CorruptLog:
            return position, offset, True
        position, offset = header.end, header.next_offset
    return position, offset, False
