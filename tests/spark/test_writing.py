"""All tables of a log written in one pass, as Spark's tasks do it, but without Spark."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kohort.spark import writing
from kohort.spark.inputs import find_logs, share_out
from kohort.spark.log_tables import keep_only
from kohort.spark.request import Request
from kohort.spark.schema import LOG_TABLES, schema_of
from kohort.spark.writing import Written, write
from tests.golden_sets import GOLDEN, GoldenSet
from tests.spark.runs import by_place, rows_in, rows_read

KAFKA_3 = next(golden for golden in GOLDEN if golden.name == "kafka-3.9.1")


def written(golden: GoldenSet, into: Path, shares: int, **request: object) -> list[Written]:
    asked = Request("written", (), into=str(into), **request)  # type: ignore[arg-type]  # as the test names them
    for table in LOG_TABLES:
        (into / table).mkdir(parents=True, exist_ok=True)
    found = share_out(find_logs([str(golden.path)]), shares)
    return [file for place, stretches in enumerate(found) for file in write(stretches, asked, place)]


@pytest.mark.parametrize("shares", [1, 7])
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_the_tables_are_what_the_data_source_reads(tmp_path: Path, golden: GoldenSet, shares: int) -> None:
    files = written(golden, tmp_path, shares)
    for table in LOG_TABLES:
        rows = rows_in(tmp_path, table)
        assert sum(file.rows for file in files if file.table == table) == len(rows)
        if table != "quarantine":
            assert by_place(rows) == by_place(rows_read(golden.path, table))


def test_rows_are_gathered_over_windows_and_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "GROUP_ROWS", 40)
    (file,) = [file for file in written(KAFKA_3, tmp_path, 1) if file.table == "records"]
    told = pq.read_metadata(tmp_path / "records" / file.file)
    sizes = [told.row_group(number).num_rows for number in range(told.num_row_groups)]
    assert len(sizes) > 1
    assert min(sizes[:-1]) >= 40
    assert by_place(rows_in(tmp_path, "records")) == by_place(rows_read(KAFKA_3.path, "records"))


def test_each_file_carries_the_comments_where_spark_looks_for_them(tmp_path: Path) -> None:
    for file in written(KAFKA_3, tmp_path, 1):
        metadata = pq.read_metadata(tmp_path / file.table / file.file).metadata
        assert metadata[b"org.apache.spark.sql.parquet.row.metadata"].decode() == schema_of(file.table).json()


def test_a_partition_that_is_not_to_be_read_has_no_rows_but_its_table_is_there(tmp_path: Path) -> None:
    files = written(KAFKA_3, tmp_path, 3, until={})
    assert {file.table for file in files} == set(LOG_TABLES)
    assert all(rows_in(tmp_path, table) == [] for table in LOG_TABLES)


def test_what_a_task_left_that_was_done_again_does_not_count(tmp_path: Path) -> None:
    written(KAFKA_3, tmp_path, 2)
    again = written(KAFKA_3, tmp_path, 2)
    records = {file.file for file in again if file.table == "records"}
    assert len(list((tmp_path / "records").iterdir())) == 2 * len(records)
    keep_only(tmp_path / "records", records)
    assert by_place(rows_in(tmp_path, "records")) == by_place(rows_read(KAFKA_3.path, "records"))
