"""`spark.read.format("kohort")` on a real Spark."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.log.source import BadSource
from kohort.records.arrow import from_rows
from kohort.records.rows import describe
from kohort.spark import offsets
from kohort.spark.compat import filter_classes
from kohort.spark.options import BadOption
from kohort.spark.schema import SOURCE_TABLES, schema_of
from tests.golden_sets import GOLDEN, GoldenSet
from tests.spark.golden_tables import batches_of, instant

KAFKA_3 = next(golden for golden in GOLDEN if golden.name == "kafka-3.9.1")


def read(spark: SparkSession, path: Path, table: str = "records", **options: object) -> DataFrame:
    reader = spark.read.format("kohort").option("table", table)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(path))


def records_of(golden: GoldenSet) -> list[dict[str, object]]:
    rows = [
        describe(partition, batch.header, record)
        for partition, paths in golden.partitions().items()
        for batch in batches_of(paths)
        for record in batch.records
    ]
    return from_rows(rows).to_pylist()


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_records_arrive_cell_by_cell(spark: SparkSession, golden: GoldenSet) -> None:
    rows = read(spark, golden.path, partitions=3).orderBy("partition", "offset").toArrow().to_pylist()
    assert rows == records_of(golden)


def test_the_source_is_known_by_its_name_and_reads_records_by_default(spark: SparkSession) -> None:
    frame = spark.read.format("kohort").load(str(KAFKA_3.path))
    assert frame.schema == schema_of("records")
    assert frame.schema["group"].metadata["comment"] == "Group id"


def test_every_table_has_its_schema_with_comments(spark: SparkSession) -> None:
    for table in SOURCE_TABLES:
        assert read(spark, KAFKA_3.path, table).schema.jsonValue() == schema_of(table).jsonValue()


def test_the_number_of_input_partitions_is_what_was_asked(spark: SparkSession) -> None:
    frame = read(spark, KAFKA_3.path, "offset_commits", partitions=7)
    assert frame.select(fn.spark_partition_id()).distinct().count() > 1
    assert frame.count() == read(spark, KAFKA_3.path, "offset_commits").count() == 124


def test_columns_are_pruned_by_option_or_by_schema(spark: SparkSession) -> None:
    by_option = read(spark, KAFKA_3.path, "offset_commits", columns="offset, group")
    assert by_option.columns == ["offset", "group"]
    whole = schema_of("offset_commits")
    wanted = type(whole)([whole["offset"], whole["group"]])
    by_schema = spark.read.format("kohort").option("table", "offset_commits").schema(wanted).load(str(KAFKA_3.path))
    assert sorted(by_option.collect()) == sorted(by_schema.collect())
    assert by_option.count() == 124


def test_a_schema_with_another_type_is_refused(spark: SparkSession) -> None:
    reader = spark.read.format("kohort").option("table", "offset_commits").schema("offset bigint, timestamp bigint")
    with pytest.raises(PySparkException, match=r"offset_commits\.timestamp is timestamp, not bigint"):
        reader.load(str(KAFKA_3.path)).count()


def test_times_narrow_what_is_read(spark: SparkSession) -> None:
    times = sorted(row["timestamp"] for row in records_of(KAFKA_3))
    start, end = times[len(times) // 3], times[2 * len(times) // 3]
    rows = read(spark, KAFKA_3.path, startingTime=start, endingTime=instant(end)).select("timestamp").collect()
    assert sorted(row.timestamp for row in rows) == [time for time in times if start <= time <= end]


def test_filters_give_what_they_give_without_being_pushed(spark: SparkSession) -> None:
    """On group, topic and time, alone and together, with and without the planner's help."""
    commits = read(spark, KAFKA_3.path, "offset_commits")
    rows = commits.collect()
    middle = sorted(row.timestamp for row in rows)[60]
    group, topic = rows[5].group, rows[5].topic
    cases = [
        (fn.col("group") == group, lambda row: row.group == group),
        (
            fn.col("topic").isin(topic, "x") & (fn.col("timestamp") > middle),
            lambda row: row.topic == topic and row.timestamp > middle,
        ),
        (
            (fn.col("timestamp") <= middle) & (fn.col("group") != group),
            lambda row: row.timestamp <= middle and row.group != group,
        ),
        ((fn.col("group") == group) | (fn.col("topic") == "nothing"), lambda row: row.group == group),
        (fn.col("group").isin(group, "a", None), lambda row: row.group == group),
    ]
    for condition, plainly in cases:
        assert sorted(commits.where(condition).collect(), key=str) == sorted(filter(plainly, rows), key=str)


