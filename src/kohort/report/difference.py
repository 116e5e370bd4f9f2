"""What changed between two times: the offsets of groups as they were at each."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.report.axis import Axis
from kohort.report.limits import ROWS
from kohort.report.rows import collected
from kohort.report.run import Run
from kohort.report.text import Strings
from kohort.spark.restore import offsets_as_of
from kohort.spark.tables.frames import step

_DAY_MS = 86_400_000
_KEY = ["group", "topic", "topic_partition"]


def two_times(run: Run, axis: Axis, earlier: int | None, later: int | None) -> tuple[int, int]:
    """Those that are asked for; else the end and a day before it, or half-way if the log is not as long."""
    end = run.manifest.at_millis if later is None else later
    if earlier is not None:
        return earlier, end
    return (end - _DAY_MS if axis.start < end - _DAY_MS else (axis.start + end) // 2), end


def difference(run: Run, earlier: int, later: int, strings: Strings) -> dict[str, Any]:
    """`rows`: group, topic, partition, offset then, offset now, messages, what; `counts`: how many of each what."""
    joined = _offsets(run, earlier, "before").join(_offsets(run, later, "after"), _KEY, "full")
    what = (
        fn.when(fn.col("before").isNull(), "new")
        .when(fn.col("after").isNull(), "gone")
        .when(fn.col("after") < fn.col("before"), "back")
        .when(fn.col("after") > fn.col("before"), "ahead")
        .otherwise("same")
    )
    rows = joined.withColumn("what", what).withColumn("messages", step("before", "after")).persist()
    try:
        counts = rows.groupBy("what").agg(fn.count("*").alias("n"), fn.countDistinct("group").alias("groups"))
        rank = fn.when(fn.col("what") == "gone", 0).when(fn.col("what") == "back", 1).when(fn.col("what") == "new", 2)
        changed = rows.where(fn.col("what") != "same")
        told = changed.orderBy(rank.otherwise(3), fn.desc(fn.abs("messages")), *_KEY).limit(ROWS)
        shown = told.select(*_KEY, "before", "after", "messages", "what")
        return {
            "earlier": earlier,
            "later": later,
            "counts": collected(counts.orderBy("what"), strings, ("what",)),
            "rows": collected(shown, strings, ("group", "topic", "what")),
        }
    finally:
        rows.unpersist()


def _offsets(run: Run, at: int, name: str) -> DataFrame:
    rows = offsets_as_of(run.whole("offset_commits"), run.whole("records"), at, run.groups)
    return rows.select(*_KEY, fn.col("committed_offset").alias(name))
