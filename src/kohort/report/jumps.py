"""Committed offsets that went back, or further than anybody reads."""

from typing import Any

from pyspark.sql import functions as fn

from kohort.report.limits import ROWS
from kohort.report.rows import collected
from kohort.report.run import Run
from kohort.report.text import Strings


def jumps(run: Run, strings: Strings) -> dict[str, Any]:
    """`rows`: group, topic, partition, when, from, to, distance, kind, evidence, client, host; `kinds`: how many."""
    table = run.table("offset_jumps")
    kinds = table.groupBy("kind").agg(fn.count("*").alias("n"), fn.countDistinct("group").alias("groups"))
    told = table.orderBy(fn.desc(fn.abs("distance")), "group", "topic", "topic_partition", "offset").limit(ROWS)
    rows = told.select(
        "group", "topic", "topic_partition", "at", "from_offset", "to_offset", "distance", "kind", "evidence",
        "client_id", "client_host",
    )  # fmt: skip
    return {
        "rows": collected(rows, strings, ("group", "topic", "kind", "evidence", "client_id", "client_host")),
        "kinds": collected(kinds.orderBy(fn.desc("n"), "kind"), strings, ("kind",)),
    }
