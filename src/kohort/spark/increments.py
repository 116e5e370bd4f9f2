"""What has come to a log since a state of it was kept: its rows, and what it does to groups, offsets and transactions.

A state is a directory: the pieces of the replay, and the commits whose transaction was open. What is taken is made from
the state before and two marks alone, so it is the same whenever it is done again.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from kohort.spark.log_tables import write_tables
from kohort.spark.open_commits import FILE, TABLE, decide, markers_in, read_commits, take_open, write_commits
from kohort.spark.replaying import TABLES as REPLAYED
from kohort.spark.replaying import Replay, merge_pieces
from kohort.spark.saved_state import load_state, save_state
from kohort.spark.staging import Staging

PIECES = "pieces"
_MOST_PIECES = 2
"""How many tasks fold what has come, at most, where nobody says."""


class Transactions(NamedTuple):
    """Commits whose fate the log has told, or not yet."""

    decided: pa.Table
    """Those from before the increment whose transaction has ended in it."""
    opened: pa.Table
    """Those of the increment whose transaction is open."""


@dataclass(frozen=True, slots=True)
class Increment:
    """What to take: where from, by which rule, and the states before and behind it."""

    source: Mapping[str, str]
    """The options of the data source for the log."""
    start: Mapping[str, Any]
    end: Mapping[str, Any]
    rule: str
    before: Path
    behind: Path
    pieces: int = _MOST_PIECES

    def take(self, spark: SparkSession, staging: Staging) -> Transactions:
        """Leave the rows of all tables but the derived ones in `staging`, less open commits, and the state behind."""
        options = {**self.source, "between": json.dumps([self.start, self.end])}
        with ThreadPoolExecutor(2) as threads:
            written = threads.submit(write_tables, spark, staging.new, options)
            replayed = threads.submit(self._replay, spark, options)
            written.result()
            current = replayed.result()
            list(threads.map(lambda name: current.table(name).write.parquet(staging.path(name)), REPLAYED))
        opened = take_open((staging.new / TABLE).glob("*.parquet"))
        markers = markers_in((staging.new / "records").glob("*.parquet"))
        decided, undecided = decide(read_commits(self.before / FILE), markers)
        write_commits(pa.concat_tables([undecided, opened]), self.behind / FILE)
        return Transactions(decided, opened)

    def _replay(self, spark: SparkSession, options: Mapping[str, str]) -> Replay:
        saved = load_state(spark, str(self.before / PIECES))
        reader = spark.read.format("kohort").options(**options)
        reader = reader.options(table="folded", rule=self.rule, partitions=str(self.pieces))
        save_state(merge_pieces(reader.load(), self.pieces, saved), self.rule, str(self.behind / PIECES))
        return Replay(load_state(spark, str(self.behind / PIECES)).pieces, self.rule)
