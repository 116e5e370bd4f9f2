"""All commits, thinned to one row for each group, topic partition and step of time: the one look at the long table."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.report.axis import Axis
from kohort.report.run import Run
from kohort.spark.tables.frames import counted

OTHERS = -1
"""The number of all groups that have none in the page; what they committed still tells how far a topic reached."""


def thin(run: Run, numbered: DataFrame, axis: Axis) -> DataFrame:
    """`commits`, how many there were; `furthest`, the highest offset; `last` and `gone`, what stood at the end.

    Commits of transactions that were aborted or are open are counted, but say nothing of offsets.
    """
    commits = run.whole("offset_commits").withColumn("bin", axis.bin_of("timestamp")).where("bin IS NOT NULL")
    numbers = fn.coalesce("g", fn.lit(OTHERS)).alias("g")
    rows = commits.join(fn.broadcast(numbered), "group", "left").select(
        numbers, "topic", "topic_partition", "bin", "offset", "tombstone", "committed_offset",
        counted().alias("counts"),
    )  # fmt: skip
    is_offset = fn.col("counts") & ~fn.col("tombstone")
    place = fn.when(fn.col("counts"), fn.col("offset"))
    return rows.groupBy("g", "topic", "topic_partition", "bin").agg(
        fn.count(fn.when(~fn.col("tombstone"), 1)).alias("commits"),
        fn.max(fn.when(is_offset, fn.col("committed_offset"))).alias("furthest"),
        fn.max_by("committed_offset", place).alias("last"),
        fn.max_by("tombstone", place).alias("gone"),
    )
