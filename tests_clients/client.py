"""A client program as a test sees it.

Programs read commands from stdin, one JSON object a line, and write answers and events to stdout the same way:

- `{"id": 1, "do": "open", "name": "a", "group": "g", "topics": ["t"]}` is answered by `{"id": 1, "result": null}` or
  `{"id": 1, "error": "..."}`. Every program knows the same commands (see `scene.py` and the tests for what they take).
- `{"event": "owns", "name": "a", "generation": 3, "partitions": [["t", 0]]}`: a member has another assignment, or the
  same in another generation.
- `{"event": "records", "name": "a", "records": [["t", 0, 17, "value"]]}`: topic, partition, offset, value.
- `{"event": "sent", "name": "x"}` and `{"event": "transformed", "name": "x", "count": 5}`: a transaction has sent
  everything but not ended; so many records have been transformed.
- `{"event": "failed", "name": "a", "error": "..."}`: a member has come to its end by an error.

A program ends when its stdin does.
"""

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests_clients.building import Program, environment_of

T = TypeVar("T")

_PATIENCE_S = 120.0


class Refused(Exception):
    """The client could not do what it was told."""


class Owned(NamedTuple):
    """What a member says about itself."""

    generation: int
    partitions: frozenset[tuple[str, int]]


class Seen(NamedTuple):
    """A record as a member got it."""

    topic: str
    partition: int
    offset: int
    value: str


class Board:
    """Where the threads that read from programs leave what they hear, and tests wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()

    def change(self, act: Callable[[], None]) -> None:
        with self._changed:
            act()
            self._changed.notify_all()

    def wait(self, look: Callable[[], T | None], what: Callable[[], str]) -> T:
        """Wait until a look gives something; `what` tells what there is if that does not happen."""
        found: list[T] = []

        def is_found() -> bool:
            found[:] = [seen for seen in (look(),) if seen]
            return bool(found)

        with self._changed:
            if not self._changed.wait_for(is_found, _PATIENCE_S):
                raise TimeoutError(what())
            return found[0]


class Client:
    """One process of a client program."""

    def __init__(self, program: Program, arguments: tuple[str, ...], address: str, board: Board, log: Path) -> None:
        self.board = board
        self.owned: dict[str, list[Owned]] = {}
        self.seen: dict[str, list[Seen]] = {}
        self.sent: dict[str, int] = {}
        self.transformed: dict[str, int] = {}
        self._log = log
        self._failures: list[str] = []
        self._answers: dict[int, dict[str, Any]] = {}
        self._asked = 0
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*program.command, *arguments, address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=environment_of(program),
            )
        self._listener = threading.Thread(target=self._listen, name=f"listens to {log.stem}")
        self._listener.start()

    # Asking

    def call(self, do: str, **arguments: Any) -> Any:
        """Have something done; `Refused` with the client's own words if it fails."""
        assert self._process.stdin is not None
        self._asked += 1
        number = self._asked
        given = {name: value for name, value in arguments.items() if value is not None}
        self._process.stdin.write(json.dumps({"id": number, "do": do, **given}) + "\n")
        self._process.stdin.flush()
        answer = self.wait(lambda: self._answers.pop(number, None), f"an answer to {do} {given}")
        if "error" in answer:
            raise Refused(answer["error"])
        return answer.get("result")

    def wait(self, look: Callable[[], T | None], what: str) -> T:
        """Wait for something to be so; a member that fails meanwhile ends the wait."""

        def look_after_failures() -> T | None:
            if self._failures:
                raise Refused("\n".join([*self._failures, self._complaints()]))
            return look()

        return self.board.wait(look_after_failures, lambda: f"no {what}\n{self._complaints()}")

    def _complaints(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    # Ending

    def end(self) -> None:
        """Close everything that it has opened, and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(_PATIENCE_S)
        finally:
            self.kill()
        assert code == 0, f"the program ended with {code}\n{self._complaints()}"

    def kill(self) -> None:
        """As if the machine were gone: nobody says goodbye."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    # Listening

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            self.board.change(lambda said=said: self._note(said))
        self.board.change(lambda: self._failures.append("the program has ended"))

    def _note(self, said: dict[str, Any]) -> None:
        name = said.get("name", "")
        match said.get("event"):
            case None:
                self._answers[said["id"]] = said
            case "owns":
                partitions = frozenset((topic, partition) for topic, partition in said["partitions"])
                self.owned.setdefault(name, []).append(Owned(said["generation"], partitions))
            case "records":
                self.seen.setdefault(name, []).extend(Seen(*record) for record in said["records"])
            case "sent":
                self.sent[name] = self.sent.get(name, 0) + 1
            case "transformed":
                self.transformed[name] = said["count"]
            case "failed":
                self._failures.append(f"{name}: {said['error']}")
            case other:
                self._failures.append(f"an event that nobody knows: {other}")
