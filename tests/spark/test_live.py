"""A live cluster, read while its groups commit: the same tables as from its files."""

import contextlib
import io
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kohort.errors import KohortError
from kohort.log.security import BadSecurity, parse_security, read_properties
from kohort.log.source import BadSource
from kohort.spark import live, offsets
from kohort.spark.inputs import OFFSETS_TOPIC, LogChanged, share_out
from kohort.spark.live import LiveAddress, leaving_clusters, live_logs
from kohort.spark.options import BadOption, parse_options
from kohort.spark.reading import read
from kohort.spark.replaying import replay
from kohort.spark.request import Request
from kohort.spark.schema import LOG_TABLES, arrow_schema_of
from kohort.testing import Broker
from tests.slow import slow
from tests.spark.live_broker import TOPIC, commit, committed, committing, told_broker
from tests.spark.runs import by_place, rows_in, rows_read, run_on

SECRET = "correct horse battery staple"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live")


@pytest.fixture(scope="module")
def broker(data: Path) -> Iterator[Broker]:
    with told_broker(str(data)) as running:
        yield running


def fetched(address: LiveAddress, table: str) -> list[dict[str, Any]]:
    """A table of a live topic, without Spark."""
    (stretches,) = share_out(live_logs(address, OFFSETS_TOPIC), 1)
    schema = arrow_schema_of(table)
    with leaving_clusters(stretches):
        return [row for batch in read(stretches, Request(table, tuple(schema.names))) for row in batch.to_pylist()]


@pytest.mark.parametrize("table", LOG_TABLES)
def test_a_running_broker_gives_what_its_files_give(broker: Broker, data: Path, table: str) -> None:
    files: list[dict[str, Any]] | None = None
    while files != (files := by_place(rows_read(data, table))):  # markers come after the answer to who asked for them
        rows = by_place(fetched(LiveAddress(broker.bootstrap_servers), table))
    assert rows == files
    assert rows or table == "quarantine"


def test_what_consumers_hide_is_there(broker: Broker) -> None:
    rows = fetched(LiveAddress(broker.bootstrap_servers), "records")
    assert sum(row["control"] for row in rows) == 2
    fates = {row["group"]: row["fate"] for row in fetched(LiveAddress(broker.bootstrap_servers), "offset_commits")}
    assert fates["kept"] == "committed"
    assert fates["dropped"] == "aborted"
    assert fates["hanging"] == "open"
    assert fates["group-0"] == "plain"


