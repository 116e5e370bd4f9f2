"""The replay on a real Spark: what `kohort state` and the brokers say, however the log is cut."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from kohort.log.source import BadSource
from kohort.records.replay import Rule
from kohort.spark.replaying import TABLES, Replay, replay
from kohort.spark.saved_state import SavedStateRefused
from kohort.spark.schema import schema_of
from tests.golden_sets import GOLDEN, GoldenSet
from tests.records.test_golden import offsets_of
from tests.spark.golden_tables import Row, batches_of, in_order, instant, tables_of

KAFKA_3 = next(golden for golden in GOLDEN if golden.name == "kafka-3.9.1")


def tables(replayed: Replay) -> dict[str, list[Row]]:
    kept = replayed.cached()
    try:
        return {table: in_order(kept.table(table).toArrow().to_pylist()) for table in TABLES}
    finally:
        kept.unpersist()


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_the_tables_are_what_the_brokers_and_kohort_state_say(spark: SparkSession, golden: GoldenSet) -> None:
    rule = golden.loads_by
    found = tables(replay(spark, str(golden.path), rule=rule, partitions=3))
    assert found == tables_of(golden.path, rule)
    told = golden.state_reloaded()
    assert {
        (row["group"], row["topic"], row["topic_partition"]): (
            row["committed_offset"],
            row["leader_epoch"],
            row["metadata"],
        )
        for row in found["current_offsets"]
    } == offsets_of(told)
    groups = {row["group"]: (row["type"], row["state"]) for row in found["current_groups"]}
    assert groups == {group["group_id"]: (group["group_type"], group["state"]) for group in told["groups"]}


@pytest.mark.parametrize(("partitions", "rule"), [(1, Rule.POSITION), (7, Rule.KAFKA_2_6), (50, Rule.POSITION)])
def test_any_number_of_tasks_gives_the_same(spark: SparkSession, partitions: int, rule: Rule) -> None:
    found = tables(replay(spark, str(KAFKA_3.path), rule=rule, partitions=partitions))
    assert found == tables_of(KAFKA_3.path, rule)


def test_as_of_a_time_is_the_state_at_that_time(spark: SparkSession) -> None:
    times = sorted(batch.header.max_timestamp for paths in KAFKA_3.partitions().values() for batch in batches_of(paths))
    for moment in (times[0] - 1, times[len(times) // 2]):
        want = tables_of(KAFKA_3.path, as_of=moment)
        time = instant(moment)
        assert time is not None
        for given in (moment, time, time.isoformat()):
            assert tables(replay(spark, str(KAFKA_3.path), as_of=given, partitions=2)) == want


def test_yesterdays_state_and_todays_segments_are_all(spark: SparkSession, tmp_path: Path) -> None:
    path, saved = str(KAFKA_3.path), str(tmp_path / "state")
    times = sorted(batch.header.max_timestamp for paths in KAFKA_3.partitions().values() for batch in batches_of(paths))
    for rule in Rule:
        replay(spark, path, rule=rule, as_of=times[len(times) // 2]).save(saved)
        assert tables(replay(spark, path, rule=rule, since=saved, partitions=2)) == tables_of(KAFKA_3.path, rule)
    with pytest.raises(SavedStateRefused, match=r"was made by the rule kafka-2\.6, not position"):
        replay(spark, path, since=saved)
    with pytest.raises(SavedStateRefused, match="later than"):
        replay(spark, path, rule="kafka-2.6", since=saved, as_of=times[0])


def test_what_is_no_saved_state_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(KAFKA_3.path)
    with pytest.raises(SavedStateRefused, match="no saved state"):
        replay(spark, path, since=str(tmp_path / "nothing"))
    other = str(tmp_path / "other")
    spark.range(3).write.parquet(other)
    with pytest.raises(SavedStateRefused, match=r"it lacks .*next_offset"):
        replay(spark, path, since=other)
    saved, changed = str(tmp_path / "saved"), str(tmp_path / "changed")
    replay(spark, path).save(saved)
    rows = spark.read.parquet(saved)
    for spoiled, reason in (
        ({"version": 9}, "a saved state of version 9, where 1 is understood"),
        ({"partition": 0}, "parts of several"),
    ):
        frame = rows.withColumns({name: fn.lit(value) for name, value in spoiled.items()})
        frame.write.mode("overwrite").parquet(changed)
        with pytest.raises(SavedStateRefused, match=reason):
            replay(spark, path, since=changed)
    rows.where("false").write.mode("overwrite").parquet(changed)
    with pytest.raises(SavedStateRefused, match="without a partition"):
        replay(spark, path, since=changed)
    cut = fn.expr("substring(piece, 1, length(piece) - 1)")
    rows.withColumn("piece", fn.concat(cut, fn.lit(b"\x77"))).write.mode("overwrite").parquet(changed)
    with pytest.raises(PySparkException, match="checksum is wrong"):
        replay(spark, path, since=changed).offsets.count()


def test_the_tables_have_their_schema_with_comments(spark: SparkSession) -> None:
    replayed = replay(spark, str(KAFKA_3.path))
    for table in TABLES:
        assert replayed.table(table).schema.jsonValue() == schema_of(table).jsonValue()


def test_damage_is_passed_over_or_fails_fast(spark: SparkSession, tmp_path: Path) -> None:
    _, source = next((number, path) for number, path in KAFKA_3.segments() if path.stat().st_size)
    data = bytearray(source.read_bytes())
    data[len(data) // 2] ^= 1
    directory = tmp_path / source.parent.name
    directory.mkdir()
    (directory / source.name).write_bytes(data)
    assert tables(replay(spark, str(directory), partitions=2)) == tables_of(directory)
    with pytest.raises(PySparkException, match="checksum"):
        replay(spark, str(directory), mode="failfast").offsets.count()
    with pytest.raises(BadSource, match="No such file"):
        replay(spark, str(tmp_path / "nowhere"))
