"""Spark's progress under a consumer group, as Kafka's tools see it."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent

from kohort.spark.listener import OffsetCommitListener, end_offsets
from kohort.testing import Broker
from tests.slow import slow
from tests.spark.live_broker import SETTINGS, TOPIC, commit, committed

PATIENCE_S = 120


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as running:
        running.create_topic(TOPIC, 2)
        yield running


def progress_of(spark: SparkSession, broker: Broker, checkpoint: Path) -> dict[str, Any]:
    """What Spark tells of a real batch."""
    rows = spark.readStream.format("kohort").option("kafka.bootstrap.servers", broker.bootstrap_servers).load()
    writer = rows.writeStream.queryName("reading").format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S)
    told = query.lastProgress
    assert told is not None
    return dict(json.loads(told.json if hasattr(told, "json") else json.dumps(told)))


def of_kafka(progress: dict[str, Any], *ends: dict[str, dict[str, int]]) -> QueryProgressEvent:
    """The same progress of a query whose sources are Spark's own Kafka source, in the form that Spark documents."""
    sources = [
        progress["sources"][0]
        | {"description": f"KafkaV2[Subscribe[{', '.join(end)}]]", "startOffset": None, "endOffset": json.dumps(end)}
        for end in ends
    ]
    return QueryProgressEvent.fromJson({"progress": progress | {"sources": sources}})


def test_the_ends_of_batches_are_committed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    commit(broker.bootstrap_servers, "other", 1)
    progress = progress_of(spark, broker, tmp_path)
    listener = OffsetCommitListener(broker.bootstrap_servers, "spark-group")
    listener.onQueryProgress(of_kafka(progress, {TOPIC: {"0": 5, "1": 3}}))
    listener.onQueryProgress(of_kafka(progress, {TOPIC: {"0": 9, "1": 4}}))
    listener.close()
    assert committed(broker.bootstrap_servers, "spark-group") == {(TOPIC, 0): 9, (TOPIC, 1): 4}
    assert broker.groups()["spark-group"].state == "Empty"


@slow
def test_each_query_may_have_a_group_of_its_own(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    commit(broker.bootstrap_servers, "other", 1)
    progress = progress_of(spark, broker, tmp_path)
    listener = OffsetCommitListener(broker.bootstrap_servers, {"reading": "its-group"}.get)
    listener.onQueryProgress(of_kafka(progress, {TOPIC: {"0": 5}}))
    listener.onQueryProgress(of_kafka(progress | {"name": "another"}, {TOPIC: {"0": 7}}))
    listener.close()
    assert committed(broker.bootstrap_servers, "its-group") == {(TOPIC, 0): 5}


def test_sources_that_are_not_kafkas_have_no_offsets(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    commit(broker.bootstrap_servers, "other", 1)
    heard = threading.Event()

    class Told(OffsetCommitListener):
        def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
            super().onQueryProgress(event)
            heard.set()

    listener = Told(broker.bootstrap_servers, "spark-group")
    spark.streams.addListener(listener)
    try:
        progress_of(spark, broker, tmp_path)
        assert heard.wait(PATIENCE_S)
    finally:
        spark.streams.removeListener(listener)
        listener.close()
    assert "spark-group" not in broker.groups()


def test_a_cluster_that_is_away_is_told_of_and_holds_nobody_up(
    spark: SparkSession, broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit(broker.bootstrap_servers, "other", 1)
    progress = progress_of(spark, broker, tmp_path)
    broker.stop()
    listener = OffsetCommitListener(broker.bootstrap_servers, "spark-group")
    listener.onQueryProgress(of_kafka(progress, {TOPIC: {"0": 5}}))
    listener.close()
    assert "was not committed" in caplog.text
    assert "cannot connect" in caplog.text


def test_offsets_are_told_as_spark_documents_them() -> None:
    assert end_offsets("KafkaV2[Subscribe[a, b]]", '{"a":{"0":23,"1":4},"b":{"2":1}}') == {
        ("a", 0): 23,
        ("a", 1): 4,
        ("b", 2): 1,
    }
    assert end_offsets("KafkaV2[Assign[a-0]]", None) == {}
    assert end_offsets("RateStreamV2[rowsPerSecond=1]", "5") == {}
