"""The offsets topic of a running Apache Kafka as tables, while its groups commit, over PLAINTEXT and SASL_SSL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench import kafka
from pyspark.sql import SparkSession
from tests.spark.live_broker import committed, committing, tell_story
from tests.spark.runs import Watched, rows_in

from kohort.log.source import BadSource
from kohort.spark.inputs import OFFSETS_TOPIC
from kohort.spark.live import live_logs
from kohort.spark.options import parse_options
from kohort.spark.order import Order
from kohort.spark.pipeline import run
from kohort.spark.session import get_spark
from tests_kafka.secured import PASSWORD, USER, Secured, secured_kafka

pytestmark = pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven")

GROUPS = ("group-0", "group-1", "group-2", "group-3", "kept", "readers")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = get_spark("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_kafka(tmp_path_factory.mktemp("kafka") / "4") as running:
        hanging = tell_story(running.plain)
        yield running
        for transaction in hanging:
            transaction.close()


def guarded(cluster: Secured, mechanism: str, password: str = PASSWORD, **changes: str) -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    login = f'org.apache.kafka.common.security.{module} required username="{USER}" password="{password}";'
    return {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": login,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(cluster.authority),
        **changes,
    }


def check_tables(spark: SparkSession, address: str, out: Path, plain: str, options: dict[str, str]) -> None:
    with committing(plain, "busy"):
        manifest = run(spark, Order(source=f"kafka://{address}", out=out, kafka=options), Watched())
    assert manifest.ends == "live_cluster"
    found: dict[str, dict[Any, int]] = {}
    for row in rows_in(out, "current_offsets"):
        found.setdefault(row["group"], {})[row["topic"], row["topic_partition"]] = row["committed_offset"]
    for group in GROUPS:
        assert found[group] == committed(plain, group)
    assert "busy" in found
    assert [row["group"] for row in rows_in(out, "pending_offsets")] == ["hanging"]
    fates = {row["group"]: row["fate"] for row in rows_in(out, "offset_commits")}
    assert (fates["kept"], fates["dropped"], fates["hanging"]) == ("committed", "aborted", "open")
    lag = {(row["group"], row["topic_partition"]): row for row in rows_in(out, "lag")}
    assert lag["readers", 0]["lag"] == 0
    assert lag["group-0", 0]["end_offset"] == 30
    assert lag["group-0", 0]["source"] == "end_offsets"
    assert PASSWORD not in (out / "kohort.json").read_text()


def test_the_tables_of_a_running_kafka_4(cluster: Secured, spark: SparkSession, tmp_path: Path) -> None:
    check_tables(spark, cluster.plain, tmp_path / "out", cluster.plain, {})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_the_tables_through_sasl_over_tls(
    cluster: Secured, spark: SparkSession, tmp_path: Path, mechanism: str
) -> None:
    check_tables(spark, cluster.secured, tmp_path / "out", cluster.plain, guarded(cluster, mechanism))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"password": "wrong"}, "[Aa]uthentication failed"),
        ({"kafka.ssl.truststore.location": ""}, "CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_a_cluster_that_refuses_us_is_told_in_one_line(cluster: Secured, changes: dict[str, str], told: str) -> None:
    options = {"kafka.bootstrap.servers": cluster.secured, **guarded(cluster, "PLAIN", **changes)}
    asked = parse_options({name: value for name, value in options.items() if value})
    assert asked.live is not None
    with pytest.raises(BadSource, match=told) as refused:
        live_logs(asked.live, OFFSETS_TOPIC)
    assert PASSWORD not in str(refused.value)
    assert "wrong" not in str(refused.value)


def test_the_tables_of_a_running_kafka_2_6(spark: SparkSession, tmp_path: Path) -> None:
    settings = {
        "broker.id": "1",
        "log.dirs": str(tmp_path / "kafka/logs"),
        "num.partitions": "2",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    with kafka.running(tmp_path / "kafka", settings) as broker:
        broker.await_offsets_topic(3)
        address = f"127.0.0.1:{broker.port}"
        hanging = tell_story(address)
        check_tables(spark, address, tmp_path / "out", address, {})
        for transaction in hanging:
            transaction.close()
