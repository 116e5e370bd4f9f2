"""What could not be read: damaged batches, and records that nobody here understands."""

from typing import Any

from pyspark.sql import functions as fn

from kohort.report.limits import ROWS
from kohort.report.rows import collected
from kohort.report.run import Run
from kohort.report.text import Strings


def damage(run: Run, strings: Strings) -> dict[str, Any]:
    """`rows`: path, partition, byte, offset, records, reason; `unread`: kind, versions, reason, how many; `kinds`."""
    table = run.whole("quarantine")
    told = table.orderBy("partition", "position").limit(ROWS)
    records = run.whole("records").groupBy("kind", "key_version", "value_version", "tombstone", "control", "reason")
    counted = records.agg(fn.count("*").alias("n")).persist()
    try:
        unread = counted.where(fn.col("reason").isNotNull()).orderBy(fn.desc("n")).limit(ROWS)
        kinds = counted.groupBy("kind", "key_version", "value_version").agg(fn.sum("n").alias("n"))
        kinds = kinds.orderBy(fn.desc("n"), "kind").limit(ROWS)
        return {
            "count": run.manifest.tables["quarantine"].rows,
            "rows": collected(
                told.select("path", "partition", "position", "offset", "records", "reason"), strings, ("path", "reason")
            ),
            "unread": collected(
                unread.select("kind", "key_version", "value_version", "reason", "n"), strings, ("kind", "reason")
            ),
            "kinds": collected(kinds, strings, ("kind",)),
        }
    finally:
        counted.unpersist()
