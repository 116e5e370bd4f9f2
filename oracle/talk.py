"""A conversation with one broker, and what is kept of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tests.broker.wire_client import Closed, WireClient

from oracle.apis import Api
from oracle.plain import Names

TOPIC = "orders"
TOPIC_PARTITIONS = 3
_SILENCE_S = 0.06
_PATIENCE_S = 20.0


@dataclass
class Talk:
    """The answers of one broker to one sequence, in the order in which the sequence looked at them."""

    port: int
    name: str
    names: Names = field(init=False)
    steps: list[tuple[str, Any]] = field(default_factory=list)
    _clients: "list[Caller]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = Names(self.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for client in self._clients:
            client.close()

    @property
    def group(self) -> str:
        """The group of this sequence. Further ones begin with the same name and a dot."""
        return self.name

    def client(self, client_id: str | None = "a") -> "Caller":
        caller = Caller(self, client_id)
        self._clients.append(caller)
        return caller

    def wait(self, ms: int) -> None:
        """Let time pass in which something is to happen, or nothing."""
        time.sleep(ms / 1000)

    def note(self, what: str, value: Any) -> None:
        """Keep something that is to be the same on both sides."""
        self.steps.append((f"{len(self.steps) + 1} {what}", self.names.plain(value)))


class Caller:
    """One connection of a conversation."""

    def __init__(self, talk: Talk, client_id: str | None) -> None:
        self.talk = talk
        self.client_id = client_id
        self._wire = WireClient(talk.port, client_id=client_id)
        self._sent: list[str] = []

    def close(self) -> None:
        self._wire.close()

    def send(self, api: Api, version: int, **values: Any) -> None:
        """Ask, and look at the answer later."""
        self._wire.send(api, version, **values)
        self._sent.append(f"{api.title} v{version} by {self.client_id}")

    def receive(self) -> Any:
        """The next answer, as kio tells it; None if the connection ended instead."""
        return self.receive_only(lambda answer: answer)

    def receive_only(self, part: Callable[[Any], Any]) -> Any:
        """The next answer, of which only a part is kept."""
        what = self._sent.pop(0)
        try:
            answer = self._wire.receive()
        except Closed:
            self.talk.note(what, "connection closed")
            return None
        self.talk.note(what, part(answer))
        return answer

    def ask(self, api: Api, version: int, **values: Any) -> Any:
        self.send(api, version, **values)
        return self.receive()

    def ask_until(self, holds: Callable[[Any], bool], api: Api, version: int, **values: Any) -> Any:
        """Ask again and again; only the first answer that is as wanted is kept."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._wire.ask(api, version, **values)
            if holds(answer):
                break
            if time.monotonic() > deadline:
                self.talk.note(f"{api.title} v{version} was never as awaited", answer)
                return answer
            time.sleep(0.02)
        self.talk.note(f"{api.title} v{version} by {self.client_id}, in the end", answer)
        return answer

    def is_kept_waiting(self) -> bool:
        """Whether a request that was sent has no answer for now."""
        deadline = time.monotonic() + _SILENCE_S
        while not (answered := self._wire.has_answer()) and time.monotonic() < deadline:
            time.sleep(0.005)
        self.talk.note(f"{self._sent[0]}: is kept waiting", not answered)
        return not answered

    def send_bytes(self, frame: bytes) -> None:
        """A frame that kio would not write."""
        self._wire.send_frame(frame)

    def receive_bytes(self, what: str, part: Callable[[bytes], Any] = bytes) -> None:
        """An answer that kio would not read; a part of it is kept."""
        try:
            frame = self._wire.receive_frame()
        except Closed:
            self.talk.note(what, "connection closed")
            return
        self.talk.note(what, part(frame))
