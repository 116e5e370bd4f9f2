"""`topic_health`: what the offsets topic is full of, and by whose doing: per group, per partition, and in all.

A record is live if it is the last one of its key, superseded if a later one has replaced it, or a tombstone that is the
last of its key. Commits of aborted transactions count as such, and so do those of open ones, which replace nothing yet.
Counted are offset commits and the records of groups; markers and the records of newer coordinators are not.

A coordinator that takes a partition over reads all of it. `LoadRates` says how fast: the default is what Kafka's own
loader did when it was measured beside ours, from a cold start. A broker that loads several partitions loads them one
after the other, so that their times add up.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kohort.spark.schema import as_table
from kohort.spark.tables.frames import instant
from kohort.spark.tables.walk import walk

_KINDS = ("live", "superseded", "tombstone", "aborted", "open")
_COUNTED = ("records", "bytes", *(f"{kind}_{what}" for kind in _KINDS for what in ("records", "bytes")))
_TIMES = {"first_commit_at": "first_millis", "last_commit_at": "last_millis"}
_SUMS = (*_COUNTED, "group_records", "group_bytes", "commits", "idle_commits")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRates:
    """How fast a coordinator loads; the slower of the two counts."""

    records_per_second: float = 1_900_000.0
    bytes_per_second: float | None = None


def topic_health(
    commits: DataFrame,
    generations: DataFrame,
    *,
    walked: DataFrame | None = None,
    rates: LoadRates | None = None,
) -> DataFrame:
    """The state of the offsets topic. `walked` is the `walk` of the commits, if somebody has made it already."""
    walked = walk(commits) if walked is None else walked
    offsets = _with_last(_offset_sums(walked))
    groups = _with_last(_group_sums(generations))
    of_groups = groups.withColumn("group_records", fn.col("records")).withColumn("group_bytes", fn.col("bytes"))
    idle = _idle(walked)
    parts = offsets.unionByName(of_groups, allowMissingColumns=True).unionByName(idle, allowMissingColumns=True)
    per_group = parts.groupBy("partition", "group").agg(
        *(fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in _SUMS),
        fn.min("first_commit_at").alias("first_commit_at"),
        fn.max("last_commit_at").alias("last_commit_at"),
    )
    return as_table(_rated(_scopes(per_group), rates or LoadRates()), "topic_health")


def _offset_sums(walked: DataFrame) -> DataFrame:
    """One row for each committed offset: what its records are."""
    times = {name: instant(fn.col(millis)) for name, millis in _TIMES.items()}
    return walked.where(fn.col("is_sum")).withColumns(times).drop("offset", "idle_commits")


def _group_sums(generations: DataFrame) -> DataFrame:
    """The same for the records of groups, which are never part of a transaction."""
    nothing = fn.lit(0).cast("bigint")
    no_time = fn.lit(None).cast("timestamp")
    summed = generations.groupBy("partition", "group").agg(
        fn.count("*").alias("counted_records"),
        fn.sum(fn.col("bytes").cast("bigint")).alias("counted_bytes"),
        fn.max_by("bytes", "offset").cast("bigint").alias("last_bytes"),
        fn.max_by("tombstone", "offset").alias("is_removed"),
    )
    none = {f"{kind}_{what}": nothing for kind in ("aborted", "open") for what in ("records", "bytes")}
    return summed.withColumns(none | {"commits": nothing} | dict.fromkeys(_TIMES, no_time))


def _with_last(summed: DataFrame) -> DataFrame:
    """Sums of keys with what became of the last record of each."""
    has_last = fn.col("counted_records") > 0
    is_tombstone = has_last & fn.col("is_removed")
    is_live = has_last & ~fn.col("is_removed")
    nothing = fn.lit(0).cast("bigint")
    last = {
        "live_records": fn.when(is_live, 1).otherwise(nothing),
        "live_bytes": fn.when(is_live, fn.col("last_bytes")).otherwise(nothing),
        "tombstone_records": fn.when(is_tombstone, 1).otherwise(nothing),
        "tombstone_bytes": fn.when(is_tombstone, fn.col("last_bytes")).otherwise(nothing),
        "superseded_records": fn.col("counted_records") - fn.when(has_last, 1).otherwise(nothing),
        "superseded_bytes": fn.col("counted_bytes") - fn.coalesce("last_bytes", nothing),
    }
    total = {
        what: fn.col(f"counted_{what}") + fn.col(f"aborted_{what}") + fn.col(f"open_{what}")
        for what in ("records", "bytes")
    }
    return summed.withColumns(last | total)


def _idle(walked: DataFrame) -> DataFrame:
    last = walked.where(fn.col("is_last"))
    return last.groupBy("partition", "group").agg(fn.sum("idle_commits").alias("idle_commits"))


def _scopes(per_group: DataFrame) -> DataFrame:
    """The groups, the partitions, and the topic. The last has only sums of few rows to add."""
    sums = [fn.sum(name).alias(name) for name in _SUMS]
    times = [fn.min("first_commit_at").alias("first_commit_at"), fn.max("last_commit_at").alias("last_commit_at")]
    scope = fn.expr("CASE grouping_id() WHEN 0 THEN 'group' WHEN 1 THEN 'partition' ELSE 'topic' END")
    return per_group.rollup("partition", "group").agg(scope.alias("scope"), *sums, *times)


def _rated(rows: DataFrame, rates: LoadRates) -> DataFrame:
    in_scope = Window.partitionBy("scope")
    loudest = in_scope.orderBy(fn.desc("commits"), fn.desc("bytes"), "partition", "group")
    hours = (fn.unix_millis("last_commit_at") - fn.unix_millis("first_commit_at")) / 3_600_000.0
    load = fn.col("records") / fn.lit(rates.records_per_second)
    if rates.bytes_per_second is not None:
        load = fn.greatest(load, fn.col("bytes") / fn.lit(rates.bytes_per_second))
    return (
        rows.withColumn("commits_per_hour", fn.when(hours > 0, (fn.col("commits") - 1) / hours))
        .withColumn("rank", fn.row_number().over(loudest))
        .withColumn("share", _part(fn.col("bytes"), fn.sum("bytes").over(in_scope)))
        .withColumn("skew", _part(fn.col("bytes"), fn.avg("bytes").over(in_scope)))
        .withColumn("compaction_debt", _part(fn.col("superseded_bytes") + fn.col("aborted_bytes"), fn.col("bytes")))
        .withColumn("load_seconds", load)
    )


def _part(part: Column, whole: Column) -> Column:
    return fn.when(whole == 0, 0.0).otherwise(part / whole)
