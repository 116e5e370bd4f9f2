"""`kohort pipeline` on a real Spark: every table, every record accounted for, and nothing lost when it fails."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.log.source import BadSource
from kohort.records.arrow import from_rows
from kohort.records.replay import Rule
from kohort.records.rows import describe
from kohort.spark.accounting import AccountsDiffer
from kohort.spark.failures import SparkFailed
from kohort.spark.manifest import Manifest, read_manifest
from kohort.spark.order import Order
from kohort.spark.pipeline import STEPS, TABLES
from kohort.spark.replaying import TABLES as REPLAYED
from kohort.spark.schema import schema_of
from kohort.spark.staging import BadOutput
from tests.golden_sets import GOLDEN
from tests.slow import slow
from tests.spark.golden_tables import batches_of, in_order, instant, tables_of
from tests.spark.runs import Watched, all_golden_logs, base_rows, by_place, rows_in, rows_read, run_on

KAFKA_3 = next(golden for golden in GOLDEN if golden.name == "kafka-3.9.1")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return all_golden_logs(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def out(spark: SparkSession, logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of all golden logs."""
    directory = tmp_path_factory.mktemp("out")
    watcher = Watched()
    run_on(spark, logs, directory, watcher)
    assert len(watcher.begun) == len(watcher.made) == STEPS
    return directory


@pytest.fixture(scope="module")
def manifest(out: Path) -> Manifest:
    return read_manifest(out)


def records_of(logs: Path) -> list[dict[str, object]]:
    """What `kohort dump` prints."""
    rows = [
        describe(int(place.name.rsplit("-", 1)[1]), batch.header, record)
        for place in logs.glob("__consumer_offsets-*")
        for batch in batches_of(sorted(place.glob("*.log")))
        for record in batch.records
    ]
    return from_rows(rows).to_pylist()


def test_records_are_what_kohort_dump_prints(logs: Path, out: Path) -> None:
    assert by_place(rows_in(out, "records")) == by_place(records_of(logs))


@pytest.mark.parametrize("table", ["offset_commits", "group_generations", "members", "assignments"])
def test_what_is_made_from_the_log_is_what_the_data_source_reads(logs: Path, out: Path, table: str) -> None:
    rows = rows_in(out, table)
    assert rows
    assert by_place(rows) == by_place(rows_read(logs, table))


def test_the_present_is_what_kohort_state_says(logs: Path, out: Path) -> None:
    expected = tables_of(logs)
    for table in REPLAYED:
        assert in_order(rows_in(out, table)) == expected[table]


def test_every_table_is_there_with_a_comment_on_every_column(spark: SparkSession, out: Path) -> None:
    assert sorted(path.name for path in out.iterdir()) == sorted([*TABLES, "kohort.json"])
    for table in TABLES:
        read = spark.read.parquet(str(out / table)).schema
        told, expected = (
            [(field.name, field.dataType, field.metadata) for field in schema] for schema in (read, schema_of(table))
        )
        assert told == expected, table


def test_a_run_tells_what_it_did(logs: Path, out: Path, manifest: Manifest) -> None:
    records = records_of(logs)
    assert manifest.source == str(logs)
    assert (manifest.rule, manifest.mode, manifest.format, manifest.as_of) == (
        "position",
        "permissive",
        "parquet",
        None,
    )
    assert manifest.at == instant(max(int(str(row["timestamp"])) for row in records)).isoformat()  # type: ignore[union-attr]  # they have times
    assert manifest.ends == "furthest_group"
    assert {name: made.rows for name, made in manifest.tables.items()} == {
        table: len(rows_in(out, table)) for table in TABLES
    }
    assert manifest.versions.keys() == {"kohort", "spark", "python"}
    accounting = manifest.accounting
    assert accounting["read"] == accounting["records"] == len(records)
    assert accounting["damaged"] == accounting["quarantined"] == 0
    assert accounting["offset_commits"] == accounting["offset_commits_in_records"] > 0
    assert accounting["group_generations"] == accounting["group_generations_in_records"] > 0


def test_derived_tables_speak_of_the_same_offsets(out: Path) -> None:
    def keys(table: str) -> list[tuple[object, ...]]:
        return sorted((row["group"], row["topic"], row["topic_partition"]) for row in rows_in(out, table))

    assert keys("lag") == keys("expiry") == keys("current_offsets")
    assert len(rows_in(out, "lag_status")) > 100
    assert len(rows_in(out, "rebalances")) > 100
    assert {row["kind"] for row in rows_in(out, "offset_jumps")} >= {"rewind"}
    topic = [row for row in rows_in(out, "topic_health") if row["scope"] == "topic"]
    told = len(rows_in(out, "offset_commits")) + len(rows_in(out, "group_generations"))
    assert [row["records"] for row in topic] == [told]


