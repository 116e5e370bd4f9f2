"""A connection to a live cluster, used from ordinary code: where partitions begin and end, and their raw batches.

A consumer would hide what a replay needs: control records, producer ids, open transactions. So batches are fetched as
bytes, through a client library's connections.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from kohort.errors import ErrorCode
from kohort.log.security import Security
from kohort.log.source import LIVE_SCHEME, BadSource

EARLIEST, LATEST = -2, -1
_READ_UNCOMMITTED = 0
_PATIENCE_S = 30.0
_PAUSE_S = 0.2
_WAIT_MS = 500

PASSING = (
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH,
)
"""Refusals that pass when a partition has found its leader again."""

TopicPartition = tuple[str, int]
T = TypeVar("T")


class LiveCluster:
    """A connection to a cluster; close it."""

    def __init__(self, address: str, security: Security | None = None) -> None:
        self._address = address
        self._security = security or Security()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self._runner.close)
            self._client = self._run(connect(address.removeprefix(LIVE_SCHEME).rstrip("/"), self._security))
            on_failure.pop_all()
            on_failure.callback(self.close)
            self._metadata = self._run(self._client.fetch_all_metadata())
            on_failure.pop_all()

    def __enter__(self) -> "LiveCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self._run(self._client.close())
        finally:
            self._runner.close()

    def topics(self) -> set[str]:
        """Every topic, the cluster's own included."""
        return set(self._metadata.topics(exclude_internal_topics=False))

    def partitions_of(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions."""
        numbers = self._metadata.partitions_for_topic(topic)
        if not numbers:
            topics = ", ".join(sorted(self.topics())[:10])
            raise BadSource(f"{self._address}: no topic {topic}; it has {topics or 'none'}")
        return sorted(numbers)

    def offsets(self, asked: Iterable[TopicPartition], time: int) -> dict[TopicPartition, int]:
        """The first offset of partitions at or after a time, or `EARLIEST`, or `LATEST`."""
        return self._run(self._from_leaders(list(asked), lambda leader, theirs: self._listed(leader, theirs, time)))

    def fetch(self, topic: str, partition: int, offset: int, max_bytes: int) -> bytes:
        """Batches from `offset` on; the last of them may be cut off."""
        return self.fetch_many({(topic, partition): offset}, max_bytes)[topic, partition]

    def fetch_many(self, offsets: Mapping[TopicPartition, int], max_bytes: int) -> dict[TopicPartition, bytes]:
        """Batches from an offset of each partition on, so many bytes of each; the last of them may be cut off."""
        return self._run(
            self._from_leaders(
                list(offsets),
                lambda leader, theirs: self._fetched(leader, {key: offsets[key] for key in theirs}, max_bytes),
            )
        )

    async def _from_leaders(self, asked: list[TopicPartition], ask: Any) -> dict[TopicPartition, Any]:
        """What the leaders of partitions answer; those whose leader is elsewhere by now are asked for again."""
        from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, for_code

        found: dict[TopicPartition, Any] = {}
        clock = asyncio.get_running_loop().time
        deadline = clock() + _PATIENCE_S
        while True:
            by_leader: dict[int, list[TopicPartition]] = {}
            reason: object = "has no leader"
            for key in asked:
                if key not in found and (leader := leader_of(self._metadata, *key)) is not None:
                    by_leader.setdefault(leader, []).append(key)
            for leader, theirs in by_leader.items():
                try:
                    answered = await ask(leader, theirs)
                except (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError):
                    reason = f"broker {leader} does not answer"
                    continue
                for key, (error, value) in answered.items():
                    if not error:
                        found[key] = value
                    elif error in PASSING:
                        reason = for_code(error).__name__
                    else:
                        raise BadSource(f"{self._address}: {key[0]}-{key[1]}: {for_code(error).__name__}")
            left = [key for key in asked if key not in found]
            if not left:
                return found
            if clock() > deadline:
                raise BadSource(f"{self._address}: {left[0][0]}-{left[0][1]}: {reason}")
            await asyncio.sleep(_PAUSE_S)
            self._metadata = await self._client.fetch_all_metadata()

    async def _listed(self, leader: int, asked: list[TopicPartition], time: int) -> dict[TopicPartition, Any]:
        from aiokafka.protocol.offset import OffsetRequest

        topics = _by_topic((topic, (partition, time)) for topic, partition in asked)
        answer = await self._client.send(leader, OffsetRequest(-1, _READ_UNCOMMITTED, topics))
        return {
            (topic, number): (error, int(offset))
            for topic, partitions in answer.topics
            for number, error, _, offset, *_ in partitions
        }

    async def _fetched(self, leader: int, asked: Mapping[TopicPartition, int], room: int) -> dict[TopicPartition, Any]:
        from aiokafka.protocol.fetch import FetchRequest

        topics = _by_topic((topic, (number, offset, room)) for (topic, number), offset in asked.items())
        request = FetchRequest(_WAIT_MS, 1, room * len(asked), _READ_UNCOMMITTED, topics)
        answer = await self._client.send(leader, request)
        return {
            (topic, number): (error, bytes(rest[-1] or b""))
            for topic, partitions in answer.topics
            for number, error, *rest in partitions
        }

    def _run(self, step: Coroutine[Any, Any, T]) -> T:
        from aiokafka.errors import KafkaConnectionError, KafkaError

        try:
            return self._runner.run(step)
        except (KafkaError, ValueError, OverflowError, OSError) as error:
            reason = "cannot connect" if isinstance(error, KafkaConnectionError) else error
            raise BadSource(f"{self._address}: {reason}; expected kafka://HOST:PORT of a running broker") from None


async def connect(address: str, security: Security, **more: Any) -> Any:
    """A client of the library that has found the cluster; it is to be closed."""
    from aiokafka.client import AIOKafkaClient
    from aiokafka.errors import KafkaConnectionError

    # The library reports on its own what is raised anyway; one line to people is enough.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    arguments = security.client_arguments()
    client = AIOKafkaClient(bootstrap_servers=address, client_id="kohort", **more, **arguments)
    async with contextlib.AsyncExitStack() as on_failure:
        on_failure.push_async_callback(client.close)
        try:
            await client.bootstrap()
        except KafkaConnectionError:
            await _tell_why(client.hosts, arguments)
            raise
        on_failure.pop_all()
    return client


def leader_of(metadata: Any, topic: str, partition: int) -> int | None:
    """The broker that leads a partition; None if there is none, or no such partition."""
    from aiokafka import TopicPartition as Partition

    leader = metadata.leader_for_partition(Partition(topic, partition))
    return None if leader is None or leader < 0 else int(leader)


async def _tell_why(hosts: Iterable[tuple[str, int, Any]], arguments: Mapping[str, Any]) -> None:
    """The library says only that it did not get in; a broker that refuses us tells more when it is asked once more."""
    from aiokafka.conn import create_conn

    for host, port, _ in hosts:
        try:
            connection = await create_conn(host, port, client_id="kohort", **arguments)
        except ConnectionError:
            continue
        connection.close()


def _by_topic(entries: Iterable[tuple[str, T]]) -> list[tuple[str, list[T]]]:
    topics: dict[str, list[T]] = {}
    for topic, entry in entries:
        topics.setdefault(topic, []).append(entry)
    return list(topics.items())
