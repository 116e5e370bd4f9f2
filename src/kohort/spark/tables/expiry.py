"""`expiry`: when each committed offset may be forgotten, by the rules of Kafka's coordinators (KIP-211, KIP-496).

A coordinator looks every `offsets.retention.check.interval.ms` (10 minutes) and removes what is over. What holds an
offset depends on the group as it is now; whoever joins, leaves, subscribes or commits changes the forecast. The first
line that holds is the `reason`:

====================  ========================  =======================================================================
reason                expires                   the rule
====================  ========================  =======================================================================
pending_transaction   not as it is              a transaction that has a commit for it is open
subscribed            not as it is              the group has members, and they subscribe to the topic
active_group          not as it is              members whose subscriptions nobody else can read (connect, ...)
explicit              at its own time           the commit came with a retention time (OffsetCommit v2 to v4)
group_empty           group emptied + retention the last member has gone; the group's record tells when
group_empty_commit    commit + retention        the same, but the record is too old to tell when (before version 2)
unsubscribed_topic    commit + retention        the group has members, and none subscribes to the topic any more
simple_group          commit + retention        no members ever: the group uses Kafka to store offsets only
====================  ========================  =======================================================================

Groups of the newer protocol (KIP-848) count from the commit, whether they are empty or not.
"""

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kohort.config import GroupConfig
from kohort.spark.schema import as_table
from kohort.spark.tables.frames import COMMIT_KEY, instant, seconds_between

_MINUTE = 60_000
_DEFAULT_MINUTES = GroupConfig().offsets_retention_minutes


def expiry(
    current_offsets: DataFrame,
    current_groups: DataFrame,
    pending_offsets: DataFrame | None = None,
    *,
    retention_minutes: int = _DEFAULT_MINUTES,
    now: datetime | None = None,
) -> DataFrame:
    """When each committed offset expires if `offsets.retention.minutes` is `retention_minutes`."""
    moment = fn.lit(now or datetime.now(UTC))
    offsets = current_offsets.join(_group_facts(current_groups), ["partition", "group"], "left")
    offsets = _with_pending(offsets, pending_offsets)
    told = offsets.withColumn("reason", _reason()).withColumn("since", _since())
    own = fn.when(fn.col("reason") == "explicit", fn.col("expire_timestamp"))
    expires = fn.coalesce(own, instant(fn.unix_millis("since") + fn.lit(retention_minutes * _MINUTE)))
    return as_table(
        told.withColumn("expires_at", expires)
        .withColumn("expires_within_seconds", seconds_between(moment, "expires_at"))
        .withColumn("group_state", fn.coalesce("state", fn.lit("Empty"))),
        "expiry",
    )


def _group_facts(groups: DataFrame) -> DataFrame:
    """What the rules ask of a group. Its topics are NULL if some member's subscription cannot be read."""
    subscriptions = fn.transform("members", lambda member: member["subscription"])
    all_topics = fn.flatten(fn.when(~fn.exists(subscriptions, fn.isnull), subscriptions))
    return groups.select(
        "partition",
        "group",
        "type",
        "state",
        "protocol_type",
        fn.col("since").alias("emptied_at"),
        fn.array_distinct(all_topics).alias("topics"),
    )


def _with_pending(offsets: DataFrame, pending: DataFrame | None) -> DataFrame:
    if pending is None:
        return offsets.withColumn("is_pending", fn.lit(False))
    keys = pending.select(*COMMIT_KEY).distinct().withColumn("is_pending", fn.lit(True))
    return offsets.join(keys, list(COMMIT_KEY), "left")


def _reason() -> Column:
    """The first rule that holds."""
    is_modern = fn.coalesce(fn.col("type") != "classic", fn.lit(False))
    is_simple = ~is_modern & (fn.coalesce("protocol_type", fn.lit("")) == "")
    is_empty = fn.coalesce(fn.col("state") == "Empty", fn.lit(True))
    is_readable = (is_modern | (fn.col("protocol_type") == "consumer")) & fn.col("topics").isNotNull()
    has_members = ~is_simple & ~is_empty
    return (
        fn.when(fn.col("is_pending"), "pending_transaction")
        .when(has_members & ~fn.coalesce(is_readable, fn.lit(False)), "active_group")
        .when(has_members & fn.array_contains("topics", fn.col("topic")), "subscribed")
        .when(fn.col("expire_timestamp").isNotNull(), "explicit")
        .when(has_members, "unsubscribed_topic")
        .when(is_simple, "simple_group")
        .when(~is_modern & fn.col("emptied_at").isNotNull(), "group_empty")
        .otherwise("group_empty_commit")
    )


def _since() -> Column:
    """From when the retention time counts."""
    return fn.when(fn.col("reason") == "group_empty", fn.col("emptied_at")).when(
        fn.col("reason").isin("unsubscribed_topic", "simple_group", "group_empty_commit"), fn.col("commit_timestamp")
    )
