"""Of each group that is told in detail: its partitions now, those that lag most first, and when each was committed."""

from collections import defaultdict
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.report.axis import Axis
from kohort.report.generations import Rows, detailed
from kohort.report.limits import DETAILED, PARTITIONS
from kohort.report.rows import collected, last_of
from kohort.report.run import Run
from kohort.report.series import lines, packed
from kohort.report.text import Strings


def partitions_of(run: Run, numbered: DataFrame, strings: Strings) -> Rows:
    """Topic, partition, committed, end, lag, seconds, lost, last commit, its text, status, where the end is from."""
    rows = run.table("lag").join(fn.broadcast(detailed(numbered)), "group")
    rows = last_of(rows, "g", [fn.desc_nulls_last("lag"), fn.col("topic"), fn.col("topic_partition")], PARTITIONS)
    key = ["group", "topic", "topic_partition"]
    now = (
        run.table("lag_status")
        .groupBy(*key)
        .agg(fn.max_by(fn.when(fn.col("ended_by") == "now", fn.col("last_status")), "at").alias("status"))
    )
    texts = run.table("current_offsets").select(*key, fn.substring("metadata", 1, 300).alias("metadata"))
    rows = rows.join(now, key, "left").join(texts, key, "left")
    told = rows.orderBy(fn.desc_nulls_last("lag"), "topic", "topic_partition").select(
        "g", "topic", "topic_partition", "committed_offset", "end_offset", "lag", "lag_seconds", "messages_lost",
        "commit_timestamp", "metadata", "status", "source",
    )  # fmt: skip
    found: Rows = defaultdict(list)
    for g, *row in collected(told, strings, ("topic", "metadata", "status", "source")):
        found[g].append(row)
    return dict(found)


def commits_by_partition(thinned: DataFrame, axis: Axis, strings: Strings) -> Rows:
    """Topic, partition, and how many commits there were in each step; the partitions with most of them."""
    rows = thinned.where(fn.col("g").between(0, DETAILED - 1) & (fn.col("commits") > 0))
    sums = rows.groupBy("g", "topic", "topic_partition").agg(fn.sum("commits").alias("n"))
    chosen = last_of(sums, "g", [fn.desc("n"), fn.col("topic"), fn.col("topic_partition")], PARTITIONS).drop("n")
    drawn = rows.join(chosen, ["g", "topic", "topic_partition"])
    found: dict[int, list[list[Any]]] = defaultdict(list)
    made = lines(drawn, axis, "commits", by=("g", "topic", "topic_partition"))["commits"]
    for (g, topic, partition), line in sorted(made.items()):
        found[g].append([strings.number(topic), partition, packed(line)])
    return dict(found)
