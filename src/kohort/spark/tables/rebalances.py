"""`rebalances`: what each record of a group changed, and why.

A classic coordinator writes a group's record when a rebalance is over: the leader's assignment is in. The record tells
who is there since, and (`state_timestamp`, from version 2 of it on) when all members had joined. When the first of them
began to join is not written, except that a 4.x coordinator writes an empty record at the first JoinGroup of a new
group. So the table gives what is certain: how long the assignment took, the whole where the start is known, and else
the longest that it can have been. That a group got another coordinator leaves no record.

Each record is compared with the one before. A static member is who its instance id says, others are their member id.
The first line that holds is the `cause`:

======================  ==============================================================================================
group_converted         a tombstone, and members were there: the group goes on as one of a newer kind (KIP-848)
group_removed           a tombstone
group_created           nothing before; no generation and no members yet (4.x: somebody asks to join)
first_generation        nothing before, or only that; members are there, and the generation is the first one written
first_seen              nothing before, yet a later generation: the log begins here, or compaction took what was before,
                        or the group was of a newer kind until now
rewritten               the same generation, the same members: the record was written again
group_emptied           no members are left; or some came and went before a generation was complete
static_member_replaced  nobody came or went, but a static member has a new member id (it came back after a restart)
members_restarted       as many came as went, from the same client ids and hosts: it looks like a restart
members_changed         some came, others went
member_joined           some came
member_left             some went: left or expired, the log does not tell which
subscription_changed    the same members, one of them with other topics
protocol_changed        the same members, another assignor
cooperative_handover    the same members; partitions that the generation before gave up have an owner again
partitions_changed      the same members and subscriptions, but other partitions: a topic came, grew or went
same_members            the same members with the same partitions: one asked to join again, the log does not tell why
======================  ==============================================================================================

A generation lower than the one before means that the group was removed in between, and the tombstone is gone.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kohort.spark.schema import as_table
from kohort.spark.tables.causes import cause_and_detail
from kohort.spark.tables.frames import seconds_between


def rebalances(generations: DataFrame, members: DataFrame, assignments: DataFrame) -> DataFrame:
    """One row for each record of a group that tells something new."""
    records = _records(generations)
    places = records.select("partition", "group", "offset", "earlier_offset", "previous_offset", "next_offset")
    changed = (
        records.join(_member_changes(members, places), ["partition", "group", "offset"], "left")
        .join(_partition_changes(assignments, places), ["partition", "group", "offset"], "left")
        .where(~fn.col("is_repeated_tombstone"))
    )
    return as_table(cause_and_detail(_with_partitions(_with_times(_with_members(changed)))), "rebalances")


def _records(generations: DataFrame) -> DataFrame:
    """Every record of a group with the one that it changes, if there is one, and the one that changes it."""
    log = Window.partitionBy("partition", "group").orderBy("offset")
    previous = fn.lag(
        fn.struct(
            "offset", "timestamp", "generation", "member_count", "protocol", "leader", "tombstone", "protocol_type"
        )
    ).over(log)
    counts = ~fn.col("before.tombstone") & (fn.col("tombstone") | (fn.col("generation") >= fn.col("before.generation")))
    with_before = (
        generations.withColumn("before", previous)
        .withColumn("follows", fn.coalesce(counts, fn.lit(False)))
        .withColumn("previous_offset", fn.when(fn.col("follows"), fn.col("before.offset")))
    )
    return with_before.select(
        "partition",
        "group",
        "offset",
        "timestamp",
        "generation",
        "state_timestamp",
        "protocol",
        "leader",
        "tombstone",
        fn.coalesce("member_count", fn.lit(0)).alias("member_count"),
        fn.coalesce(fn.when(~fn.col("tombstone"), fn.col("protocol_type")), fn.col("before.protocol_type")).alias(
            "protocol_type"
        ),
        (fn.col("tombstone") & fn.coalesce("before.tombstone", fn.lit(False))).alias("is_repeated_tombstone"),
        fn.when(fn.col("follows"), fn.col("before")).alias("previous"),
        "previous_offset",
        fn.when(fn.col("follows"), fn.lag("previous_offset").over(log)).alias("earlier_offset"),
        fn.when(fn.lead("follows").over(log), fn.lead("offset").over(log)).alias("next_offset"),
    )


def _member_changes(members: DataFrame, places: DataFrame) -> DataFrame:
    """Per record of a group: who came, who went, who stayed."""
    life = Window.partitionBy("partition", "group", "is_static", "identity").orderBy("offset")
    topics = fn.array_sort(fn.array_distinct("subscription"))
    seen = (
        members.join(places, ["partition", "group", "offset"])
        .withColumn("is_static", fn.col("instance_id").isNotNull())
        .withColumn("identity", fn.coalesce("instance_id", "member_id"))
        .withColumn("topics", topics)
        .withColumn("is_kept", fn.coalesce(fn.lag("offset").over(life) == fn.col("previous_offset"), fn.lit(False)))
        .withColumn("stays", fn.lead("offset").over(life).eqNullSafe(fn.col("next_offset")))
        .withColumn("is_replaced", fn.col("is_kept") & (fn.lag("member_id").over(life) != fn.col("member_id")))
        .withColumn("is_resubscribed", fn.col("is_kept") & ~fn.lag("topics").over(life).eqNullSafe(fn.col("topics")))
        .withColumn("keeps_lead", fn.col("is_kept") & fn.col("is_leader") & fn.lag("is_leader").over(life))
    )
    here = fn.struct(fn.col("offset").alias("at"), fn.lit(False).alias("has_left"))
    gone = fn.struct(fn.col("next_offset").alias("at"), fn.lit(True).alias("has_left"))
    events = seen.select(
        "*", fn.explode(fn.when(fn.col("stays"), fn.array(here)).otherwise(fn.array(here, gone))).alias("event")
    ).where(fn.col("event.at").isNotNull())
    left = fn.col("event.has_left")
    joined = ~left & ~fn.col("is_kept")
    kept = ~left & fn.col("is_kept")
    client = fn.struct("client_id", "client_host")
    return events.groupBy("partition", "group", fn.col("event.at").alias("offset")).agg(
        _ids_where(joined).alias("members_joined"),
        _ids_where(left).alias("members_left"),
        _ids_where(kept).alias("members_kept"),
        _ids_where(kept & fn.col("is_replaced")).alias("members_replaced"),
        fn.array_sort(fn.collect_list(fn.when(joined, client))).alias("joined_clients"),
        fn.array_sort(fn.collect_list(fn.when(left, client))).alias("left_clients"),
        fn.count_if(kept & fn.col("is_resubscribed")).alias("resubscribed_count"),
        fn.bool_or(kept & fn.col("keeps_lead")).alias("leader_stays"),
        fn.max(fn.greatest("rebalance_timeout", fn.lit(0))).alias("longest_timeout"),
    )


def _partition_changes(assignments: DataFrame, places: DataFrame) -> DataFrame:
    """Per record of a group: how many topic partitions changed hands. Should two members own one, the first counts.

    Cooperative assignors do it in two steps: one generation gives a partition up, the next one gives it away.
    """
    key = ["partition", "group", "topic", "topic_partition"]
    life = Window.partitionBy(*key).orderBy("offset")
    owner = fn.coalesce(fn.concat(fn.lit("static "), "instance_id"), fn.concat(fn.lit("member "), "member_id"))
    # All that follows, up to the count per record, needs the rows of a topic partition together: one shuffle.
    owned = assignments.select(*key, "offset", owner.alias("owner")).join(places, ["partition", "group", "offset"])
    seen = (
        owned.repartition(*key)
        .groupBy(*key, "offset", "earlier_offset", "previous_offset", "next_offset")
        .agg(fn.min("owner").alias("owner"))
        .withColumn("is_back", fn.coalesce(fn.lag("offset").over(life) == fn.col("earlier_offset"), fn.lit(False)))
        .withColumn("stayed", fn.coalesce(fn.lag("offset").over(life) == fn.col("previous_offset"), fn.lit(False)))
        .withColumn("was_owned", fn.col("stayed") | fn.col("is_back"))
        .withColumn("is_moved", fn.col("was_owned") & (fn.lag("owner").over(life) != fn.col("owner")))
        .withColumn("stays", fn.lead("offset").over(life).eqNullSafe(fn.col("next_offset")))
    )
    here = fn.struct(fn.col("offset").alias("at"), fn.lit(False).alias("is_revoked"))
    gone = fn.struct(fn.col("next_offset").alias("at"), fn.lit(True).alias("is_revoked"))
    events = seen.select(
        "*", fn.explode(fn.when(fn.col("stays"), fn.array(here)).otherwise(fn.array(here, gone))).alias("event")
    ).where(fn.col("event.at").isNotNull())
    is_here = ~fn.col("event.is_revoked")
    return events.groupBy("partition", "group", fn.col("event.at").alias("offset")).agg(
        fn.count_if(is_here).alias("partitions_total"),
        fn.count_if(is_here & fn.col("is_moved")).alias("partitions_moved"),
        fn.count_if(is_here & ~fn.col("was_owned")).alias("partitions_assigned"),
        fn.count_if(~is_here).alias("partitions_revoked"),
        fn.count_if(is_here & fn.col("is_back")).alias("handed_over"),
    )


def _ids_where(condition: Column) -> Column:
    return fn.array_sort(fn.collect_list(fn.when(condition, fn.col("member_id"))))


def _with_members(records: DataFrame) -> DataFrame:
    nobody = fn.array().cast("array<string>")
    ids = {name: fn.coalesce(f"members_{name}", nobody) for name in ("joined", "left", "kept", "replaced")}
    previous = fn.col("previous")
    both_lead = previous["leader"].isNotNull() & fn.col("leader").isNotNull()
    other_protocol = previous["protocol"] != fn.col("protocol")
    return (
        records.withColumns({f"members_{name}": value for name, value in ids.items()})
        .withColumns({f"{name}_count": fn.size(value) for name, value in ids.items()})
        .withColumn("leader_changed", both_lead & ~fn.coalesce("leader_stays", fn.lit(False)))
        .withColumn("protocol_changed", fn.coalesce(other_protocol, fn.lit(False)))
    )


def _with_times(records: DataFrame) -> DataFrame:
    """What can be said about when the rebalance began and how long it took."""
    previous = fn.col("previous")
    steps = fn.col("generation").cast("bigint") - previous["generation"].cast("bigint")
    is_rebalance = ~fn.col("tombstone") & (fn.col("member_count") > 0) & fn.coalesce(steps != 0, fn.lit(True))
    was_created = (previous["generation"] == 0) & (previous["member_count"] == 0)
    # A join ends when the longest of the members' rebalance timeouts is over. Attempts that failed leave no record, so
    # that says nothing if generations are missing.
    longest = fn.timestamp_millis(fn.unix_millis("joined_at") - fn.col("longest_timeout"))
    bounded = fn.when(fn.coalesce(steps == 1, fn.lit(True)), longest)
    return (
        records.withColumn("from_generation", previous["generation"])
        .withColumn("to_generation", fn.when(~fn.col("tombstone"), fn.col("generation")))
        .withColumn("generations_skipped", fn.coalesce(fn.greatest(steps - 1, fn.lit(0)), fn.lit(0)))
        .withColumn("completed_at", fn.col("timestamp"))
        .withColumn("joined_at", fn.when(is_rebalance, fn.col("state_timestamp")))
        .withColumn("started_at", fn.when(is_rebalance & was_created & (steps == 1), previous["timestamp"]))
        .withColumn("started_after", fn.when(is_rebalance, fn.greatest(previous["timestamp"], bounded)))
        .withColumn("sync_seconds", seconds_between("joined_at", "completed_at"))
        .withColumn("duration_seconds", seconds_between("started_at", "completed_at"))
        .withColumn("longest_seconds", seconds_between("started_after", "completed_at"))
    )


def _with_partitions(records: DataFrame) -> DataFrame:
    """Only a consumer group's assignments can be read by others than its members."""
    names = ("total", "moved", "assigned", "revoked")
    is_readable = fn.coalesce(fn.col("protocol_type") == "consumer", fn.lit(False))
    known = {f"partitions_{name}": fn.coalesce(f"partitions_{name}", fn.lit(0)) for name in names}
    return records.withColumns({name: fn.when(is_readable, value) for name, value in known.items()})
