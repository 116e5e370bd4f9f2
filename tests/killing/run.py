"""A broker that is killed again and again while clients commit, and the ledger of what they were promised."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from kohort.testing.own_process import OwnProcess
from kohort.testing.ports import Ports
from tests.killing.clients import PARTITIONS, TOPIC, Clients
from tests.simulation.ledger import Ledger, Outcome, Violation

_PATIENCE_S = 60.0
_LOOKS = 60
_HOST = "127.0.0.1"
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.segment.bytes": "20000",
    "log.cleaner.backoff.ms": "200",
}


class _Killed:
    """A broker that is killed and started again on the same data, always on the same port: clients find it again."""

    def __init__(self, data: Path) -> None:
        self._data, self._ports = str(data), Ports()
        self._life: OwnProcess | None = None
        self.slowest_start_s = 0.0

    @property
    def address(self) -> str:
        return f"{_HOST}:{self._ports.kafka}"

    def start(self) -> None:
        began = time.monotonic()
        self._life = OwnProcess(self._data, _HOST, self._ports, _SETTINGS)
        self._ports = self._life.start()
        self.slowest_start_s = max(self.slowest_start_s, time.monotonic() - began)

    def end(self, *, cleanly: bool) -> None:
        assert self._life is not None
        self._life.finish(cleanly=cleanly)


class Told(NamedTuple):
    """What a run has seen."""

    kills: int
    commits: int
    acknowledged: int
    reads: int
    slowest_start_s: float


def run(data: Path, kills: int, seed: int, committers: int = 4, transactors: int = 2) -> Told:
    """Kill it so many times, each after 50 to 1,500 ms; `Violation` if a promise was broken."""
    chance = random.Random(seed)
    broker = _Killed(data)
    ledger = Ledger()
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        made.result(_PATIENCE_S)
    clients = Clients(broker.address, ledger, committers, transactors)
    clients.start()
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.05, 1.5))
            broker.end(cleanly=False)
            broker.start()
    finally:
        clients.end()
    for group in clients.groups:
        consumer = clients.consumer(group)
        if not any(clients.look(consumer, group) for _ in range(_LOOKS)):
            raise Violation(f"{group} cannot be read any more")
        consumer.close()
    broker.end(cleanly=True)
    if clients.errors:
        raise clients.errors[0]
    ledger.check()
    _compare(ledger, data)
    acknowledged = sum(write.outcome is Outcome.OK for write in ledger.writes)
    return Told(kills, len(ledger.writes), acknowledged, len(ledger.reads), broker.slowest_start_s)


def _compare(ledger: Ledger, data: Path) -> None:
    """`kohort state` on the files is a second opinion on what clients have read last."""
    command = [str(Path(sys.executable).parent / "kohort"), "state", str(data), "--format", "json"]
    state = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    stored = {(entry["group"], entry["partition"]): entry["offset"] for entry in state["offsets"]}
    for key, offset in {read.key: read.offset for read in ledger.reads}.items():
        if stored.get(key) != offset:
            raise Violation(f"{key}: the broker says {offset}, its files {stored.get(key)}")
