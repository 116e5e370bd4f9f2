"""The derived tables, made anew from tables that are there, while a log is followed."""

import dataclasses
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.spark.data_segments import Ends, find_ends
from kohort.spark.derived import DERIVED, Derivation
from kohort.spark.live_ends import committed_offsets, find_live_ends
from kohort.spark.manifest import TableMade, read_manifest
from kohort.spark.order import Order
from kohort.spark.schema import schema_of
from kohort.spark.tables.walk import walk

_WALK = "walk"


class Refreshed:
    """Derived tables under a directory, from the others in `tables` under it."""

    def __init__(self, spark: SparkSession, order: Order, home: Path) -> None:
        self._spark, self._order, self._home = spark, order, home
        self.at = datetime.now(UTC)
        self.ends = "furthest_group"

    def make(self) -> None:
        found = self._find_ends()
        end_offsets = None if found is None else self._spark.createDataFrame(found.end_offsets)
        topic_times = None if found is None else self._spark.createDataFrame(found.topic_times)
        commits, count = self._table("offset_commits"), rows_in(self._home / "tables" / "offset_commits")
        walked = walk(commits, end_offsets, topic_times, as_of=self.at, commit_count=count)
        walked.write.parquet(str(self.path(_WALK)))
        walked = self._spark.read.parquet(str(self.path(_WALK)))
        derivation = Derivation(self._table, walked, self.at, self._order.retention_minutes, end_offsets, topic_times)
        for name in DERIVED:
            derivation.make(name).write.parquet(str(self.path(name)))

    def path(self, name: str) -> Path:
        """Where a derived table is."""
        return self._home / "made" / name

    def _table(self, name: str) -> DataFrame:
        there = self._home / "tables" / name
        return self._spark.read.schema(schema_of(name)).parquet(str(there if there.exists() else self.path(name)))

    def _find_ends(self) -> Ends | None:
        """Where the data topics end now; that is also the time for which the tables speak."""
        live = self._order.live
        if live is not None:
            self.ends = "live_cluster"
            ends = find_live_ends(live, self._order.topic, committed_offsets(self._table("current_offsets")))
            if ends.last_time is not None:
                self.at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ends.last_time)
            return ends
        last = self._table("records").agg(fn.max("timestamp").alias("last")).collect()[0]["last"]
        found = find_ends(self._order.source, self._order.topic, last or time.time_ns() // 1_000_000)
        self.ends = self.ends if found is None else "data_segments"
        return found


def rows_in(path: Path) -> int:
    """The rows of a table, or of a file, from the footers."""
    files = path.glob("[!.]*.parquet") if path.is_dir() else [path]
    return sum(pq.read_metadata(file).num_rows for file in files)


def records_in_state(pieces: Path) -> int:
    """How many records a saved state was made of, as the replay counts them."""
    return sum(pq.read_table(pieces, columns=["records"]).column("records").to_pylist())


def tell_rows(out: Path, rows: Mapping[str, int], **changes: str) -> None:
    """Tell in `kohort.json` how many rows tables have now."""
    manifest = read_manifest(out)
    accounting = manifest.accounting | {name: rows[name] for name in ("records", "offset_commits") if name in rows}
    if "records" in rows:
        accounting |= {"read": rows["records"], "group_generations": rows["group_generations"]}
    tables = {name: TableMade(rows.get(name, made.rows), made.seconds) for name, made in manifest.tables.items()}
    dataclasses.replace(manifest, tables=tables, accounting=accounting, **changes).write(out)  # type: ignore[arg-type]  # all are texts