@pytest.mark.skipif(not filter_classes(), reason="this Spark has no filters to push")
def test_filters_spare_rows_where_the_session_lets_them_through(spark: SparkSession) -> None:
    """And a session that does not, as Spark has it by default, reads as ever."""
    rows = {}
    for enabled in ("true", "false"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", enabled)
        frame = read(spark, KAFKA_3.path, "offset_commits").where("group = 'k39.g-cooperative'")
        assert len(frame.collect()) == 8
        rows[enabled] = rows_scanned(frame)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    assert rows == {"true": 8, "false": 124}


def rows_scanned(frame: DataFrame) -> int:
    """How many rows came out of the source, by Spark's own count."""
    plan = frame._jdf.queryExecution().executedPlan()
    while plan.children().size():
        plan = plan.children().apply(0)
    return int(plan.metrics().apply("numOutputRows").value())


def damaged_copy(directory: Path) -> tuple[Path, str]:
    _, source = next((number, path) for number, path in KAFKA_3.segments() if path.stat().st_size)
    data = bytearray(source.read_bytes())
    data[len(data) // 2] ^= 1
    copy = directory / source.parent.name
    copy.mkdir()
    (copy / source.name).write_bytes(data)
    return copy, source.name


def test_damage_goes_to_quarantine_or_fails_fast(spark: SparkSession, tmp_path: Path) -> None:
    path, name = damaged_copy(tmp_path)
    told = read(spark, path, "quarantine").collect()
    whole = sum(len(batch.records) for batch in batches_of([KAFKA_3.path / path.name / name]))
    assert read(spark, path).count() + sum(row.records for row in told) == whole
    assert Path(told[0].path) == path / name
    with pytest.raises(PySparkException, match=rf"{name}, byte {told[0].position}: checksum"):
        read(spark, path, mode="failfast").count()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"path": "/nowhere/at/all"}, "No such file or directory"),
        ({"path": "/", "table": "lag"}, "no table 'lag' to read"),
        ({"path": "/", "mode": "lenient"}, "must be permissive or failfast"),
        ({}, "no path"),
    ],
)
def test_bad_options_and_paths_are_told(spark: SparkSession, options: dict[str, str], reason: str) -> None:
    with pytest.raises(PySparkException, match=reason):
        spark.read.format("kohort").options(**options).load().count()


def test_a_notebook_gets_frames_by_name_and_refusals_at_once(spark: SparkSession, tmp_path: Path) -> None:
    both = [str(path) for path in sorted(KAFKA_3.path.glob("__consumer_offsets-[01]"))]
    assert offsets.commits(spark, both, columns="partition").distinct().count() == 2
    assert offsets.records(spark, str(KAFKA_3.path)).count() == len(records_of(KAFKA_3))
    counts = {
        make.__name__: make(spark, str(KAFKA_3.path)).count()
        for make in (offsets.generations, offsets.members, offsets.assignments, offsets.quarantine)
    }
    assert counts == {"generations": 33, "members": 38, "assignments": 67, "quarantine": 0}
    with pytest.raises(BadSource, match="there is no log in it"):
        offsets.commits(spark, str(tmp_path))
    with pytest.raises(BadOption, match="no option"):
        offsets.commits(spark, both, group="g")


def test_sql_reads_the_source_too(spark: SparkSession) -> None:
    options = f"path {json.dumps(str(KAFKA_3.path))}, table 'members'"
    spark.sql(f"create or replace temporary view kafka_3 using kohort options ({options})")
    assert spark.sql("select count(*) as n from kafka_3 where is_leader").first().n > 0
