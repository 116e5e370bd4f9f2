"""What a test works with: a broker, programs of one client, and members of groups in them."""

import itertools
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests_clients.broker import Broker
from tests_clients.building import built
from tests_clients.client import Board, Client, Owned, Seen
from tests_clients.kinds import Kind
from tests_clients.login import Login

_PATIENCE_S = 120.0
_END = "the end"
"""A record that is put behind all others, to know when they have all been read."""


class Member:
    """A consumer with a group, in a client program."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    @property
    def owned(self) -> Owned | None:
        """What it owns now, as far as it has told."""
        told = self.client.owned.get(self.name)
        return told[-1] if told else None

    @property
    def history(self) -> list[Owned]:
        return list(self.client.owned.get(self.name, ()))

    @property
    def seen(self) -> list[Seen]:
        return list(self.client.seen.get(self.name, ()))

    def values(self, count: int) -> list[str]:
        """Wait for so many records; their values in the order in which they came, and those of any more."""
        self.client.wait(lambda: len(self.seen) >= count, f"{count} records of {self.name}: {self.seen}")
        return [record.value for record in self.seen]

    def commit(self, metadata: str = "") -> None:
        """Commit what it has seen."""
        self.client.call("commit", name=self.name, metadata=metadata)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.client.call("seek", name=self.name, topic=topic, partition=partition, offset=offset)

    def close(self) -> None:
        self.client.call("close", name=self.name)


class Scene:
    """Everything of one test; it is all ended with it."""

    def __init__(self, kind: Kind, work: Path, settings: dict[str, str], login: Login | None = None) -> None:
        self.kind = kind
        self.login = login
        self.broker = Broker(work, settings, login.protocol if login else "PLAINTEXT")
        if login and login.user:
            self.broker.add_user(login.user, login.password)
        self._board = Board()
        self._work = work
        self._clients: list[Client] = []
        self._names = (f"m{number}" for number in itertools.count(1))
        self.broker.start()
        self._first: Client | None = None

    @property
    def client(self) -> Client:
        """The program that does what any program can do."""
        if self._first is None:
            self._first = self.start_client()
        return self._first

    def start_client(self, kind: Kind | None = None, login: Login | None = None) -> Client:
        """A further process, of the client that the test is about or of another one; it gets in as the others do."""
        kind = kind or self.kind
        login = login or self.login
        program = built(kind.toolchain, kind.program)
        if login is not None:
            program = replace(program, environment={**program.environment, "CLIENT_CONFIG": login.write(self._work)})
        log = self._work / f"client-{next(self._names)}.log"
        client = Client(program, kind.arguments, self.broker.address, self._board, log)
        self._clients.append(client)
        return client

    def kill_client(self, client: Client) -> None:
        client.kill()
        self._clients.remove(client)

    def open(self, group: str, *topics: str, client: Client | None = None, **options: Any) -> Member:
        """A member that subscribes: `pattern`, `instance`, `assignor`, `isolation`, `auto_commit`, `session_ms`."""
        client = client or self.client
        member = Member(client, next(self._names))
        options = {
            "assignor": self.kind.eager,
            "isolation": "read_committed",
            "auto_commit": False,
            "session_ms": 30_000,
            **options,
        }
        client.call("open", name=member.name, group=group, topics=topics, **options)
        return member

    def settle(self, members: Iterable[Member], topics: dict[str, int]) -> int:
        """Wait until these members are in one generation and own each partition of the topics once. Returns it."""
        members = list(members)
        wanted = sorted((topic, number) for topic, count in topics.items() for number in range(count))

        def generation() -> int | None:
            told = [member.owned for member in members]
            generations = {owned.generation if owned else None for owned in told}
            owned_by_all = sorted(partition for owned in told if owned for partition in owned.partitions)
            return generations.pop() if len(generations) == 1 and owned_by_all == wanted else None

        tell = ", ".join(member.name for member in members)
        return members[0].client.wait(generation, f"generation in which {tell} own {topics} together")

    def until(self, holds: Callable[[], bool]) -> None:
        """Ask again and again until it is so."""
        deadline = time.monotonic() + _PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "it was never so"
            time.sleep(0.05)

    # Topics and records

    def create_topic(self, topic: str, partitions: int = 1, **settings: str) -> None:
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.client.call("create_topic", topic=topic, partitions=partitions, settings=settings)

    def produce(self, topic: str, values: Iterable[str], partition: int = 0) -> None:
        """Each value is a record; returns when all are acknowledged."""
        self.client.call("send", topic=topic, partition=partition, values=list(values))

    def read_all(self, topic: str, partitions: int = 1, **options: Any) -> list[str]:
        """The values of all records that are in a topic now, partition by partition, each in its order."""
        end = f"{_END} {next(self._names)}"
        for partition in range(partitions):
            self.produce(topic, [end], partition)
        member = self.open(end, topic, **options)

        def everything() -> list[Seen] | None:
            seen = sorted(member.seen)
            return seen if [one.value for one in seen].count(end) == partitions else None

        seen = member.client.wait(everything, f"end of {topic}")
        member.close()
        return [record.value for record in seen if not record.value.startswith(_END)]

    # Groups

    def offsets(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        """What a group has committed: offset and metadata."""
        found = self.client.call("offsets", group=group)
        return {(topic, partition): (offset, metadata) for topic, partition, offset, metadata in found}

    def end(self) -> None:
        """Clients first, so that they can say goodbye."""
        try:
            for client in self._clients:
                client.end()
        finally:
            for client in self._clients:
                client.kill()
            self.broker.end()

    def abandon(self) -> None:
        """After a failure: end everything, and ask nothing of it."""
        for client in self._clients:
            client.kill()
        self.broker.end(signal.SIGKILL)
