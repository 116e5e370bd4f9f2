"""Offsets that wait for the end of a transaction, and what became of those that did not have to."""

from typing import Any

from pyspark.sql import functions as fn

from kohort.report.limits import ROWS
from kohort.report.rows import collected
from kohort.report.run import Run
from kohort.report.text import Strings


def transactions(run: Run, strings: Strings) -> dict[str, Any]:
    """`open`: group, producer, since, offsets, topics; `count`: how many transactions that are, for one may hold
    offsets of several groups; `fates`: plain, committed, aborted or open, and how many."""
    pending = (
        run.table("pending_offsets")
        .groupBy("group", "producer_id")
        .agg(fn.min("timestamp").alias("since"), fn.count("*").alias("n"), fn.countDistinct("topic").alias("topics"))
    )
    fates = run.table("offset_commits").groupBy("fate").agg(fn.count("*").alias("n"))
    told = pending.select("group", "producer_id", "since", "n", "topics").orderBy("since", "group").limit(ROWS)
    held = collected(told, strings, ("group",))
    return {
        "open": held,
        "count": pending.select("producer_id").distinct().count(),
        "fates": collected(fates.orderBy("fate"), strings, ("fate",)),
    }
