"""A broker in a process of its own, its well-behaved group, and one attack after the other; and what came of it."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.broker.security.certificates import pem, server
from tests.hostile.attacks import HELLO, Address, Attack, Outcome
from tests.hostile.well_behaved import GROUP, MEMBERS

PLAINTEXT, SSL, SASL_PLAINTEXT = "PLAINTEXT", "SSL", "SASL_PLAINTEXT"
_LISTENERS = """
listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="the right one";
"""
_PATIENCE_S = 120.0
ROOT = Path(__file__).resolve().parents[2]


class Round(NamedTuple):
    """One attack, and how everybody else fared meanwhile."""

    name: str
    outcome: Outcome
    seconds: float
    newcomer_ms: float
    """How long it took at most until somebody who came new was answered."""
    slowest_ms: float
    """How long a record took at most from the producer to the consumer."""
    records: int
    most_mib: float
    """The most memory that the broker had had until then."""
    complaints: Sequence[str]
    """What the group has noticed; it is to notice nothing."""


@dataclass
class Siege:
    """A broker under attack."""

    listeners: Mapping[str, Address]
    """By their protocols."""
    http: str
    pid: int
    group: "subprocess.Popen[str]"
    rounds: list[Round] = field(default_factory=list)

    @property
    def address(self) -> Address:
        """Where nobody has to show anything."""
        return self.listeners[PLAINTEXT]

    def most_mib(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def generation(self) -> Any:
        """Of the group, with its members."""
        with urllib.request.urlopen(f"{self.http}groups.json?group={GROUP}", timeout=_PATIENCE_S) as answer:
            (told,) = json.loads(answer.read())["groups"]
        return told["state"], told["generation"], sorted(member["member_id"] for member in told["members"])

    def heard(self) -> dict[str, Any]:
        """What the group has gone through since it was asked last."""
        assert self.group.stdin is not None
        assert self.group.stdout is not None
        self.group.stdin.write("\n")
        self.group.stdin.flush()
        return dict(json.loads(self.group.stdout.readline()))

    def endure(self, name: str, attack: Attack, protocol: str = PLAINTEXT) -> Round:
        """One attack on the listener with this protocol."""
        before = self.generation()
        self.heard()
        began = time.monotonic()
        outcome, newcomer_s = asyncio.run(self._attacked(attack, self.listeners[protocol]))
        took = time.monotonic() - began
        heard, after = self.heard(), self.generation()
        complaints = list(heard["errors"])
        if heard["rebalances"] or before != after:
            complaints.append(f"generation {before[:2]} became {after[:2]}, {heard['rebalances']} rebalances")
        if not heard["records"]:
            complaints.append("no record came through")
        done = Round(
            name, outcome, took, newcomer_s * 1000, heard["slowest_ms"], heard["records"], self.most_mib(), complaints
        )
        self.rounds.append(done)
        return done

    async def _attacked(self, attack: Attack, address: Address) -> tuple[Outcome, float]:
        over, slowest = asyncio.Event(), 0.0

        async def come_new() -> None:
            nonlocal slowest
            while not over.is_set():
                slowest = max(slowest, await asyncio.to_thread(_newcomer_s, self.address))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), 0.5)

        coming = asyncio.create_task(come_new())
        try:
            return await attack(address), slowest
        finally:
            over.set()
            await coming


def _newcomer_s(address: Address) -> float:
    """How long somebody waits who comes with a good question. Whoever loses his place comes again, as clients do."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < _PATIENCE_S:
        with contextlib.suppress(ConnectionError), socket.create_connection(address, timeout=_PATIENCE_S) as connection:
            connection.sendall(HELLO)
            if connection.recv(4):
                return time.monotonic() - began
    return waited


@contextlib.contextmanager
def besieged(place: Path, settings: Mapping[str, str]) -> Iterator[Siege]:
    """From the start of the broker, in a new directory, to its end, which has to be a good one."""
    place.mkdir()
    config = place / "broker.properties"
    keystore = place / "broker.pem"
    keystore.write_text(pem(server()))
    config.write_text(_LISTENERS.format(keystore=keystore))
    command = [sys.executable, "-m", "kohort.cli.main", "serve", "--data", str(place / "data"), "--http", "127.0.0.1:0"]
    command += ["--config", str(config)]
    for name, value in {"num.partitions": str(MEMBERS), **settings}.items():
        command += ["--set", f"{name}={value}"]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert broker.stdout is not None
    try:
        told = dict(word.split("=", 1) for word in broker.stdout.readline().split() if "=" in word)
        listeners = {}
        for listener in told["kafka"].split(","):
            protocol, _, address = listener.partition("://")
            host, _, port = address.rpartition(":")
            listeners[protocol] = Address(host, int(port))
        with _well_behaved(listeners[PLAINTEXT]) as group:
            yield Siege(listeners, f"http://{told['http']}/", broker.pid, group)
    finally:
        broker.terminate()
        broker.communicate(timeout=_PATIENCE_S)
    assert broker.returncode == 0, broker.returncode


@contextlib.contextmanager
def _well_behaved(address: Address) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.hostile.well_behaved", f"{address.host}:{address.port}"]
    group = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert group.stdout is not None
    try:
        assert group.stdout.readline() == "ready\n", "the group did not come together"
        yield group
    finally:
        try:
            group.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            group.kill()
            group.communicate()


def shown(rounds: Sequence[Round]) -> Iterator[str]:
    """A line for each, and what was noticed."""
    yield (
        f"{'':34}{'connections':>12}{'ended':>8}{'seconds':>9}{'newcomer':>11}{'slowest':>10}{'records':>9}{'memory':>10}"
    )
    for one in rounds:
        yield (
            f"{one.name:34}{one.outcome.opened:12,}{one.outcome.ended:8,}{one.seconds:9.1f}"
            f"{one.newcomer_ms:8,.0f} ms{one.slowest_ms:7,.0f} ms{one.records:9,}{one.most_mib:6,.0f} MiB"
            f"{'  ' + one.outcome.told if one.outcome.told else ''}"
        )
        yield from (f"    the group noticed: {complaint}" for complaint in one.complaints)
