"""The run that a report tells of: its tables, and which groups are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.spark.lake import read_table
from kohort.spark.manifest import Manifest
from kohort.spark.restore import open_run


@dataclass(frozen=True, slots=True)
class Run:
    """Tables of one directory."""

    spark: SparkSession
    out: Path
    manifest: Manifest
    groups: tuple[str, ...]
    """Those that are asked for; all, if there is none."""

    def whole(self, name: str) -> DataFrame:
        """A table."""
        return read_table(self.spark, self.manifest.format, self.out, name)

    def table(self, name: str) -> DataFrame:
        """The rows of a table that are about groups that are asked for."""
        rows = self.whole(name)
        return rows.where(fn.col("group").isin(*self.groups)) if self.groups else rows

    @property
    def at(self) -> datetime:
        """The time for which the tables speak."""
        return datetime.fromisoformat(self.manifest.at)


def open_tables(spark: SparkSession, out: Path, groups: Sequence[str] = ()) -> Run:
    """The run in a directory."""
    return Run(spark, out, open_run(out), tuple(dict.fromkeys(groups)))
