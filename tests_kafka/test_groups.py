"""`kohort groups` with Apache Kafka 2.6 and 4.x, beside what Kafka's own tool says of the same groups."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import kafka, servers
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests_clients.building import jars, java
from tests_clients.test_kafka_tools import TOOLS, table

from tests_kafka.secured import PASSWORD, USER, secured_kafka

pytestmark = pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven")

KOHORT = Path(sys.executable).with_name("kohort")
PATIENCE_S = 300.0
TOPIC = "orders"
NEW, OLD = servers.KAFKA_VERSION, kafka.VERSION
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}


@contextlib.contextmanager
def old_kafka(work: Path) -> Iterator[str]:
    own = {"broker.id": "1", "log.dirs": str(work / "logs"), "offsets.topic.replication.factor": "1"}
    with kafka.running(work, SETTINGS | own) as broker:
        broker.await_offsets_topic(3)
        yield f"127.0.0.1:{broker.port}"


@contextlib.contextmanager
def new_kafka(work: Path) -> Iterator[str]:
    with servers.apache_kafka(SETTINGS)(work) as server:
        yield server.address


def make_groups(address: str) -> None:
    """A topic of three partitions with 30, 7 and 0 records, and a group without members."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": address})
    for partition, count in ((0, 30), (1, 7)):
        for number in range(count):
            producer.produce(TOPIC, str(number).encode(), partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    commit(address, "billing", {0: 10, 1: 3})


def commit(address: str, group: str, offsets: dict[int, int]) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(TOPIC, *pair) for pair in offsets.items()], asynchronous=False)
    consumer.close()


@contextlib.contextmanager
def member(address: str, group: str, protocol: str, **settings: str) -> Iterator[None]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "reader-1",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([TOPIC])
    while len(consumer.assignment()) < 3:
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 29)], asynchronous=False)
    yield
    consumer.close()


@pytest.fixture(scope="module", params=[NEW, OLD])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    start = new_kafka if request.param == NEW else old_kafka
    with start(tmp_path_factory.mktemp("kafka") / "broker") as address:
        make_groups(address)
        yield address