@pytest.mark.parametrize("step", [1, 2, 7])
def test_however_a_partition_is_cut_each_record_is_there_once(
    broker: Broker, data: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_STEP", step)
    address = LiveAddress(broker.bootstrap_servers)
    for table in ("records", "offset_commits"):
        assert by_place(fetched(address, table)) == by_place(rows_read(data, table))


def test_the_data_source_reads_a_cluster(broker: Broker, data: Path, spark: SparkSession) -> None:
    address = broker.bootstrap_servers
    files = sorted(map(str, offsets.commits(spark, str(data)).collect()))
    reader = spark.read.format("kohort").option("table", "offset_commits")
    assert sorted(map(str, reader.option("kafka.bootstrap.servers", address).load().collect())) == files
    assert sorted(map(str, offsets.commits(spark, f"kafka://{address}").collect())) == files


def test_the_replay_of_a_cluster_says_what_the_cluster_says(broker: Broker, spark: SparkSession) -> None:
    with committing(broker.bootstrap_servers, "busy"):
        replayed = replay(spark, f"kafka://{broker.bootstrap_servers}", partitions=3).cached()
        found = {(row["group"], row["topic"], row["topic_partition"]): row for row in replayed.offsets.collect()}
    for group in ("group-0", "group-3", "kept", "readers"):
        told = {key[1:]: row["committed_offset"] for key, row in found.items() if key[0] == group}
        assert told == committed(broker.bootstrap_servers, group)
    assert ("busy", TOPIC, 1) in found
    assert [row["group"] for row in replayed.pending.collect()] == ["hanging"]
    replayed.unpersist()


@slow
def test_a_run_makes_all_tables_of_a_cluster(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    address = broker.bootstrap_servers
    commit(address, "late", 10)
    with committing(address, "busy"):
        manifest = run_on(spark, f"kafka://{address}", tmp_path / "out", kafka={"kafka.security.protocol": "PLAINTEXT"})
    assert manifest.source == f"kafka://{address}"
    assert manifest.ends == "live_cluster"
    (late,) = (row for row in rows_in(tmp_path / "out", "lag") if row["group"] == "late")
    assert late["source"] == "end_offsets"
    assert (late["end_offset"], late["lag"]) == (30, 20)
    assert late["lag_seconds"] is not None
    assert late["lag_seconds"] >= 0
    busy = [row for row in rows_in(tmp_path / "out", "current_offsets") if row["group"] == "busy"]
    assert len(busy) == 1
    assert not (tmp_path / "out/.kohort").exists()


def test_a_cluster_that_is_not_there_is_told_in_one_line() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(BadSource, match=f"kafka://127.0.0.1:{port}: cannot connect"):
            live_logs(LiveAddress(f"127.0.0.1:{port}"), OFFSETS_TOPIC)


def test_a_topic_that_is_not_there_is_told_with_those_that_are(broker: Broker) -> None:
    with pytest.raises(BadSource, match=f"no topic nothing; it has .*{TOPIC}"):
        live_logs(LiveAddress(broker.bootstrap_servers), "nothing")


def test_a_broker_that_speaks_no_tls_is_told_in_one_line(broker: Broker) -> None:
    security = parse_security({"security.protocol": "SSL"})
    with pytest.raises(BadSource, match=r"kafka://127\.0\.0\.1"):
        live_logs(LiveAddress(broker.bootstrap_servers, security), OFFSETS_TOPIC)


def test_what_was_read_and_is_gone_is_an_error(broker: Broker) -> None:
    with pytest.raises(LogChanged, match=r"ends at \d+, before 1000000"):
        live_logs(LiveAddress(broker.bootstrap_servers), OFFSETS_TOPIC, since={0: 1_000_000})


def test_secrets_are_in_no_message_and_no_plan(broker: Broker, spark: SparkSession) -> None:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.sasl.jaas.config": f'org.example.PlainLoginModule required username="me" password="{SECRET}";',
        "kafka.ssl.key.password": SECRET,
    }
    rows = spark.read.format("kohort").options(**given).load()
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        rows.explain(extended=True)
    assert "kohort" in told.getvalue()
    wrong = {**given, "kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "GSSAPI"}
    for options in (wrong, {**given, "kafka.ssl.nonsense": "x"}, {**given, "path": "somewhere"}):
        with pytest.raises(KohortError) as refused:
            parse_options(options)
        told.write(str(refused.value))
        with pytest.raises(PySparkException) as refused_by_spark:
            spark.read.format("kohort").options(**options).load()
        told.write(str(refused_by_spark.value))
    told.write(repr(parse_options(given)))
    assert SECRET not in told.getvalue()


def test_a_cluster_is_read_alone(broker: Broker) -> None:
    with pytest.raises(BadSource, match="read alone"):
        parse_options({"paths": json.dumps([f"kafka://{broker.bootstrap_servers}", "elsewhere"])})
    with pytest.raises(BadOption, match="not both"):
        parse_options({"path": "elsewhere", "kafka.bootstrap.servers": broker.bootstrap_servers})


def test_settings_of_connections_are_those_of_kafka() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="a\\"b;c";'
    told = parse_security(
        {"security.protocol": "sasl_plaintext", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas}
    )
    assert (told.protocol, told.mechanism, told.username, told.password) == (
        "SASL_PLAINTEXT",
        "SCRAM-SHA-512",
        "me",
        'a"b;c',
    )
    same = parse_security({"security.protocol": "SASL_PLAINTEXT", "sasl.username": "me", "sasl.password": SECRET})
    assert same.password == SECRET
    assert SECRET not in repr(same)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"security.protocol": "TELNET"}, "must be PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, "needs sasl.jaas.config"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"ssl.truststore.location": "store.jks", "ssl.truststore.type": "JKS"}, "only PEM"),
        ({"ssl.truststore.location": "nowhere.pem"}, "No such file"),
        ({"ssl.endpoint.identification.algorithm": "ldap"}, "must be https or empty"),
        ({"fetch.min.bytes": "1"}, "no setting 'fetch.min.bytes'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(BadSecurity, match=told):
        parse_security(given)


def test_a_file_of_settings_is_read_as_kafkas_tools_read_it(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# to get in\nsecurity.protocol = SASL_SSL\n\nsasl.jaas.config=a.Module required \\\n username=me;\n"
    )
    assert read_properties(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": "a.Module required  username=me;",
    }
    path.write_text("security.protocol\n")
    with pytest.raises(BadSecurity, match="line 1: expected name=value"):
        read_properties(path)
