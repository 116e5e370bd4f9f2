"""The offsets topic itself: its partitions, and who fills it."""

from typing import Any

from pyspark.sql import functions as fn

from kohort.report.limits import LOUDEST
from kohort.report.rows import collected
from kohort.report.run import Run
from kohort.report.text import Strings

COLUMNS = (
    "records", "bytes", "live_bytes", "superseded_bytes", "tombstone_bytes", "aborted_bytes", "open_bytes", "commits",
    "idle_commits", "commits_per_hour", "share", "skew", "compaction_debt", "load_seconds",
)  # fmt: skip
_MOST_PARTITIONS = 1_000


def health(run: Run, strings: Strings) -> dict[str, Any]:
    """A row for the topic, for each partition, and for each of the loudest groups; the rest of them as one."""
    table = run.whole("topic_health")
    of = fn.col("scope")
    whole = collected(table.where(of == "topic").select(*COLUMNS), strings)
    partitions = table.where(of == "partition").orderBy("partition").limit(_MOST_PARTITIONS)
    groups = run.table("topic_health").where(of == "group")
    loudest = groups.orderBy(fn.desc("bytes"), "group").limit(LOUDEST)
    return {
        "columns": list(COLUMNS),
        "topic": whole[0] if whole else None,
        "partitions": collected(partitions.select("partition", *COLUMNS), strings),
        "loudest": collected(loudest.select("group", *COLUMNS), strings, ("group",)),
    }
