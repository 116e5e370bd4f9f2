"""`lag` and `lag_history`: how far each group is behind, in messages and in time, now and at every commit.

Lag in messages is the end of the topic partition less the committed offset. Lag in time is the age of the record at
the committed offset, the next one to be consumed: for how long it has been waiting. Both need to know something of the
topic partition (`end_offsets`, `topic_times`). Where nothing is known, the furthest commit of any group stands in for
the end and gives lower bounds; each row says where its end is from. How ends and times are found between what is known
stands in `ends` and `produced`.
"""

from datetime import datetime
from typing import overload

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.spark.schema import as_table
from kohort.spark.tables.ends import TOPIC_PARTITION, samples_of, with_ends
from kohort.spark.tables.frames import (
    COMMIT_KEY,
    commit_time,
    instant,
    messages_behind,
    seconds_between,
    step,
    visible,
)
from kohort.spark.tables.produced import claims_of, commit_points, known_points, walked_points, with_produced
from kohort.spark.tables.walk_kinds import CLAIM_MILLIS


def lag(
    current_offsets: DataFrame,
    end_offsets: DataFrame | None = None,
    topic_times: DataFrame | None = None,
    *,
    commits: DataFrame | None = None,
    walked: DataFrame | None = None,
    as_of: datetime | None = None,
) -> DataFrame:
    """The lag of every committed offset, as of a time; by default when its topic partition was last heard of.

    `commits` are the `offset_commits` of the same logs: with them the proxy knows all groups that ever were, and since
    when. `walked` is the `walk` of those up to the same time, which tells that without a look at them, and since when
    an offset stands still.
    """
    end_offsets = _until(end_offsets, "at", as_of)
    samples = samples_of(end_offsets, topic_times)
    rows = _with_moment(current_offsets, samples, as_of)
    if walked is None:
        seen = current_offsets.withColumn("at", fn.col("commit_timestamp")) if commits is None else _committed(commits)
        waypoints = commit_points(_until(seen, "at", as_of), resolution_millis=CLAIM_MILLIS)
    else:
        waypoints = walked_points(walked)
    rows = _with_starts(with_ends(rows, samples, claims=claims_of(waypoints)), end_offsets)
    position = fn.greatest("committed_offset", fn.lit(0))
    lost = fn.least("start_offset", "end_offset") - position
    rows = (
        rows.withColumn("lag", messages_behind("committed_offset"))
        .withColumn("messages_lost", fn.when(fn.col("start_offset").isNotNull(), fn.greatest(lost, fn.lit(0))))
        .withColumn("messages_ahead", fn.greatest(step("end_offset", "committed_offset"), fn.lit(0)))
        .withColumn("commit_age_seconds", seconds_between("commit_timestamp", "at"))
    )
    rows = with_produced(rows, known_points(end_offsets, topic_times), waypoints)
    return as_table(_with_stall(rows, walked), "lag")


def lag_history(
    commits: DataFrame, end_offsets: DataFrame | None = None, topic_times: DataFrame | None = None
) -> DataFrame:
    """The lag at every commit that counted, just after it. `commits` are `offset_commits`."""
    rows = _committed(commits).withColumn("start_offset", fn.lit(None).cast("bigint"))
    waypoints = commit_points(rows)
    rows = with_ends(rows, samples_of(end_offsets, topic_times)).withColumn("lag", messages_behind("committed_offset"))
    return as_table(with_produced(rows, known_points(end_offsets, topic_times), waypoints), "lag_history")


@overload
def _until(table: DataFrame, time: str, as_of: datetime | None) -> DataFrame: ...
@overload
def _until(table: DataFrame | None, time: str, as_of: datetime | None) -> DataFrame | None: ...
def _until(table: DataFrame | None, time: str, as_of: datetime | None) -> DataFrame | None:
    return table if table is None or as_of is None else table.where(fn.col(time) <= fn.lit(as_of))


def _with_moment(offsets: DataFrame, samples: DataFrame | None, as_of: datetime | None) -> DataFrame:
    """The time for which the lag is told."""
    if as_of is not None:
        return offsets.withColumn("at", fn.lit(as_of))
    heard = offsets.select(*TOPIC_PARTITION, fn.unix_millis("commit_timestamp").alias("millis"))
    if samples is not None:
        heard = heard.unionByName(samples.select(*TOPIC_PARTITION, "millis"))
    last = heard.groupBy(*TOPIC_PARTITION).agg(fn.timestamp_millis(fn.max("millis")).alias("at"))
    return offsets.join(last, list(TOPIC_PARTITION), "left")


def _with_starts(rows: DataFrame, end_offsets: DataFrame | None) -> DataFrame:
    if end_offsets is None:
        return rows.withColumn("start_offset", fn.lit(None).cast("bigint"))
    starts = end_offsets.groupBy(*TOPIC_PARTITION).agg(fn.max_by("start_offset", "at").alias("start_offset"))
    return rows.join(starts, list(TOPIC_PARTITION), "left")


def _with_stall(rows: DataFrame, walked: DataFrame | None) -> DataFrame:
    """Since when the committed offset is what it is."""
    if walked is None:
        return rows.withColumn("stall_seconds", fn.lit(None).cast("double"))
    changes = walked.where(fn.col("is_last")).select(*COMMIT_KEY, instant(fn.col("changed_millis")).alias("changed_at"))
    joined = rows.join(changes, list(COMMIT_KEY), "left")
    return joined.withColumn("stall_seconds", seconds_between("changed_at", "at"))


def _committed(commits: DataFrame) -> DataFrame:
    """The commits that counted, with the time of each."""
    counted = visible(commits).where(~fn.col("tombstone"))
    return counted.select(*COMMIT_KEY, "offset", "committed_offset", commit_time().alias("at"))
