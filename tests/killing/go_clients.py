"""Clients of franz-go, in a program of their own, and what they tell of their history."""

import json
import subprocess
import threading
import time
from itertools import count
from typing import Any

from tests_clients.building import GO, built

from tests.killing.place import COPIES, PARTITIONS, TOPIC
from tests.simulation.history import Fenced, Joined, Outcome, Read, Synced, Write
from tests.simulation.ledger import Ledger

_PATIENCE_S = 120.0
_NONE = -1


def missing() -> str | None:
    """What is not installed; None if there is everything."""
    return GO.missing()


class GoClients:
    """Members of groups, two in each, and clients that commit in transactions, until they are told to end."""

    def __init__(self, address: str, ledger: Ledger, groups: int, transactors: int) -> None:
        self._ledger = ledger
        self._began = 0.0
        self._writes: dict[int, Write] = {}
        self._answers = count()
        self._failures: list[str] = []
        self._listener = threading.Thread(target=self._listen, name="listens to franz-go")
        self._process: subprocess.Popen[str] | None = None
        self.groups = [f"go-c-{n}" for n in range(groups)] + [f"go-t-{n}" for n in range(transactors)]
        told = {"address": address, "topic": TOPIC, "copies": COPIES, "partitions": PARTITIONS}
        told |= {"groups": groups, "transactors": transactors}
        self._command = [*built(GO, "killing").command, *(f"-{name}={value}" for name, value in told.items())]

    def start(self) -> None:
        # Its times count from its own start, which is a little later: nobody else asks for its groups before its end.
        self._began = time.monotonic()
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._listener.start()

    def end(self) -> None:
        """`RuntimeError` if it did not end well."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            code = process.wait(_PATIENCE_S)
        finally:
            process.kill()
            process.wait()
            self._listener.join()
            process.stdout.close()
        if code or self._failures:
            raise RuntimeError(f"the client in Go ended with {code}: {self._failures}")

    def abandon(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._listener.join()

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._note(json.loads(line))
            except (ValueError, KeyError) as error:
                self._failures.append(f"{line!r}: {error!r}")

    def _note(self, said: dict[str, Any]) -> None:
        group, began, ended = said["group"], self._began + said["began"], self._began + said.get("ended", 0.0)
        match said["event"]:
            case "invoke":
                offsets = {(group, int(partition)): offset for partition, offset in said["offsets"].items()}
                self._writes[said["id"]] = self._ledger.write(offsets, began)
            case "return":
                outcome = Outcome(said["outcome"])
                self._writes.pop(said["id"]).end(ended, outcome)
                if outcome is Outcome.OK and said.get("generation", _NONE) != _NONE:
                    self._ledger.commits.append(Fenced(group, said["generation"], began, ended))
            case "read":
                answer = next(self._answers)
                for partition, offset in said["offsets"].items():
                    found = None if offset == _NONE else offset
                    self._ledger.reads.append(Read((group, int(partition)), found, began, ended, answer))
            case "owns":
                member, generation, share = said["member"], said["generation"], frozenset(said["partitions"])
                self._ledger.joins.append(Joined(group, generation, member, began, ended))
                self._ledger.syncs.append(Synced(group, generation, member, share, began, ended))
            case other:
                raise ValueError(f"an event that nobody knows: {other}")