def ours(address: str, command: str, *arguments: str, code: int = 0) -> str:
    whole = [KOHORT, "groups", command, "--bootstrap", address, *arguments]
    done = subprocess.run(whole, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def told(address: str, command: str, *arguments: str) -> Any:
    return json.loads(ours(address, command, *arguments, "--format", "json"))


def theirs(address: str, *arguments: str) -> str:
    tool = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
    whole = java(f"{jars('tools.xml')}/*", tool, "--bootstrap-server", address, *arguments)
    done = subprocess.run(whole, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def offsets(address: str, group: str) -> dict[int, int]:
    rows = table(theirs(address, "--describe", "--group", group), "PARTITION", "CURRENT-OFFSET")
    return {int(partition): int(offset) for partition, offset in rows}


def test_what_is_shown_is_what_kafkas_tool_shows(cluster: str) -> None:
    columns = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    members = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    with member(cluster, "readers", "classic", **{"group.instance.id": "till"}):
        assert ours(cluster, "list").split() == sorted(theirs(cluster, "--list").split()) == ["billing", "readers"]
        states = ours(cluster, "list", "--state")
        assert table(states, "GROUP", "STATE") == table(theirs(cluster, "--list", "--state"), "GROUP", "STATE")
        for group in ("billing", "readers"):
            shown = ours(cluster, "describe", "--group", group)
            assert shown.split()[: len(columns)] == columns
            assert table(shown, *columns) == table(theirs(cluster, "--describe", "--group", group), *columns)
        shown = ours(cluster, "describe", "--group", "readers", "--members", "--verbose")
        kafkas = theirs(cluster, "--describe", "--group", "readers", "--members")
        assert table(shown, *members) == table(kafkas, *members)
        assert "orders(0,1,2)" in shown
        state = ours(cluster, "describe", "--group", "readers", "--state").split()
        kafkas_state = theirs(cluster, "--describe", "--group", "readers", "--state").split()
        assert state[-6:] == kafkas_state[-6:]


def test_groups_are_reset_and_deleted_as_kafkas_tool_sees_it(cluster: str, tmp_path: Path) -> None:
    commit(cluster, "moved", {0: 10, 1: 3})
    to_latest = ("--group", "moved", "--topic", TOPIC, "--to-latest")
    plan = ours(cluster, "reset", *to_latest)
    dry = theirs(cluster, "--reset-offsets", *to_latest, "--dry-run")
    columns = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
    assert table(plan, *columns) == table(dry, *columns)
    assert offsets(cluster, "moved") == {0: 10, 1: 3}
    ours(cluster, "reset", *to_latest, "--execute")
    assert offsets(cluster, "moved") == {0: 30, 1: 7, 2: 0}
    ours(cluster, "reset", "--group", "moved", "--all-topics", "--by-duration", "PT1H", "--execute")
    assert offsets(cluster, "moved") == {0: 0, 1: 0, 2: 0}
    path = tmp_path / "moved.csv"
    ours(cluster, "reset", "--group", "moved", "--topic", f"{TOPIC}:0", "--to-offset", "12", "--execute")
    ours(cluster, "export", "--group", "moved", "--out", str(path))
    ours(cluster, "reset", *to_latest, "--execute")
    theirs(cluster, "--reset-offsets", "--group", "moved", "--from-file", str(path), "--execute")
    assert offsets(cluster, "moved") == {0: 12, 1: 0, 2: 0}
    ours(cluster, "reset", *to_latest, "--execute")
    ours(cluster, "import", str(path), "--group", "moved", "--execute")
    assert offsets(cluster, "moved") == {0: 12, 1: 0, 2: 0}
    ours(cluster, "delete-offsets", "--group", "moved", "--topic", f"{TOPIC}:1")
    assert offsets(cluster, "moved") == {0: 12, 2: 0}
    ours(cluster, "delete", "--group", "moved")
    assert "moved" not in theirs(cluster, "--list").split()
    assert "could not be deleted" not in ours(cluster, "delete", "--group", "moved", code=1)


def test_groups_with_members_are_refused(cluster: str) -> None:
    with member(cluster, "busy", "classic"):
        ours(cluster, "reset", "--group", "busy", "--all-topics", "--to-earliest", "--execute", code=1)
        ours(cluster, "delete", "--group", "busy", code=1)
        ours(cluster, "delete-offsets", "--group", "busy", "--topic", TOPIC, code=1)
        assert told(cluster, "export", "--group", "busy")["offsets"][0]["offset"] == 29
    ours(cluster, "delete", "--group", "busy")


@pytest.mark.parametrize("cluster", [NEW], indirect=True)
def test_groups_of_the_new_protocol_are_told_with_their_members(cluster: str) -> None:
    columns = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
    with member(cluster, "modern", "consumer"):
        assert told(cluster, "list", "--type", "consumer")[0]["group"] == "modern"
        found = told(cluster, "describe", "--group", "modern")["groups"]["modern"]
        assert (found["type"], found["state"], found["protocol"]) == ("Consumer", "Stable", "uniform")
        (only,) = found["members"]
        assert (only["client_id"], only["assignment"]) == ("reader-1", [[TOPIC, 0], [TOPIC, 1], [TOPIC, 2]])
        shown = ours(cluster, "describe", "--group", "modern")
        assert table(shown, *columns) == table(theirs(cluster, "--describe", "--group", "modern"), *columns)
        ours(cluster, "reset", "--group", "modern", "--all-topics", "--to-earliest", "--execute", code=1)
    ours(cluster, "reset", "--group", "modern", "--topic", TOPIC, "--to-latest", "--execute")
    assert offsets(cluster, "modern") == {0: 30, 1: 7, 2: 0}
    ours(cluster, "delete", "--group", "modern")
    assert told(cluster, "list", "--type", "consumer") == []


def test_a_cluster_is_entered_with_sasl_over_tls(tmp_path: Path) -> None:
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";'
    with secured_kafka(tmp_path / "kafka") as running:
        make_groups(running.plain)
        config = tmp_path / "client.properties"
        config.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
            f"sasl.jaas.config={login}\nssl.truststore.type=PEM\nssl.truststore.location={running.authority}\n"
        )
        assert ours(running.secured, "list", "--command-config", str(config)) == "billing\n"
        lags = told(running.secured, "describe", "--all-groups", "--command-config", str(config))["offsets"]
        assert [row["lag"] for row in lags] == [20, 4]
        config.write_text(config.read_text().replace(PASSWORD, "wrong"))
        refused = [KOHORT, "groups", "list", "--bootstrap", running.secured, "--command-config", config]
        done = subprocess.run(refused, capture_output=True, text=True, timeout=PATIENCE_S)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "uthentication failed" in done.stderr
        assert "wrong" not in done.stderr
