"""`lag_status`: what Burrow would have said of each consumer, from every commit of the past to the next.

Burrow (LinkedIn's lag monitor) keeps the last commits of a group for each topic partition, each with its time and the
lag that it left, and judges by those instead of a threshold. Here it looks twice at every commit: just after it
(`status`), and just before the next one, which is how one sees that a consumer had stopped (`last_status`). What ends
the time of a commit may also be the tombstone of the offset, or the end of the history. The first line that holds
counts:

======  ===============================================================================================================
OK      less of the window is filled than `minimum_complete`
OK      the lag is not more than `allowed_lag`
STOP    the last commit is longer ago than the window is long, and the consumer was not at the end lately
REWIND  the offset went back within the window, and has not reached again what it was before
STALL   all lags in the window are more than is allowed, and the offset did not move
WARN    all lags in the window are more than is allowed, and none is less than the one before
OK      otherwise
======  ===============================================================================================================

A commit that comes less than `min_distance_seconds` after the last one in the window takes its place, but not its time.
Burrow polls the end of a topic partition every `offset_refresh_seconds` and remembers as many answers as commits, so
"lately" is what those span. Here ends are what `end_offsets` and `topic_times` say, interpolated in between; where
nothing is known, the furthest commit of any group, looked at every minute, stands in. A commit that was older than
`expire_group_seconds` when it came is not taken. The clock never goes back. A tombstone ends a window, as the deletion
of a group does for Burrow.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kohort.spark.schema import as_table
from kohort.spark.tables.ends import END_OFFSETS, FURTHEST_GROUP, TOPIC_TIMES
from kohort.spark.tables.frames import instant
from kohort.spark.tables.walk import BurrowRules, walk
from kohort.spark.tables.walk_kinds import (
    BY_CLAIM,
    BY_COMMIT,
    BY_END,
    BY_END_SAMPLE,
    BY_RECORD_SAMPLE,
    BY_REMOVAL,
    OK,
    REWIND,
    STALL,
    STOP,
    WARN,
)

_STATUSES = {OK: "OK", WARN: "WARN", STOP: "STOP", STALL: "STALL", REWIND: "REWIND"}
_SOURCES = {BY_CLAIM: FURTHEST_GROUP, BY_END_SAMPLE: END_OFFSETS, BY_RECORD_SAMPLE: TOPIC_TIMES}
_ENDED_BY = {BY_COMMIT: "commit", BY_REMOVAL: "removed", BY_END: "now"}


def lag_status(
    commits: DataFrame,
    end_offsets: DataFrame | None = None,
    topic_times: DataFrame | None = None,
    *,
    as_of: datetime | None = None,
    rules: BurrowRules | None = None,
    every_commit: bool = True,
    walked: DataFrame | None = None,
) -> DataFrame:
    """Burrow's status of every topic partition of every group, commit by commit, up to `as_of`.

    Unless `every_commit` is wanted, commits that change nothing are left out; all that changes stands. `walked` is the
    `walk` of these commits by these rules, if somebody has made it already.
    """
    rules = rules or BurrowRules()
    if walked is None:
        walked = walk(commits, end_offsets, topic_times, as_of=as_of, burrow=rules, every_commit=every_commit)
    told = walked.where(fn.col("is_status") if every_commit else fn.col("is_change"))
    return as_table(
        told.withColumns(
            {
                "at": instant(fn.col("clock")),
                "until": instant(fn.col("until")),
                "ended_by": _named("ended_by", _ENDED_BY),
                "source": _named("source", _SOURCES),
                "complete": fn.col("window_commits") / rules.intervals,
                "window_start": instant(fn.col("window_start")),
                "status": _named("status", _STATUSES),
                "status_code": fn.col("status"),
                "status_before": _named("status_before", _STATUSES),
                "last_status": _named("last_status", _STATUSES),
                "stopped_at": instant(fn.col("stopped_at")),
            }
        ),
        "lag_status",
    )


def _named(column: str, names: dict[int, str]) -> Column:
    """The name of a number; NULL if it has none."""
    name = fn.lit(None).cast("string")
    for number, told in names.items():
        name = fn.when(fn.col(column) == number, told).otherwise(name)
    return name
