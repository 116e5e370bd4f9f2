"""The tables that only a log can give, as far as a replay of it has come.

A log that is in use grows from one reading to the next. So the replay says where each partition ended, or reached the
time as of which the tables are wanted, and of the other readings nothing behind that counts: a transaction whose end
stands there is still open.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.spark import offsets
from kohort.spark.replaying import Replay
from kohort.spark.schema import as_table, schema_of

_NO_TIME = -1


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a replay has come, and what it met: the offset behind each partition's last batch, records counted."""

    ends: Mapping[int, int]
    last_timestamp: int
    records: int
    damaged: int


def reached_by(replay: Replay) -> Reached:
    """What a replay says of itself; this is what makes it run."""
    names = ("partition", "next_offset", "last_timestamp", "records", "damaged")
    rows = replay.merged.select(*names).collect()
    return Reached(
        {row["partition"]: row["next_offset"] for row in rows},
        max((row["last_timestamp"] for row in rows), default=_NO_TIME),
        sum(row["records"] for row in rows),
        sum(row["damaged"] for row in rows),
    )


@dataclass(frozen=True, slots=True)
class LogTables:
    """A log's tables up to where its replay came."""

    spark: SparkSession
    source: str
    topic: str
    mode: str
    reached: Reached

    def table(self, name: str) -> DataFrame:
        """One of the tables of the data source."""
        if name == "quarantine" and not self.reached.damaged:
            return self.spark.createDataFrame([], schema_of(name))
        rows = offsets.table(self.spark, name, self.source, topic=self.topic, mode=self.mode)
        ends = self.spark.createDataFrame(list(self.reached.ends.items()), "partition int, end bigint")
        both = rows.join(fn.broadcast(ends), "partition")
        is_inside = fn.col("offset") < fn.col("end")
        if name == "quarantine":
            is_inside |= fn.col("offset").isNull()
        kept = both.where(is_inside)
        return as_table(_decided(kept) if name == "offset_commits" else kept, name)


def _decided(commits: DataFrame) -> DataFrame:
    """The fates of commits as they were when the log ended there."""
    is_later = fn.coalesce(fn.col("decided_offset") >= fn.col("end"), fn.lit(False))
    return commits.withColumns(
        {
            "fate": fn.when(is_later, "open").otherwise(fn.col("fate")),
            "decided_offset": fn.when(~is_later, fn.col("decided_offset")),
            "decided_timestamp": fn.when(~is_later, fn.col("decided_timestamp")),
        }
    )
