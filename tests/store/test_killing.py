"""SIGKILL to the broker, or to its database, in the middle of commits; the ledger is that of the kill-test."""

from collections.abc import Iterator
from typing import Any

import pytest

from kohort.testing.own_process import OwnProcess
from kohort.testing.ports import Ports
from tests.killing.go_clients import missing
from tests.killing.killed import SETTINGS, KilledBroker, state_of
from tests.killing.run import run
from tests.postgresql import Postgresql
from tests.slow import slow
from tests.store.shared_server import own_server

_HOST = "127.0.0.1"
_LEASE_MS = 1_000


class _StoredProcess(OwnProcess):
    def __init__(self, url: str, ports: Ports) -> None:
        super().__init__("", _HOST, ports, {**SETTINGS, "store.lease.ms": str(_LEASE_MS)})
        at = self._command.index("--data")
        self._command[at : at + 2] = ["--store", url]


class StoredBroker(KilledBroker):
    """Every other kill is one of the database."""

    last_words = (*KilledBroker.last_words, "kohort: waiting: broker 0 has the store")

    def __init__(self, database: Postgresql) -> None:
        self._database = database
        self._url = database.url
        self._is_databases_turn = False
        self._ports = Ports()
        self._life: OwnProcess | None = None
        self.kills = 0
        self.kills_at_start = 0
        self.starts_s: list[float] = []

    def _new_life(self) -> OwnProcess:
        return _StoredProcess(self._url, self._ports)

    def kill(self) -> None:
        self._is_databases_turn = not self._is_databases_turn
        if self._is_databases_turn:
            self._database.kill()
            self.kills += 1
        else:
            super().kill()

    def start(self) -> None:
        if self._is_databases_turn:
            self._database.start()
        else:
            super().start()

    def start_and_kill(self, after_s: float) -> None:
        if not self._is_databases_turn:
            super().start_and_kill(after_s)

    def end(self) -> Any:
        state = state_of(f"kafka://{self.address}")
        self.stop()
        return state


@pytest.fixture
def database() -> Iterator[Postgresql]:
    with own_server() as server:
        yield server


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=slow)])
def test_nothing_is_lost_whoever_is_killed(database: Postgresql, kills: int) -> None:
    told = run(StoredBroker(database), kills=kills, seed=1, with_go=missing() is None)
    for heard in told.clients.values():
        assert heard.acknowledged > 20, told
