"""Kafka's own tools: `kafka-consumer-groups`, `kafka-acls`, and the verifiable producer and consumer."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests_clients.broker import Broker
from tests_clients.building import JAVA, jars, java

TOOLS = "org.apache.kafka.tools"
_PATIENCE_S = 120.0

pytestmark = pytest.mark.skipif(JAVA.missing() is not None, reason=f"{JAVA.missing()} is not installed")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path, {"num.partitions": "2"})
    broker.start()
    yield broker
    broker.end()


def command(tool: str, *arguments: str) -> tuple[str, ...]:
    return java(f"{jars('tools.xml')}/*", tool, *arguments)


def run(broker: Broker, tool: str, *arguments: str) -> str:
    """What a tool prints."""
    whole = command(tool, "--bootstrap-server", broker.address, *arguments)
    done = subprocess.run(whole, capture_output=True, text=True, timeout=_PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def groups(broker: Broker, *arguments: str) -> str:
    return run(broker, f"{TOOLS}.consumer.group.ConsumerGroupCommand", *arguments)


def events(text: str, name: str) -> list[dict[str, Any]]:
    """What a verifiable client told, a JSON object a line."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [event for event in found if event["name"] == name]


def table(text: str, *columns: str) -> list[list[str]]:
    """Some columns of what `kafka-consumer-groups` prints, in the order of the first."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    head = next(number for number, line in enumerate(lines) if line[0] == "GROUP")
    places = [lines[head].index(column) for column in columns]
    return sorted([line[place] for place in places] for line in lines[head + 1 :])


class VerifiableConsumer:
    """A `kafka-verifiable-consumer`, from `with` to the end of its block."""

    def __init__(self, broker: Broker, *arguments: str) -> None:
        whole = command(f"{TOOLS}.VerifiableConsumer", "--bootstrap-server", broker.address, *arguments)
        self._process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._told: list[str] = []
        self._changed = threading.Condition()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdout is not None
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        finally:
            self._process.kill()
            self._listener.join()
            self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._told.append(line)
                self._changed.notify_all()

    def events(self, name: str) -> list[dict[str, Any]]:
        return events("".join(self._told), name)

    def records(self) -> int:
        return sum(event["count"] for event in self.events("records_consumed"))

    def committed(self) -> int:
        """The sum of the last offsets that were committed."""
        commits = self.events("offsets_committed")
        assert all(event["success"] for event in commits)
        return sum({one["partition"]: one["offset"] for event in commits for one in event["offsets"]}.values())

    def wait_until_committed(self, offsets: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.committed() >= offsets, _PATIENCE_S), self._told


def produce(broker: Broker, count: int) -> str:
    """Records with ten keys, so that both partitions get some."""
    tool = f"{TOOLS}.VerifiableProducer"
    return run(broker, tool, "--topic", "orders", "--max-messages", str(count), "--repeating-keys", "10")


def test_verifiable_clients_verify(broker: Broker) -> None:
    for total in (500, 1000):
        told = produce(broker, 500)
        assert len(events(told, "producer_send_success")) == 500
        assert events(told, "tool_data")[0]["acked"] == 500
        with VerifiableConsumer(
            broker, "--topic", "orders", "--group-id", "g", "--reset-policy", "earliest"
        ) as consumer:
            consumer.wait_until_committed(total)
        assert consumer.committed() == total
        assert consumer.records() == 500
        broker.restart()


def test_consumer_groups_are_listed_described_reset_and_deleted(broker: Broker) -> None:
    produce(broker, 100)
    billing = ("--topic", "orders", "--group-id", "billing", "--reset-policy", "earliest")
    with VerifiableConsumer(broker, *billing) as consumer:
        consumer.wait_until_committed(100)
        assert groups(broker, "--list").split() == ["billing"]
        assert groups(broker, "--list", "--state", "Stable").split()[-2:] == ["billing", "Stable"]
        described = groups(broker, "--describe", "--group", "billing")
        rows = table(described, "TOPIC", "PARTITION", "LAG", "HOST")
        assert rows == [["orders", "0", "0", "/127.0.0.1"], ["orders", "1", "0", "/127.0.0.1"]]
        assert sum(int(offset) for (offset,) in table(described, "CURRENT-OFFSET")) == 100
        members = groups(broker, "--describe", "--group", "billing", "--members")
        assert table(members, "HOST", "#PARTITIONS") == [["/127.0.0.1", "2"]]
        assert " Stable " in groups(broker, "--describe", "--group", "billing", "--state")
        assert "GroupNotEmptyException" in groups(broker, "--delete", "--group", "billing")

    everything = ("--group", "billing", "--topic", "orders")
    plan = groups(broker, "--reset-offsets", *everything, "--to-earliest", "--dry-run")
    assert table(plan, "PARTITION", "NEW-OFFSET") == [["0", "0"], ["1", "0"]]
    groups(broker, "--reset-offsets", *everything, "--to-earliest", "--execute")
    assert table(groups(broker, "--describe", "--group", "billing"), "CURRENT-OFFSET") == [["0"], ["0"]]
    with VerifiableConsumer(broker, *billing) as consumer:
        consumer.wait_until_committed(100)
    assert consumer.records() == 100

    told = groups(broker, "--delete-offsets", "--group", "billing", "--topic", "orders:0")
    assert "Successful" in told
    assert table(groups(broker, "--describe", "--group", "billing"), "PARTITION") == [["1"]]
    assert "successful" in groups(broker, "--delete", "--group", "billing")
    assert groups(broker, "--list").split() == []


@pytest.fixture
def authorizing(tmp_path: Path) -> Iterator[Broker]:
    """Whoever comes may do everything, for nobody says who he is."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker = Broker(tmp_path, settings)
    broker.start()
    yield broker
    broker.end()


def entries(broker: Broker) -> list[str]:
    """As `kohort acls` tells them."""
    command = [str(Path(sys.executable).parent / "kohort"), "acls", "list", "--bootstrap", broker.address]
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, timeout=_PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return sorted(" ".join(told.values()) for told in json.loads(done.stdout))


def test_access_control_lists_are_kept(authorizing: Broker) -> None:
    def acls(*arguments: str) -> str:
        return run(authorizing, f"{TOOLS}.AclCommand", *arguments)

    consumer = ("--consumer", "--topic", "ord", "--group", "billing", "--resource-pattern-type", "prefixed")
    acls("--add", "--allow-principal", "User:alice", *consumer)
    denied = ("--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--operation", "Write", "--topic", "orders")
    acls("--add", *denied)
    assert entries(authorizing) == [
        "GROUP billing PREFIXED User:alice * READ ALLOW",
        "TOPIC ord PREFIXED User:alice * DESCRIBE ALLOW",
        "TOPIC ord PREFIXED User:alice * READ ALLOW",
        "TOPIC orders LITERAL User:bob 10.0.0.7 WRITE DENY",
    ]
    listed = acls("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "principal=User:alice, host=*, operation=READ, permissionType=ALLOW" in listed
    assert "principal=User:bob, host=10.0.0.7, operation=WRITE, permissionType=DENY" in listed
    assert "billing" not in listed
    acls("--remove", "--force", *denied)
    acls("--remove", "--force", "--topic", "ord", "--resource-pattern-type", "prefixed")
    assert entries(authorizing) == ["GROUP billing PREFIXED User:alice * READ ALLOW"]
