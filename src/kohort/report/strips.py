"""What groups were over time: Burrow's status in each step, and how often they rebalanced."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.report.axis import Axis
from kohort.report.groups import is_rebalance
from kohort.report.run import Run
from kohort.report.series import Line, lines
from kohort.spark.tables.group_status import group_status

STATUSES = ("NOTFOUND", "OK", "WARN", "REWIND", "STALL", "STOP")
"""From good to bad; a step shows the worst that was in it."""


def status_over_time(run: Run, numbered: DataFrame, axis: Axis) -> dict[int, Line]:
    """The place of each step's status in `STATUSES`."""
    rank = fn.when(fn.col("partitions_stop") > 0, 5).when(fn.col("partitions_stall") > 0, 4)
    rank = rank.when(fn.col("partitions_rewind") > 0, 3).when(fn.col("partitions_warn") > 0, 2)
    rank = rank.when(fn.col("partitions") > 0, 1).otherwise(0)
    rows = group_status(run.table("lag_status")).join(fn.broadcast(numbered), "group")
    until = fn.coalesce(axis.bin_of("until"), fn.lit(axis.bins - 1))
    spans = rows.select("g", rank.alias("rank"), axis.bin_of("at").alias("start"), until.alias("end"))
    steps = spans.where("start IS NOT NULL").select("g", "rank", fn.explode(fn.sequence("start", "end")).alias("bin"))
    return lines(steps.groupBy("g", "bin").agg(fn.max("rank").alias("rank")), axis, "rank")["rank"]


def rebalances_over_time(run: Run, numbered: DataFrame, axis: Axis) -> dict[int, Line]:
    """How many in each step."""
    rows = run.table("rebalances").where(is_rebalance()).join(fn.broadcast(numbered), "group")
    counted = rows.groupBy("g", axis.bin_of("completed_at").alias("bin")).agg(fn.count("*").alias("n"))
    return lines(counted.where("bin IS NOT NULL"), axis, "n")["n"]