def test_as_of_a_time_all_tables_are_those_of_that_time(spark: SparkSession, tmp_path: Path) -> None:
    """At each end of what a transaction was open; commits that were decided later are still open."""
    commits = [row for row in rows_read(KAFKA_3.path, "offset_commits") if row["fate"] == "committed"]
    open_one = max(commits, key=lambda row: row["decided_timestamp"] - row["timestamp"])
    moment = round(open_one["timestamp"].timestamp() * 1000)
    made = run_on(spark, KAFKA_3.path, tmp_path, as_of=moment, rule="kafka-2.6")
    expected = tables_of(KAFKA_3.path, Rule.KAFKA_2_6, as_of=moment)
    for table in REPLAYED:
        assert in_order(rows_in(tmp_path, table)) == expected[table]
    kept = set()
    for number, paths in KAFKA_3.partitions().items():
        for batch in batches_of(paths):
            if batch.header.max_timestamp > moment:
                break
            kept |= {(number, record.offset) for record in batch.records}
    assert {(row["partition"], row["offset"]) for row in rows_in(tmp_path, "records")} == kept
    told = {(row["partition"], row["offset"]): row for row in rows_in(tmp_path, "offset_commits")}
    for row in rows_read(KAFKA_3.path, "offset_commits"):
        if (row["partition"], row["offset"]) in kept:
            was_decided = row["decided_offset"] is None or (row["partition"], row["decided_offset"]) in kept
            later = {"fate": "open", "decided_offset": None, "decided_timestamp": None}
            assert told.pop((row["partition"], row["offset"])) == (row if was_decided else row | later)
    assert not told
    assert made.at == made.as_of
    assert made.at_millis == moment
    assert {row["at"] for row in rows_in(tmp_path, "lag")} == {instant(moment)}


def copied(directory: Path) -> Path:
    """A log that a test may change."""
    return Path(shutil.copytree(KAFKA_3.path, directory / "log"))


def largest_segment(log: Path) -> Path:
    return max(log.glob("*/*.log"), key=lambda path: path.stat().st_size)


def test_damage_is_accounted_for_in_quarantine(spark: SparkSession, tmp_path: Path) -> None:
    log, out = copied(tmp_path), tmp_path / "out"
    segment = largest_segment(log)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    found = base_rows(spark, log, out, ["records", "quarantine"])
    (row,) = found["quarantine"]
    assert row["path"] == str(segment)
    whole = sum(len(batch.records) for paths in KAFKA_3.partitions().values() for batch in batches_of(paths))
    assert len(found["records"]) + row["records"] == whole
    with pytest.raises(SparkFailed, match=rf"{segment.name}, byte {row['position']}: checksum"):
        run_on(spark, log, out, mode="failfast")
    assert not list(out.iterdir())


def test_a_log_that_grows_meanwhile_is_told_up_to_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    log = copied(tmp_path)
    segment = largest_segment(log)
    whole, batches = segment.read_bytes(), batches_of([segment])
    segment.write_bytes(whole[: batches[len(batches) // 2].header.position])
    before = {table: rows_read(log, table) for table in ("records", "offset_commits")}
    found = base_rows(spark, log, tmp_path / "out", before, records=lambda: segment.write_bytes(whole))
    assert len(rows_read(log, "records")) > len(before["records"])
    for table, rows in before.items():
        assert by_place(found[table]) == by_place(rows)


def test_records_that_go_meanwhile_are_missed(spark: SparkSession, tmp_path: Path) -> None:
    """A cleaner that replaces segments between two readings would else give tables that do not fit together."""
    log, out = copied(tmp_path), tmp_path / "out"
    with pytest.raises(AccountsDiffer, match=r"168 records were read, \d+ are in records: did the log change"):
        run_on(spark, log, out, Watched(records=lambda: largest_segment(log).unlink()))
    assert not list(out.iterdir())


@slow
def test_a_run_takes_the_place_of_the_one_before_or_leaves_it(spark: SparkSession, tmp_path: Path) -> None:
    """The second run is interrupted; the third ends, and nothing of the first is left."""
    log, out = copied(tmp_path), tmp_path / "out"
    run_on(spark, log, out, as_of=1_700_000_000_000)
    assert rows_in(out, "records") == rows_in(out, "current_offsets") == []
    assert read_manifest(out).as_of == "2023-11-14T22:13:20+00:00"
    before = {path: path.stat().st_mtime_ns for path in sorted(out.rglob("*"))}

    def interrupt() -> None:
        assert (out / ".kohort/new/current_groups").is_dir()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_on(spark, log, out, Watched(walk=interrupt))
    assert {path: path.stat().st_mtime_ns for path in sorted(out.rglob("*"))} == before
    run_on(spark, log, out)
    assert len(rows_in(out, "records")) == 168
    assert not set(out.rglob("*.parquet")) & before.keys()
    assert sorted(path.name for path in out.iterdir()) == sorted([*TABLES, "kohort.json"])


def test_nothing_is_replaced_that_is_not_from_a_run(tmp_path: Path) -> None:
    source = str(KAFKA_3.path)
    (tmp_path / "records").mkdir()
    with pytest.raises(BadOutput, match="is not from a run"):
        Order(source=source, out=tmp_path).check()
    (tmp_path / "file").touch()
    with pytest.raises(BadOutput, match="is not a directory"):
        Order(source=source, out=tmp_path / "file").check()
    with pytest.raises(BadOutput, match="that this machine and Spark's workers see"):
        Order(source=source, out=Path("s3a://bucket/tables")).check()


def test_several_logs_of_unknown_partitions_are_refused(tmp_path: Path) -> None:
    for number, (_, segment) in enumerate(KAFKA_3.segments()):
        (tmp_path / str(number)).mkdir()
        shutil.copy(segment, tmp_path / str(number) / "some.log")
    Order(source=str(tmp_path / "0" / "some.log"), out=tmp_path / "out").check()
    with pytest.raises(BadSource, match="several logs whose places do not tell their partitions"):
        Order(source=str(tmp_path / "*" / "some.log"), out=tmp_path / "out").check()


def test_another_format_than_that_of_the_tables_is_refused(out: Path) -> None:
    with pytest.raises(BadOutput, match="holds tables of format parquet"):
        Order(source=str(KAFKA_3.path), out=out, format="delta").check()
