"""The data source as a stream: whatever the batches, all rows once, as a batch query gives them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kohort.spark import compat, offsets
from kohort.spark.inputs import OFFSETS_TOPIC, LogChanged
from kohort.spark.live import LiveAddress
from kohort.spark.marks import FollowedCluster, FollowedFiles, limited, offsets_of
from kohort.spark.options import BadOption, parse_options
from kohort.spark.reading import read
from kohort.spark.request import Request
from kohort.spark.schema import arrow_schema_of
from kohort.spark.stream import stream_reader
from kohort.testing import Broker
from tests.golden_sets import GOLDEN
from tests.slow import slow
from tests.spark.live_broker import SETTINGS, TOPIC, Transaction, commit
from tests.spark.runs import by_place, rows_read

PATIENCE_S = 120


class Streamed:
    """What the batches of a stream held, batch by batch."""

    def __init__(self, spark: SparkSession, checkpoint: Path, **options: Any) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self._spark, self._checkpoint = spark, checkpoint
        self._options = {name: str(value) for name, value in options.items()}

    def run(self) -> list[dict[str, Any]]:
        """All that is there now, in the order of the log."""
        rows = self._spark.readStream.format("kohort").options(**self._options).load()
        writer = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self._checkpoint))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S)
        return self.rows

    @property
    def rows(self) -> list[dict[str, Any]]:
        return by_place([row for batch in self.batches.values() for row in batch])

    def _take(self, rows: DataFrame, number: int) -> None:
        self.batches[number] = [row.asDict(recursive=True) for row in rows.collect()]


def batch_rows(spark: SparkSession, table: str, source: str) -> list[dict[str, Any]]:
    return by_place([row.asDict(recursive=True) for row in offsets.table(spark, table, source).collect()])


def streamed_rows(followed: Any, table: str, most: int | None) -> Iterator[list[dict[str, Any]]]:
    """The micro-batches of a stream, without Spark."""
    schema = arrow_schema_of(table)
    start: dict[str, Any] = {}
    while (end := json.loads(json.dumps(followed.last(start, most)))) != start:
        request = Request(table, tuple(schema.names), since=offsets_of(start), until=offsets_of(end))
        shares = followed.between(start, end, 2)
        yield [row for some in shares for batch in read(some, request) for row in batch.to_pylist()]
        start = end


@pytest.mark.parametrize("most", [7, None])
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_small_batches_of_a_log_are_the_whole_log(golden: Any, most: int | None) -> None:
    for table in ("records", "quarantine"):
        batches = list(streamed_rows(FollowedFiles((str(golden.path),), OFFSETS_TOPIC), table, most))
        assert by_place([row for batch in batches for row in batch]) == by_place(rows_read(golden.path, table))


def test_a_limit_is_shared_out_by_what_there_is() -> None:
    assert limited({0: 0, 1: 100}, {0: 30, 1: 110}, None) == {0: 30, 1: 110}
    assert limited({0: 0, 1: 100}, {0: 30, 1: 110}, 40) == {0: 30, 1: 110}
    assert limited({0: 0, 1: 100}, {0: 30, 1: 110}, 20) == {0: 15, 1: 105}
    for most in range(1, 60):
        taken = limited({0: 0, 1: 5, 2: 7}, {0: 30, 1: 5, 2: 8}, most)
        assert sum(taken.values()) - 12 == min(most, 31)


def test_segments_that_are_cleaned_between_two_batches_are_neither_read_twice_nor_left_out(tmp_path: Path) -> None:
    with Broker(tmp_path, settings=SETTINGS) as broker:
        broker.create_topic(TOPIC, 2)
        for number in range(30):
            commit(broker.bootstrap_servers, "same", number)
        followed = FollowedFiles((str(tmp_path),), OFFSETS_TOPIC)
        first = json.loads(json.dumps(followed.last({}, 20)))
        seen = rows_between(followed, {}, first)
        assert broker.compact(OFFSETS_TOPIC) > 0
        commit(broker.bootstrap_servers, "same", 30)
        rest = rows_between(followed, first, followed.last(first, None))
        assert max(row["offset"] for row in seen) < min(row["offset"] for row in rest)
        last = max(row["offset"] for row in seen)
        there = [row["offset"] for row in rows_read(tmp_path, "records") if row["offset"] > last]
        assert sorted(row["offset"] for row in rest) == sorted(there)


def rows_between(followed: Any, start: Any, end: Any) -> list[dict[str, Any]]:
    schema = arrow_schema_of("records")
    request = Request("records", tuple(schema.names), since=offsets_of(start), until=offsets_of(end))
    return [
        row for some in followed.between(start, end, 1) for batch in read(some, request) for row in batch.to_pylist()
    ]


@slow
def test_a_stream_of_files_goes_on_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data, settings=SETTINGS) as broker:
        broker.create_topic(TOPIC, 2)
        for number in range(10):
            commit(broker.bootstrap_servers, f"group-{number % 3}", number)
        stream = Streamed(spark, tmp_path / "checkpoint", path=data, table="records")
        first = stream.run()
        assert first == by_place(rows_read(data, "records"))
        assert stream.run() == first
        for number in range(10):
            commit(broker.bootstrap_servers, f"group-{number % 4}", 10 + number)
        assert stream.run() == by_place(rows_read(data, "records"))
        batches = [batch for batch in stream.batches.values() if batch]
        assert [len(batch) for batch in batches] == [10, 10]


@slow
def test_a_stream_of_a_cluster_is_its_batches(spark: SparkSession, tmp_path: Path) -> None:
    with Broker(tmp_path / "data", settings=SETTINGS) as broker:
        address = broker.bootstrap_servers
        broker.create_topic(TOPIC, 2)
        transaction = Transaction(address, "undecided")
        for number in range(10):
            commit(address, f"group-{number % 3}", number)
        transaction.offer(5)
        options = {"kafka.bootstrap.servers": address, "table": "offset_commits"}
        limit = {"maxOffsetsPerTrigger": 4} if compat.admits() else {}
        stream = Streamed(spark, tmp_path / "checkpoint", **options, **limit)
        stream.run()
        if compat.admits():
            assert max(map(len, stream.batches.values())) <= 4
            assert len(stream.batches) > 2
        transaction.commit()
        transaction.offer(6)
        transaction.commit()
        transaction.close()
        rows = stream.run()
        whole = batch_rows(spark, "offset_commits", f"kafka://{address}")
    undecided = ("fate", "decided_offset", "decided_timestamp")
    assert [without(row, *undecided) for row in rows] == [without(row, *undecided) for row in whole]
    # A stream says what was known when it read: a later batch cannot change a row of an earlier one.
    fates = {row["committed_offset"]: row["fate"] for row in rows if row["group"] == "undecided"}
    assert fates[5] == "open"
    assert {row["fate"] for row in whole if row["group"] == "undecided"} == {"committed"}


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def test_a_stream_may_begin_at_the_end(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN[0].path, tmp_path / "log")
    latest = stream_reader({"path": str(tmp_path / "log"), "startingOffsets": "latest"}, ("offset",))
    assert latest.initialOffset() == FollowedFiles((str(tmp_path / "log"),), OFFSETS_TOPIC).last({}, None)
    assert stream_reader({"path": str(tmp_path / "log")}, ("offset",)).initialOffset() == {}
    marks = {"0": {"offset": 3}}
    some = stream_reader({"path": str(tmp_path / "log"), "startingOffsets": json.dumps(marks)}, ("offset",))
    assert some.initialOffset() == marks


@pytest.mark.parametrize("told", ["later", "[]", '{"0": 5}', '{"a": {"offset": 1}}'])
def test_where_a_stream_begins_must_be_said_clearly(told: str) -> None:
    with pytest.raises(BadOption, match="startingOffsets is"):
        parse_options({"path": "somewhere", "startingOffsets": told})


def test_a_stream_that_has_read_more_than_there_is_fails(tmp_path: Path) -> None:
    with Broker(tmp_path, settings=SETTINGS) as broker:
        cluster = FollowedCluster(LiveAddress(broker.bootstrap_servers), OFFSETS_TOPIC)
        with pytest.raises(LogChanged, match="ends at 0, before 50"):
            cluster.between({"0": {"offset": 50}}, {"0": {"offset": 60}}, None)
        cluster.close()
