"""All groups, and of each what matters: state, lag, status, rebalances, bytes. Those that need a look come first."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kohort.report.limits import GROUPS
from kohort.report.run import Run
from kohort.spark.tables.group_status import group_status

DAY_S = 86_400
REBALANCED = (
    "member_joined", "member_left", "members_changed", "members_restarted", "subscription_changed", "protocol_changed",
    "cooperative_handover", "partitions_changed", "same_members",
)  # fmt: skip
"""Causes of what made members stop and go on; the others are a group's first sight, its end, or no rebalance at all."""

REMOVED = "Removed"
STORM = 10
"""So many rebalances are something to look at."""

_STATUSES = ("stop", "stall", "rewind", "warn", "ok")
_HEALTH = ("records", "bytes", "commits", "idle_commits")
_SUMS = (
    *_HEALTH, "offsets", "lag", "lost", "proxies", "rebalances", "expiring", "pending", "jumps",
    *_STATUSES,
)  # fmt: skip
_COUNTED = (*_STATUSES, "expiring")
"""Of how many groups this is true is told as well."""
_MAXIMA = (
    "state", "type", "generation", "protocol_type", "protocol", "members", "coordinator", "last_commit", "lag_seconds",
)  # fmt: skip
_MINIMA = ("first_commit", "expires", "pending_since")


@dataclass(frozen=True, slots=True)
class Groups:
    """`rows` are those that the page has, `totals` are of all."""

    rows: list[dict[str, Any]]
    totals: dict[str, Any]
    states: dict[str, int]
    numbered: DataFrame
    """`group` and its number `g`, the place of its row."""


def is_rebalance() -> Column:
    return fn.col("cause").isin(*REBALANCED)


def find_groups(run: Run) -> Groups:
    """Every group that the tables know of, also those that are no more."""
    facts = _facts(run)
    order = (_trouble().desc(), fn.desc("lag"), fn.desc("commits"), fn.col("group"))
    rows = facts.orderBy(*order).limit(GROUPS + 1).toArrow().to_pylist()
    if len(rows) <= GROUPS:
        totals, states = _totals_of(rows)
    else:
        rows.pop()
        totals, states = _totals(facts)
    names = [(row["group"], number) for number, row in enumerate(rows)]
    numbered = run.spark.createDataFrame(names, "`group` string, g int")
    return Groups(rows, totals, states, numbered)


def _totals(facts: DataFrame) -> tuple[dict[str, Any], dict[str, int]]:
    """Sums of all groups, and how many there are in each state."""
    told = facts.groupBy("state").agg(
        fn.count("*").alias("groups"),
        *[fn.sum(name).alias(name) for name in _SUMS],
        *[fn.sum((fn.col(name) > 0).cast("int")).alias(f"groups_{name}") for name in _COUNTED],
    )
    rows = [row.asDict() for row in told.collect()]
    names = ["groups", *_SUMS, *(f"groups_{name}" for name in _COUNTED)]
    return {name: sum(row[name] for row in rows) for name in names}, {row["state"]: row["groups"] for row in rows}


def _totals_of(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, int]]:
    """The same, if all groups are here."""
    totals: dict[str, Any] = {name: sum(row[name] for row in rows) for name in _SUMS}
    totals |= {f"groups_{name}": sum(row[name] > 0 for row in rows) for name in _COUNTED}
    return totals | {"groups": len(rows)}, dict(Counter(row["state"] for row in rows))


def worst(row: dict[str, Any]) -> str:
    """Burrow's status of a group, with the kind of error told apart."""
    return next((name.upper() for name in _STATUSES if row[name]), "")


def _trouble() -> Column:
    def there(name: str, weight: int) -> Column:
        return fn.when(fn.col(name) > 0, weight).otherwise(0)

    storm = fn.when(fn.col("rebalances") >= STORM, 9).otherwise(0)
    bad = there("stop", 5) + there("stall", 4) + there("rewind", 3) + there("warn", 1)
    return bad + storm + there("pending", 3) + there("expiring", 1) + there("jumps", 1)


def _facts(run: Run) -> DataFrame:
    """One row for each group, from what each table says of it."""
    told = [
        _current(run),
        _health(run),
        run.table("current_offsets").select("group", fn.lit(1).alias("offsets")),
        run.table("lag").select(
            "group",
            fn.col("lag").cast("double").alias("lag"),
            "lag_seconds",
            fn.col("messages_lost").cast("double").alias("lost"),
            (fn.col("source") == "furthest_group").cast("int").alias("proxies"),
        ),
        _status(run),
        run.table("rebalances").where(is_rebalance()).select("group", fn.lit(1).alias("rebalances")),
        run.table("expiry").select(
            "group",
            (fn.col("expires_within_seconds") <= DAY_S).cast("int").alias("expiring"),
            fn.unix_millis("expires_at").alias("expires"),
        ),
        run.table("pending_offsets").select(
            "group", fn.lit(1).alias("pending"), fn.unix_millis("timestamp").alias("pending_since")
        ),
        run.table("offset_jumps").select("group", fn.lit(1).alias("jumps")),
    ]
    together = told[0]
    for more in told[1:]:
        together = together.unionByName(more, allowMissingColumns=True)
    found = together.groupBy("group").agg(
        *[fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in _SUMS],
        *[fn.max(name).alias(name) for name in _MAXIMA],
        *[fn.min(name).alias(name) for name in _MINIMA],
    )
    return found.withColumn("state", fn.coalesce("state", fn.lit(REMOVED)))


def _current(run: Run) -> DataFrame:
    return run.table("current_groups").select(
        "group", "state", "type", "generation", "protocol_type", "protocol",
        fn.col("member_count").alias("members"), fn.col("partition").alias("coordinator"),
    )  # fmt: skip


def _health(run: Run) -> DataFrame:
    return (
        run.table("topic_health")
        .where(fn.col("scope") == "group")
        .select(
            "group",
            *_HEALTH,
            fn.unix_millis("first_commit_at").alias("first_commit"),
            fn.unix_millis("last_commit_at").alias("last_commit"),
        )
    )


def _status(run: Run) -> DataFrame:
    last = group_status(run.table("lag_status")).where(fn.col("until").isNull())
    return last.select("group", *[fn.col(f"partitions_{name}").alias(name) for name in _STATUSES])
