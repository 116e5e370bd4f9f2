"""`kohort migrate` into Apache Kafka 2.6 and 4.x, killed on its way, and back out of it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench import kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from tests.cli.group_scenes import commit
from tests.migration.scenes import TOPIC, copied, offsets_of, read_all, saved

from kohort.testing import Broker
from tests_kafka.test_groups import NEW, OLD, new_kafka, old_kafka

pytestmark = pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven")

KOHORT = Path(sys.executable).with_name("kohort")
PATIENCE_S = 300.0


class Address(NamedTuple):
    """A cluster as the helpers of other tests take it."""

    bootstrap_servers: str


@pytest.fixture(scope="module", params=[NEW, OLD])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    start = new_kafka if request.param == NEW else old_kafka
    with start(tmp_path_factory.mktemp("kafka") / "broker") as address:
        yield Address(address)


def migrate(source: Path | str, to: Any) -> Any:
    command = [sys.executable, "-m", "kohort.cli.main", "migrate", source, "--to", to.bootstrap_servers]
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def log_end(cluster: Any, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "looker"})
    if topic not in consumer.list_topics().topics:
        return 0
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)
    consumer.close()
    return end


def test_a_log_of_every_kind_gets_into_kafka_though_it_is_killed_on_its_way(cluster: Any, tmp_path: Path) -> None:
    logs = saved(tmp_path, {"many-0": 21, "many-1": 22}, steps=600)
    command = [sys.executable, "-m", "kohort.cli.main", "migrate", tmp_path, "--to", cluster.bootstrap_servers]
    for kill in range(3):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            before = log_end(cluster, "many")
            while process.poll() is None and log_end(cluster, "many") <= before + 10 * kill:
                pass
            process.kill()
    told = migrate(tmp_path, cluster)
    assert told["verified"]
    for number in (0, 1):
        assert read_all(cluster, "many", number) == copied(logs[f"many-{number}"].visible())


def test_topics_settings_and_groups_get_into_kafka_and_back(cluster: Any, tmp_path: Path) -> None:
    settings = {"cleanup.policy": "compact", "retention.ms": "123456789", "message.downconversion.enable": "false"}
    with Broker(tmp_path) as source:
        source.create_topic(TOPIC, 2, settings)
        producer = Producer({"bootstrap.servers": source.bootstrap_servers})
        for number in range(500):
            producer.produce(TOPIC, b"%d" % number, key=b"%d" % (number % 90), partition=0, headers=[("h", b"x")])
        assert producer.flush(PATIENCE_S) == 0
        source.compact(TOPIC)
        for offset in (0, 250, 499, 500):
            commit(source, f"group-{offset}", {0: offset})
    told = migrate(tmp_path, cluster)
    (row,) = (one for one in told["partitions"] if one["partition"] == 0)
    assert row["copied"] < 500
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    found = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    own = {name: entry.value for name, entry in found.items() if entry.source == 1}
    assert own["cleanup.policy"] == "compact"
    assert own["retention.ms"] == "123456789"
    assert "retention.bytes" not in own
    with Broker() as back:
        told_back = migrate(f"kafka://{cluster.bootstrap_servers}", back)
        assert told_back["verified"]
        assert read_all(back) == read_all(cluster)
        for offset in (0, 250, 499, 500):
            (wanted,) = (group["offsets"] for group in told["groups"] if group["group"] == f"group-{offset}")
            assert offsets_of(back, f"group-{offset}") == {(TOPIC, 0): (wanted[0]["offset"], "")}
