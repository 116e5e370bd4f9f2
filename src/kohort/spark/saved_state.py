"""The state of a replay, kept as Parquet: yesterday's result, on which today's segments build."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.errors import KohortError
from kohort.spark.inputs import Log
from kohort.spark.schema import schema_of

VERSION = 1


class SavedStateRefused(KohortError):
    """A saved state that cannot be used for what is asked."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """A state and what is known of it: where each partition goes on, how late it is, and by which rule it was made."""

    path: str
    pieces: DataFrame
    next_offsets: dict[int, int]
    last_timestamp: int
    rule: str

    def check(self, logs: Iterable[Log], rule: str, as_of: int | None) -> None:
        """Refuse what would give a wrong result."""
        if rule != self.rule:
            raise SavedStateRefused(f"{self.path}: was made by the rule {self.rule}, not {rule}")
        if as_of is not None and self.last_timestamp > as_of:
            raise SavedStateRefused(f"{self.path}: holds records of {self.last_timestamp}, later than {as_of}")
        if sum(log.partition < 0 for log in logs) > 1:
            raise SavedStateRefused(f"{self.path}: which of the logs of unknown partitions it goes with, nobody knows")


def save_state(merged: DataFrame, rule: str, path: str) -> None:
    """Write one row a partition. What was reached at the end of an as-of replay is where the next one goes on."""
    rows = merged.withColumns({"ended": fn.lit(False), "version": fn.lit(VERSION), "rule": fn.lit(rule)})
    rows.write.mode("overwrite").parquet(path)


def load_state(spark: SparkSession, path: str) -> SavedState:
    """A state that was saved, with its few numbers read."""
    try:
        rows = spark.read.parquet(path)
    except AnalysisException as error:
        raise SavedStateRefused(f"{path}: no saved state ({error.getCondition() or 'unreadable'})") from None
    wanted = schema_of("folded").fieldNames()
    if missing := {*wanted, "version", "rule"} - set(rows.columns):
        raise SavedStateRefused(f"{path}: no saved state: it lacks {', '.join(sorted(missing))}")
    found = rows.select("partition", "next_offset", "last_timestamp", "version", "rule").collect()
    if not found:
        raise SavedStateRefused(f"{path}: a saved state without a partition")
    if odd := {row.version for row in found} - {VERSION}:
        raise SavedStateRefused(f"{path}: a saved state of version {sorted(odd)[0]}, where {VERSION} is understood")
    next_offsets = {row.partition: row.next_offset for row in found}
    rules = {row.rule for row in found}
    if len(next_offsets) != len(found) or len(rules) != 1:
        raise SavedStateRefused(f"{path}: not one saved state but parts of several")
    pieces = rows.select(*wanted).withColumns({"place": fn.lit(0), "log": fn.lit(0)})
    return SavedState(path, pieces, next_offsets, max(row.last_timestamp for row in found), rules.pop())
