"""The tables that only a log can give, written as far as a replay of it has come.

A log that is in use grows from one reading to the next. So the replay says where each partition ended, or reached the
time as of which the tables are wanted, and of the second reading nothing behind that counts: a transaction whose end
stands there is still open.
"""

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from kohort.spark.replaying import Replay
from kohort.spark.schema import LOG_TABLES

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

    def write(self, into: Path) -> dict[str, float]:
        """Write all of `LOG_TABLES` to directories in one; of the time that took, the share of each."""
        options = {
            "topic": self.topic,
            "mode": self.mode,
            "paths": json.dumps([self.source]),
            "until": json.dumps(self.reached.ends),
        }
        return write_tables(self.spark, into, options)


def write_tables(spark: SparkSession, into: Path, options: Mapping[str, str]) -> dict[str, float]:
    """Write all of `LOG_TABLES`, of what options of the data source name, to directories in one."""
    for table in LOG_TABLES:
        (into / table).mkdir()
    written = spark.read.format("kohort").options(**options).options(table="written", into=str(into)).load().collect()
    for table in LOG_TABLES:
        kept = {row["file"] for row in written if row["table"] == table}
        for file in (into / table).iterdir():
            if file.name not in kept:  # of a task that failed, or was done twice
                file.unlink()
    whole = sum(row["seconds"] for row in written)
    return {
        table: sum(row["seconds"] for row in written if row["table"] == table) / whole if whole else 0.0
        for table in LOG_TABLES
    }


def keep_only(directory: Path, files: Set[str]) -> None:
    """Remove what was left by a task that failed, or was done twice."""
    for file in directory.iterdir():
        if file.name not in files:
            file.unlink()
