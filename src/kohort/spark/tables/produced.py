"""When the record at an offset was produced, from points that say how far a topic partition was at some time.

A point of `topic_times` is a record and its time. A point of `end_offsets` says that the record at that offset was not
there yet. Between two points the time is interpolated, and their times are its bounds; before the first point there is
only a bound. Where nothing of the kind is known, the commits themselves are points: when any group had committed more
than an offset, the record there had been produced (and read), so it is at least as old as that commit.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn

from kohort.spark.tables.ends import FURTHEST_GROUP, TOPIC_PARTITION
from kohort.spark.tables.frames import instant


def known_points(end_offsets: DataFrame | None, topic_times: DataFrame | None) -> DataFrame | None:
    """Points of what is known, by offset. Time does not go back: a record is as late as the latest before it."""
    parts = []
    if end_offsets is not None:
        parts.append(_point(end_offsets, fn.col("end_offset"), fn.unix_millis("at"), is_record=False))
    if topic_times is not None:
        parts.append(_point(topic_times, fn.col("offset"), fn.unix_millis("timestamp"), is_record=True))
    if not parts:
        return None
    by_offset = Window.partitionBy(*TOPIC_PARTITION).orderBy("place")
    latest = fn.max("best.millis").over(by_offset.rowsBetween(Window.unboundedPreceding, 0))
    distinct = (
        reduce(DataFrame.unionByName, parts)
        .where((fn.col("place") >= 0) & fn.col("millis").isNotNull())
        .groupBy(*TOPIC_PARTITION, "place")
        .agg(fn.max(fn.struct("is_record", "millis")).alias("best"))
        .select(*TOPIC_PARTITION, "place", latest.alias("millis"), fn.col("best.is_record").alias("is_record"))
    )
    return _with_previous(distinct, by_offset, is_proxy=False)


def commit_points(commits: DataFrame, *, resolution_millis: int = 1) -> DataFrame:
    """Points of the commits of all groups (topic, topic_partition, at, committed_offset): each time the furthest one
    went on. A coarser resolution needs less room, and its points are late by no more than that.
    """
    millis = fn.unix_millis("at")
    furthest = (
        commits.where((fn.col("committed_offset") >= 0) & fn.col("at").isNotNull())
        .select(*TOPIC_PARTITION, fn.col("committed_offset").alias("place"), millis.alias("millis"))
        .groupBy(*TOPIC_PARTITION, fn.floor(fn.col("millis") / resolution_millis).alias("moment"))
        .agg(fn.max_by("millis", "place").alias("millis"), fn.max("place").alias("place"))
    )
    by_time = Window.partitionBy(*TOPIC_PARTITION).orderBy("moment").rowsBetween(Window.unboundedPreceding, -1)
    went_on = furthest.withColumn("until", fn.max("place").over(by_time)).where(
        fn.col("until").isNull() | (fn.col("place") > fn.col("until"))
    )
    return _by_place(went_on)


def walked_points(walked: DataFrame) -> DataFrame:
    """The same, minute by minute, from a walk through those commits."""
    return _by_place(walked.where(fn.col("is_point")).withColumnRenamed("committed_offset", "place"))


def _by_place(went_on: DataFrame) -> DataFrame:
    points = went_on.select(*TOPIC_PARTITION, "place", "millis", fn.lit(False).alias("is_record"))
    return _with_previous(points, Window.partitionBy(*TOPIC_PARTITION).orderBy("place"), is_proxy=True)


def claims_of(points: DataFrame) -> DataFrame:
    """The commits that some points are of."""
    at = fn.timestamp_millis("point.millis").alias("at")
    return points.select(*TOPIC_PARTITION, at, fn.col("place").alias("committed_offset"))


def _point(table: DataFrame, place: Column, millis: Column, *, is_record: bool) -> DataFrame:
    return table.select(
        *TOPIC_PARTITION, place.alias("place"), millis.alias("millis"), fn.lit(is_record).alias("is_record")
    )


def _with_previous(points: DataFrame, by_offset: WindowSpec, *, is_proxy: bool) -> DataFrame:
    point = fn.struct("place", "millis", "is_record")
    return points.select(
        *TOPIC_PARTITION,
        "place",
        fn.lit(is_proxy).alias("is_proxy"),
        fn.struct("place", "millis", fn.lag(point).over(by_offset).alias("before")).alias("point"),
    )


def with_produced(rows: DataFrame, *points: DataFrame | None) -> DataFrame:
    """`rows` (topic, topic_partition, at, committed_offset, lag, source) with the age of the next record to consume.

    A row looks at points of its own kind: known ones, or commits if its `source` says so.
    """
    is_proxy = fn.col("source") == FURTHEST_GROUP
    both = rows.withColumn("is_row", fn.lit(True)).withColumn("is_proxy", is_proxy)
    both = both.withColumn("place", fn.greatest("committed_offset", fn.coalesce("start_offset", fn.lit(0))))
    given = [part for part in points if part is not None]
    both = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), given, both)
    # The next point behind the offset: in falling order the last one before it. Of equal places, rows come first.
    falling = Window.partitionBy(*TOPIC_PARTITION, "is_proxy").orderBy(
        fn.desc("place"), fn.asc_nulls_first("point.millis")
    )
    after = fn.last("point", ignorenulls=True).over(falling.rowsBetween(Window.unboundedPreceding, -1))
    found = both.withColumn("after", after).where(fn.col("is_row"))
    return _with_ages(found).drop("is_row", "is_proxy", "place", "point", "after", "millis")


def _with_ages(rows: DataFrame) -> DataFrame:
    after, before, place = fn.col("after"), fn.col("after.before"), fn.col("place")
    part = (place - before["place"]) / (after["place"] - before["place"])
    between = before["millis"] + fn.floor((after["millis"] - before["millis"]) * part)
    method = (
        fn.when(fn.col("lag") == 0, "caught_up")
        .when(after.isNull(), None)
        .when(fn.col("is_proxy"), "furthest_group")
        .when(before.isNull(), "before_first_sample")
        .when(before["is_record"] & (place == before["place"]), "sample")
        .otherwise("interpolated")
    )
    is_bound = fn.col("time_method").isin("furthest_group", "before_first_sample")
    is_exact = fn.col("time_method") == "sample"
    is_caught_up = fn.col("time_method") == "caught_up"
    produced = (
        fn.when(is_caught_up, None).when(is_bound, after["millis"]).when(is_exact, before["millis"]).otherwise(between)
    )
    newest = fn.when(is_exact, before["millis"]).otherwise(after["millis"])
    oldest = fn.when(~is_bound, before["millis"])
    return (
        rows.withColumn("millis", fn.unix_millis("at"))
        .withColumn("time_method", method)
        .withColumn("produced_millis", fn.when(produced.isNotNull(), fn.least(produced, "millis")))
        .withColumn("produced_at", instant(fn.col("produced_millis")))
        .withColumn("lag_seconds", fn.when(is_caught_up, 0.0).otherwise(_age(fn.col("produced_millis"))))
        .withColumn("lag_seconds_min", fn.when(is_caught_up, 0.0).otherwise(_age(newest)))
        .withColumn("lag_seconds_max", fn.when(is_caught_up, 0.0).otherwise(_age(oldest)))
        .drop("produced_millis")
    )


def _age(millis: Column) -> Column:
    """How old what happened then is at the row's time. What is behind that time is not there yet."""
    return fn.when(millis.isNotNull(), fn.greatest(fn.col("millis") - millis, fn.lit(0)) / 1000.0)
