"""A connection to a running cluster, used from ordinary code: who coordinates a group, who leads a partition."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, Self, TypeVar

from kohort.admin.messages import FIND_COORDINATOR, Api, Ask
from kohort.admin.refusals import in_words, named
from kohort.errors import ErrorCode, KohortError
from kohort.log.cluster import connect, leader_of
from kohort.log.security import Security

_AT_ONCE = 16
"""How many requests are under way at a time."""
_PAUSE_S = 0.2
_OF_A_GROUP = 0

_PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Refusals that pass when a group has found its coordinator again."""

T = TypeVar("T")


class ClusterFailed(KohortError):
    """A cluster that cannot be reached, or that refuses."""


class Node(NamedTuple):
    """A broker of the cluster."""

    id: int
    host: str
    port: int


class Cluster:
    """A connection; close it."""

    def __init__(self, bootstrap: str, security: Security | None = None, *, patience_s: float = 30.0) -> None:
        self.bootstrap = bootstrap
        self._security = security or Security()
        self._patience_s = patience_s
        self._coordinators: dict[str, int] = {}
        self._runner = asyncio.Runner()
        self._is_open = False
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self._runner.close)
            self._client = self.run(self._connect())
            self._is_open = True
            on_failure.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self.run(self._client.close())
        finally:
            self._runner.close()

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        """Do something; whatever the connection does to it becomes one line."""
        from aiokafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError, RequestTimedOutError

        try:
            return self._runner.run(step)
        except KafkaConnectionError:
            closed = "a broker has closed the connection"
            unknown = "cannot connect; expected HOST:PORT of a running broker"
            raise self.failure(closed if self._is_open else unknown) from None
        except (RequestTimedOutError, NodeNotReadyError, TimeoutError):
            raise self.failure("does not answer") from None
        except (KafkaError, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise self.failure(f"{reason}; expected HOST:PORT of a running broker") from None

    def failure(self, reason: str) -> ClusterFailed:
        address = self.bootstrap if self.bootstrap.isprintable() else repr(self.bootstrap)
        return ClusterFailed(f"{address}: {reason}")

    def nodes(self) -> list[Node]:
        """All brokers."""
        return sorted(Node(int(found.nodeId), found.host, int(found.port)) for found in self._client.cluster.brokers())

    def topics(self) -> set[str]:
        """Every topic that is not the cluster's own."""
        return set(self._client.cluster.topics(exclude_internal_topics=True))

    def controller(self) -> int | None:
        """The broker that makes topics; None if nobody knows, and then any passes it on."""
        found = self._client.cluster.controller
        return None if found is None else int(found.nodeId)

    def partitions_of(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions; none if there is no such topic."""
        return sorted(self._client.cluster.partitions_for_topic(topic) or ())

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads a partition; None if there is none, or no such partition."""
        return leader_of(self._client.cluster, topic, partition)

    async def look_again(self) -> None:
        """Have the cluster tell anew who leads what."""
        await self._client.force_metadata_update()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def pause(self) -> None:
        await asyncio.sleep(_PAUSE_S)

    def deadline(self) -> float:
        return self.now() + self._patience_s

    async def ask(self, node: int, api: Api, **values: Any) -> Any:
        """The answer of a broker."""
        answer = await self._client.send(node, Ask(api, values))
        return answer.read()

    async def ask_any(self, api: Api, **values: Any) -> Any:
        """The answer of a broker, whichever."""
        return await self.ask(self._client.get_random_node(), api, **values)

    def note_coordinator(self, group: str, node: int) -> None:
        """Who has told of a group coordinates it."""
        self._coordinators[group] = node

    async def coordinator(self, group: str) -> int:
        """The broker that coordinates a group."""
        if (known := self._coordinators.get(group)) is not None:
            return known
        asked = self._client.get_random_node()
        found = await self.ask(asked, FIND_COORDINATOR, key=group, key_type=_OF_A_GROUP)
        if found.error_code in _PASSING:
            raise _Passing(in_words(found.error_code))
        self.refuse(found.error_code, f"group {named(group)}")
        self._coordinators[group] = found.node_id
        return int(found.node_id)

    async def ask_coordinator(self, group: str, api: Api, errors: Callable[[Any], Iterable[int]], **values: Any) -> Any:
        """The answer of a group's coordinator. While there is none, or it still loads, it is asked again."""
        from aiokafka.errors import NodeNotReadyError

        deadline = self.deadline()
        while True:
            try:
                answer = await self.ask(await self.coordinator(group), api, **values)
                for error in errors(answer):
                    if error in _PASSING:
                        raise _Passing(in_words(error))
            except (_Passing, NodeNotReadyError) as reason:
                self._coordinators.pop(group, None)
                if self.now() > deadline:
                    told = reason if isinstance(reason, _Passing) else "the coordinator does not answer"
                    raise self.failure(f"group {named(group)}: {told}") from None
                await self.pause()
            else:
                return answer

    def refuse(self, error: int, what: str) -> None:
        """Raise what an error code says, if it says something."""
        if error:
            raise self.failure(f"{what}: {in_words(error)}")

    async def _connect(self) -> Any:
        self._check_address()
        patience_ms = max(1, round(self._patience_s * 1000))
        client = await connect(self.bootstrap, self._security, request_timeout_ms=patience_ms)
        async with contextlib.AsyncExitStack() as on_failure:
            on_failure.push_async_callback(client.close)
            await client.force_metadata_update()
            on_failure.pop_all()
        return client

    def _check_address(self) -> None:
        """What no socket would take is told before one is asked."""
        from aiokafka.conn import collect_hosts

        try:
            for host, port, _ in collect_hosts(self.bootstrap):
                if not host.encode("idna") or not 0 < port < 1 << 16:
                    raise ValueError
        except ValueError:
            raise self.failure("is not HOST:PORT") from None


async def all_of(work: Iterable[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
    """Do everything, some at a time; what fails ends the rest."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(step: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with places:
            return await step()

    tasks = [asyncio.ensure_future(one(step)) for step in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class _Passing(Exception):
    """A coordinator that is not there yet."""
