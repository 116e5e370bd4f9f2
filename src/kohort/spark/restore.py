"""What offsets were committed at a time that is past, from the tables of a run.

The history of commits is enough. As of a time, a partition of the offsets topic is what stands before its first batch
whose time is later. In it the last record of a key that counts decides: one outside of transactions, or one whose
transaction had been committed by then. If that is a tombstone there is no offset.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.errors import KohortError
from kohort.spark.failures import one_line_failures
from kohort.spark.lake import read_table
from kohort.spark.manifest import BadRun, Manifest, read_manifest
from kohort.spark.restore_plan import Planned
from kohort.spark.staging import is_being_replaced
from kohort.spark.tables.frames import COMMIT_KEY

_ENDLESS = (1 << 63) - 1


class NothingToRestore(KohortError):
    """No offset was committed at that time."""


def open_run(out: Path) -> Manifest:
    """What the run in a directory says of itself."""
    manifest = read_manifest(out)
    if is_being_replaced(out):
        raise BadRun(f"{out}: a run died while it replaced the tables: run `kohort pipeline` again")
    return manifest


def plan_from(spark: SparkSession, out: Path, as_of: int, groups: Sequence[str] = ()) -> list[Planned]:
    """The offsets of some groups, or of all, as they were at a time in milliseconds since 1970."""
    manifest = open_run(out)
    with one_line_failures():
        commits, records = (read_table(spark, manifest.format, out, name) for name in ("offset_commits", "records"))
        rows = offsets_as_of(commits, records, as_of, groups).collect()
    found = [
        Planned(row["group"], row["topic"], row["topic_partition"], row["committed_offset"], row["metadata"] or "")
        for row in rows
    ]
    when = _told(as_of)
    if missing := sorted(set(groups) - {planned.group for planned in found}):
        told = ", ".join(repr(group) for group in missing[:5])
        raise NothingToRestore(f"{out}: no offset as of {when} of the group {told}")
    if not found:
        raise NothingToRestore(f"{out}: no offset of any group as of {when}")
    return sorted(found)


def _told(milliseconds: int) -> str:
    """A time for people; what lies outside of the calendar stays a number."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)).isoformat()
    except OverflowError:
        return f"{milliseconds} ms"


def offsets_as_of(commits: DataFrame, records: DataFrame, as_of: int, groups: Sequence[str] = ()) -> DataFrame:
    """One row for each group, topic and partition, from `offset_commits`; `records` tell where the time ends."""
    history = _history(commits, records)
    history = history.where(fn.col("group").isin(*groups)) if groups else history
    inside = history.join(fn.broadcast(_ends(commits, records, as_of)), "partition", "left")
    end = fn.coalesce("end", fn.lit(_ENDLESS))
    counts = (fn.col("fate") == "plain") | ((fn.col("fate") == "committed") & (fn.col("decided_offset") < end))
    told = fn.struct("tombstone", "committed_offset", "metadata", "commit_timestamp")
    records_that_count = inside.where((fn.col("offset") < end) & counts)
    last = records_that_count.groupBy(*COMMIT_KEY).agg(fn.max_by(told, "offset").alias("last"))
    standing = last.where(~fn.col("last.tombstone")).select("group", "topic", "topic_partition", "partition", "last.*")
    # A group whose commits stand in several partitions of the offsets topic: the topic got more of them once.
    newest = fn.struct(fn.coalesce(fn.unix_millis("commit_timestamp"), fn.lit(0)), "partition")
    latest = fn.max_by(fn.struct("committed_offset", "metadata"), newest)
    chosen = standing.groupBy("group", "topic", "topic_partition").agg(latest.alias("latest"))
    return chosen.select("group", "topic", "topic_partition", "latest.*")


def _history(commits: DataFrame, records: DataFrame) -> DataFrame:
    """Every record of an offset. One whose value cannot be read says no more than a tombstone: what was before is past.

    Whether that is so inside of a transaction nobody can tell from `records`; there it is passed over.
    """
    is_unreadable = (fn.col("kind") == "offset_commit") & fn.col("reason").isNotNull() & ~fn.col("transactional")
    unreadable = records.where(is_unreadable).select(
        *COMMIT_KEY, "offset", fn.lit("plain").alias("fate"), fn.lit(True).alias("tombstone")
    )
    told = ("decided_offset", "committed_offset", "metadata", "commit_timestamp")
    readable = commits.select(*COMMIT_KEY, "offset", "fate", "tombstone", *told)
    return readable.unionByName(unreadable, allowMissingColumns=True)


def _ends(commits: DataFrame, records: DataFrame, as_of: int) -> DataFrame:
    """For each partition that goes on after the time: the offset of the first batch that is later."""
    later = records.where(records["timestamp"] > as_of).select("partition", "offset")
    late_commits = commits.where(fn.unix_millis("timestamp") > as_of)
    batches = late_commits.select("partition", fn.col("batch_offset").alias("offset"))
    return later.unionByName(batches).groupBy("partition").agg(fn.min("offset").alias("end"))
