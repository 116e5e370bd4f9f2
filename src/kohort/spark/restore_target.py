"""The cluster whose groups are to get other offsets, asked and told through the protocol that every tool speaks."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kohort.errors import ErrorCode, KohortError
from kohort.spark.restore_plan import Bounds, Planned, TopicPartition

_EARLIEST, _LATEST = -2, -1
_READ_UNCOMMITTED = 0
_AT_ONCE = 16
"""How many requests are under way at a time."""
_PATIENCE_S = 30.0
_PAUSE_S = 0.2

_NO_GENERATION, _NO_MEMBER, _NO_RETENTION = -1, "", -1
_NOT_COMMITTED = -1
_PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Refusals that pass."""

_AT_REST = ("Empty", "Dead", "")
"""States in which a group has no members; Dead is one that does not exist."""

T = TypeVar("T")


class TargetFailed(KohortError):
    """A cluster that cannot be reached, or that refuses."""


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A group as a cluster has it."""

    state: str
    members: int
    offsets: Mapping[TopicPartition, int]

    @property
    def is_at_rest(self) -> bool:
        return self.state in _AT_REST


class Target:
    """A connection to a cluster, used from ordinary code; close it."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        try:
            self._client = self._run(self._connect())
        except TargetFailed:
            self._loop.close()
            raise

    def __enter__(self) -> "Target":
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._client.close())
        self._loop.close()

    def groups(self, names: Iterable[str]) -> dict[str, GroupNow]:
        """What groups are there now; one that is not there is `Dead` and has no offsets."""
        return dict(self._run(_all(self._group(name) for name in names)))

    def bounds(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """Where the logs of topic partitions begin and end; those that the cluster does not have are left out."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic, partition in set(topic_partitions):
            leader = self._leader(topic, partition)
            if leader is not None:
                by_leader.setdefault(leader, []).append((topic, partition))
        starts = self._run(_all(self._listed(leader, their, _EARLIEST) for leader, their in by_leader.items()))
        ends = self._run(_all(self._listed(leader, their, _LATEST) for leader, their in by_leader.items()))
        first = {key: offset for part in starts for key, offset in part.items()}
        last = {key: offset for part in ends for key, offset in part.items()}
        return {key: Bounds(first[key], last[key]) for key in first}

    def commit(self, plan: Iterable[Planned]) -> list[tuple[Planned, str]]:
        """Set the offsets of a plan; those that the cluster refused come back, each with the reason."""
        by_group: dict[str, list[Planned]] = {}
        for planned in plan:
            by_group.setdefault(planned.group, []).append(planned)
        refused = self._run(_all(self._commit(group, their) for group, their in by_group.items()))
        return [refusal for part in refused for refusal in part]

    async def _group(self, name: str) -> tuple[str, GroupNow]:
        from aiokafka.protocol.admin import DescribeGroupsRequest
        from aiokafka.protocol.commit import OffsetFetchRequest

        # One group at a time: of several, aiokafka 0.14 cannot read the answer of a broker that knows version 3.
        described = await self._ask_coordinator(name, DescribeGroupsRequest([name]), lambda a: [a.groups[0][0]])
        self._refuse(described.groups[0][0], f"group {name!r}")
        _, _, state, _, _, members, *_ = described.groups[0]
        fetched = await self._ask_coordinator(name, OffsetFetchRequest(name, None), lambda a: [a.error_code])
        self._refuse(fetched.error_code, f"group {name!r}")
        offsets = {}
        for topic, partitions in fetched.topics:
            for partition, offset, _, error in partitions:
                self._refuse(error, f"group {name!r}, {topic}-{partition}")
                if offset != _NOT_COMMITTED:
                    offsets[topic, partition] = int(offset)
        return name, GroupNow(state, len(members), offsets)

    async def _listed(self, leader: int, asked: list[TopicPartition], time: int) -> dict[TopicPartition, int]:
        from aiokafka.protocol.offset import OffsetRequest

        topics: dict[str, list[tuple[int, int]]] = {}
        for topic, partition in asked:
            topics.setdefault(topic, []).append((partition, time))
        answer = await self._client.send(leader, OffsetRequest(-1, _READ_UNCOMMITTED, list(topics.items())))
        found = {}
        for topic, partitions in answer.topics:
            for partition, error, _, offset, *_ in partitions:
                self._refuse(error, f"{topic}-{partition}")
                found[topic, partition] = int(offset)
        return found

    async def _commit(self, group: str, plan: list[Planned]) -> list[tuple[Planned, str]]:
        from aiokafka.errors import for_code
        from aiokafka.protocol.commit import OffsetCommitRequest

        topics: dict[str, list[tuple[int, int, str]]] = {}
        for planned in plan:
            topics.setdefault(planned.topic, []).append((planned.partition, planned.offset, planned.metadata))
        request = OffsetCommitRequest(group, _NO_GENERATION, _NO_MEMBER, _NO_RETENTION, list(topics.items()))
        answer = await self._ask_coordinator(
            group, request, lambda a: [error for _, partitions in a.topics for _, error in partitions]
        )
        errors = {(topic, n): error for topic, partitions in answer.topics for n, error in partitions}
        told = [(planned, errors[planned.topic, planned.partition]) for planned in plan]
        return [(planned, for_code(error).__name__) for planned, error in told if error]

    async def _ask_coordinator(self, group: str, request: Any, errors: Callable[[Any], list[int]]) -> Any:
        """The answer of a group's coordinator. While there is none, or it still loads, it is asked again."""
        from aiokafka.client import CoordinationType
        from aiokafka.errors import for_code

        waiting = tuple(for_code(code) for code in _PASSING)
        deadline = self._loop.time() + _PATIENCE_S
        while True:
            try:
                node = await self._client.coordinator_lookup(CoordinationType.GROUP, group)
                answer = await self._client.send(node, request)
                for error in errors(answer):
                    if error in _PASSING:
                        raise for_code(error)
            except waiting:
                if self._loop.time() > deadline:
                    raise
                await asyncio.sleep(_PAUSE_S)
            else:
                return answer

    def _leader(self, topic: str, partition: int) -> int | None:
        from aiokafka import TopicPartition as Partition

        leader = self._client.cluster.leader_for_partition(Partition(topic, partition))
        if leader is not None and leader < 0:
            raise TargetFailed(f"{self._bootstrap}: {topic}-{partition} has no leader")
        return None if leader is None else int(leader)

    def _refuse(self, error: int, what: str) -> None:
        from aiokafka.errors import for_code

        if error:
            raise TargetFailed(f"{self._bootstrap}: {what}: {for_code(error).__name__}")

    async def _connect(self) -> Any:
        from aiokafka.client import AIOKafkaClient

        client = AIOKafkaClient(bootstrap_servers=self._bootstrap, client_id="kohort")
        async with contextlib.AsyncExitStack() as on_failure:
            on_failure.push_async_callback(client.close)
            await client.bootstrap()
            await client.force_metadata_update()
            on_failure.pop_all()
        return client

    def _run(self, step: Coroutine[Any, Any, T]) -> T:
        from aiokafka.errors import KafkaConnectionError, KafkaError

        # The library reports on its own what is raised anyway; one line to people is enough.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        try:
            return self._loop.run_until_complete(step)
        except (KafkaError, ValueError, OSError) as error:
            reason = "cannot connect" if isinstance(error, KafkaConnectionError) else error
            raise TargetFailed(f"{self._bootstrap}: {reason}; expected HOST:PORT of a running broker") from None


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do everything, some at a time."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(step: Coroutine[Any, Any, T]) -> T:
        async with places:
            return await step

    return await asyncio.gather(*(one(step) for step in work))
