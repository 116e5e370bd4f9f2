"""When offsets will be forgotten: a calendar of hours, and which groups lose how many."""

from typing import Any

from pyspark.sql import functions as fn

from kohort.report.groups import DAY_S
from kohort.report.limits import ROWS
from kohort.report.rows import collected
from kohort.report.run import Run
from kohort.report.text import Strings

_DAYS = 35
"""How far ahead the calendar looks."""


def expiring(run: Run, strings: Strings) -> dict[str, Any]:
    """`hours`: hour since 1970, offsets, groups; what is due, now. `groups`: group, offsets, first, last, reason."""
    rows = run.table("expiry")
    due = rows.where(fn.col("expires_at").isNotNull())
    soon = due.where(fn.col("expires_within_seconds") <= _DAYS * DAY_S)
    when = fn.greatest(fn.unix_millis("expires_at"), fn.lit(run.manifest.at_millis))
    hours = soon.groupBy(fn.floor(when / 3_600_000).alias("hour")).agg(
        fn.count("*").alias("n"), fn.countDistinct("group").alias("groups")
    )
    groups = due.groupBy("group", "reason").agg(
        fn.count("*").alias("n"), fn.min("expires_at").alias("first"), fn.max("expires_at").alias("last")
    )
    reasons = rows.groupBy("reason").agg(fn.count("*").alias("n"), fn.count("expires_at").alias("due"))
    told = groups.orderBy("first", "group").limit(ROWS).select("group", "n", "first", "last", "reason")
    return {
        "hours": collected(hours.orderBy("hour"), strings),
        "groups": collected(told, strings, ("group", "reason")),
        "reasons": collected(reasons.orderBy(fn.desc("n"), "reason"), strings, ("reason",)),
    }
