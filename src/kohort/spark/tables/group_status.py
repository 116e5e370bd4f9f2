"""`group_status`: Burrow's status of whole groups over time, from that of their partitions in `lag_status`.

A group is as bad as its worst partition: STOP, STALL and REWIND make it ERR. A partition's status holds from one commit
to the next, except that it becomes STOP on its own when the last commit is too long ago. At the end of the history a
group without any commit for `expire_group_seconds` is NOTFOUND, for Burrow forgets it. One row for each change.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kohort.spark.schema import as_table
from kohort.spark.tables.frames import seconds_between
from kohort.spark.tables.walk import BurrowRules
from kohort.spark.tables.walk_kinds import ERR, NOT_FOUND, OK, WARN

_STATUSES = ("OK", "WARN", "STOP", "STALL", "REWIND")


def group_status(lag_status: DataFrame, *, rules: BurrowRules | None = None) -> DataFrame:
    """When each group's status changed, or the number of its partitions that have one. Needs all of `lag_status`."""
    changes = _changes(lag_status, rules or BurrowRules())
    sums = [fn.sum(_one(fn.col("new"), status) - _one(fn.col("old"), status)).alias(status) for status in _STATUSES]
    steps = changes.groupBy("partition", "group", "at").agg(*sums)
    steps = steps.where(" OR ".join(f"{status} != 0" for status in _STATUSES))
    of_group = Window.partitionBy("partition", "group").orderBy("at")
    until = of_group.rowsBetween(Window.unboundedPreceding, 0)
    counts = {f"partitions_{status.lower()}": fn.sum(status).over(until) for status in _STATUSES}
    names = list(counts)
    counted = steps.withColumns(counts).withColumn("partitions", sum((fn.col(name) for name in names), fn.lit(0)))
    bad = fn.col("partitions_stop") + fn.col("partitions_stall") + fn.col("partitions_rewind")

    def worst(err: str | int, warn: str | int, good: str | int, none: str | int) -> Column:
        return (
            fn.when(bad > 0, err)
            .when(fn.col("partitions_warn") > 0, warn)
            .when(fn.col("partitions") > 0, good)
            .otherwise(none)
        )

    return as_table(
        counted.withColumn("status", worst("ERR", "WARN", "OK", "NOTFOUND"))
        .withColumn("status_code", worst(ERR, WARN, OK, NOT_FOUND))
        .withColumn("until", fn.lead("at").over(of_group)),
        "group_status",
    )


def _changes(lag_status: DataFrame, rules: BurrowRules) -> DataFrame:
    """When a partition came, went, or changed its status. There are few of those, however many commits there are."""
    last = lag_status.groupBy("partition", "group").agg(fn.max("at").alias("last_commit"))
    none = fn.lit(None).cast("string")
    plain = _event("at", fn.col("status_before"), fn.col("status"))
    later = _event(fn.coalesce("stopped_at", "until", "at"), fn.col("status"), fn.col("last_status"))
    gone = _event(
        "until", fn.col("last_status"), fn.when(fn.col("ended_by") == "removed", none).otherwise(fn.col("last_status"))
    )
    events = lag_status.select("partition", "group", fn.explode(fn.array(plain, later, gone)).alias("event"))
    at_end = lag_status.where(fn.col("ended_by") == "now").join(last, ["partition", "group"])
    is_purged = seconds_between("last_commit", "until") > rules.expire_group_seconds
    purged = at_end.where(is_purged).select(
        "partition", "group", _event("until", fn.col("last_status"), none).alias("event")
    )
    changes = events.unionByName(purged).select("partition", "group", "event.*")
    return changes.where(~fn.col("old").eqNullSafe(fn.col("new")))


def _event(at: Column | str, old: Column, new: Column) -> Column:
    return fn.struct((fn.col(at) if isinstance(at, str) else at).alias("at"), old.alias("old"), new.alias("new"))


def _one(status: Column, wanted: str) -> Column:
    return fn.when(status == wanted, 1).otherwise(0)
