"""Runs of the pipeline in the session that the tests share, and what they leave."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kohort.spark import reading
from kohort.spark.inputs import find_logs, share_out
from kohort.spark.manifest import Manifest
from kohort.spark.order import Order
from kohort.spark.pipeline import run
from kohort.spark.request import Request
from kohort.spark.schema import arrow_schema_of
from tests.golden_sets import GOLDEN

Row = dict[str, Any]


class Watched:
    """Notes the steps of a run, and does something when one of them begins."""

    def __init__(self, **events: Callable[[], object]) -> None:
        self.begun: list[str] = []
        self.made: dict[str, int | None] = {}
        self._events = events

    def begin(self, what: str) -> None:
        self.begun.append(what)
        if what in self._events:
            self._events[what]()

    def done(self, what: str, rows: int | None, seconds: float) -> None:
        assert seconds >= 0
        self.made[what] = rows


def run_on(
    spark: SparkSession, source: Path | str, out: Path, watcher: Watched | None = None, **changes: Any
) -> Manifest:
    return run(spark, Order(source=str(source), out=out, **changes), watcher or Watched())


class _EnoughError(Exception):
    """Ends a run when its base tables are there."""


def base_rows(
    spark: SparkSession, source: Path, out: Path, tables: Iterable[str], **events: Any
) -> dict[str, list[Row]]:
    """Rows of tables that a run reads from the log or replays, taken before it goes on to what is derived from them.

    `events` are steps and what happens when they begin. The records are accounted for by then.
    """
    found: dict[str, list[Row]] = {}

    def take() -> None:
        found.update({table: rows_in(out / ".kohort/new", table) for table in tables})
        raise _EnoughError

    with pytest.raises(_EnoughError):
        run_on(spark, source, out, Watched(walk=take, **events))
    return found


def all_golden_logs(directory: Path) -> Path:
    """The logs of all golden sets as those of one broker; each set has partitions of its own."""
    for number, golden in enumerate(GOLDEN):
        for partition, segments in golden.partitions().items():
            place = directory / f"__consumer_offsets-{100 * number + partition}"
            shutil.copytree(golden.path / f"__consumer_offsets-{partition}", place)
            assert len(segments) == len(list(place.glob("*.log")))
    return directory


def rows_in(out: Path, table: str) -> list[Row]:
    """The rows of a table that a run has left."""
    files = sorted((out / table).glob("*.parquet"))
    return pa.concat_tables(pq.ParquetFile(file).read() for file in files).to_pylist()


def rows_read(source: Path, table: str) -> list[Row]:
    """The rows of a table as the data source reads them, without Spark."""
    (stretches,) = share_out(find_logs([str(source)]), 1)
    schema = arrow_schema_of(table)
    return pa.Table.from_batches(reading.read(stretches, Request(table, tuple(schema.names))), schema).to_pylist()


def by_place(rows: list[Row]) -> list[Row]:
    """Rows in the order of the log, and of what they say."""
    return sorted(rows, key=lambda row: (row["partition"], row["offset"], str(row)))
