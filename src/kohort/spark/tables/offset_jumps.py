"""`offset_jumps`: commits that did not simply go on from the one before.

=================  ====================================================================================================
rewind             the offset went back
reset_to_earliest  it went back to 0, or to the start of the topic partition where that is known
skip               it went ahead without having consumed what is in between, as far as the log can show: by a commit
                   while the group had no members, the first since it had (a tool did that), or at a speed that this
                   consumer never had before
reset_to_latest    a skip that ends where the topic partition ended at that time, where that is known
=================  ====================================================================================================

Compared are commits that counted (plain, or of committed transactions), by their place in the log. A step forward is no
more than that if it is short, or if the consumer is known for such steps: `JumpRules` says what that means.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kohort.spark.schema import as_table
from kohort.spark.tables.ends import samples_of, with_ends
from kohort.spark.tables.frames import COMMIT_KEY, instant, step
from kohort.spark.tables.walk import JumpRules, walk

_STEP = (
    *COMMIT_KEY,
    "offset",
    "committed_offset",
    "at",
    "previous_committed_offset",
    "previous_offset",
    "previous_at",
    "after_tombstone",
    "commits_before",
    "distance",
    "speed",
    "fastest_before",
)

_NEAR = 0.01
"""Ends are known by interpolation: a skip went to the end if it missed it by no more than this part of its length."""


def offset_jumps(
    commits: DataFrame,
    generations: DataFrame | None = None,
    members: DataFrame | None = None,
    assignments: DataFrame | None = None,
    *,
    end_offsets: DataFrame | None = None,
    topic_times: DataFrame | None = None,
    rules: JumpRules | None = None,
    walked: DataFrame | None = None,
) -> DataFrame:
    """Every rewind, skip and reset. `walked` is the `walk` of the commits by these rules, if it is there already."""
    rules = rules or JumpRules()
    if walked is None:
        walked = walk(commits, jumps=rules)
    candidates = walked.where(fn.col("is_step")).withColumns(
        {"at": instant(fn.col("millis")), "previous_at": instant(fn.col("previous_millis"))}
    )
    candidates = candidates.select(*_STEP)
    jumps = _with_generation(candidates, generations).withColumn("evidence", _evidence(rules))
    jumps = _with_owner(jumps.where(fn.col("evidence").isNotNull()), members, assignments)
    jumps = _with_bounds(jumps, end_offsets, topic_times)
    return as_table(
        jumps.withColumn("kind", _kind())
        .withColumnRenamed("previous_committed_offset", "from_offset")
        .withColumnRenamed("committed_offset", "to_offset"),
        "offset_jumps",
    )


def _with_generation(jumps: DataFrame, generations: DataFrame | None) -> DataFrame:
    """The record of the group that stood when the commit came: the last one before it in the log."""
    shape = "struct<offset:bigint,generation:int,member_count:int>"
    if generations is None:
        return jumps.withColumn("record", fn.lit(None).cast(shape))
    log = Window.partitionBy("partition", "group").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    record = fn.when(
        ~fn.col("tombstone"),
        fn.struct("offset", "generation", fn.coalesce("member_count", fn.lit(0)).alias("member_count")),
    ).cast(shape)
    records = generations.select("partition", "group", "offset", fn.struct(record.alias("record")).alias("seen"))
    both = jumps.withColumn("is_jump", fn.lit(True)).unionByName(records, allowMissingColumns=True)
    seen = fn.last("seen", ignorenulls=True).over(log)
    return both.withColumn("record", seen["record"]).where(fn.col("is_jump")).drop("is_jump", "seen")


def _evidence(rules: JumpRules) -> Column:
    record = fn.col("record")
    is_first_since_empty = (record["member_count"] == 0) & (fn.col("previous_offset") < record["offset"])
    is_fast = (fn.col("commits_before") >= rules.least_commits) & (
        fn.col("speed") > fn.lit(rules.speed_factor) * fn.col("fastest_before")
    )
    return (
        fn.when(fn.col("distance") < 0, "backward")
        .when(is_first_since_empty, "group_empty")
        .when(is_fast, "faster_than_ever")
    )


def _with_owner(jumps: DataFrame, members: DataFrame | None, assignments: DataFrame | None) -> DataFrame:
    """Who owned the topic partition in that generation."""
    jumps = jumps.withColumn("generation", fn.col("record.generation")).withColumn("at_record", fn.col("record.offset"))
    for name in ("member_id", "client_id", "client_host"):
        jumps = jumps.withColumn(name, fn.lit(None).cast("string"))
    if assignments is not None:
        owner_of = ["partition", "group", "topic", "topic_partition", "at_record"]
        owners = (
            assignments.withColumnRenamed("offset", "at_record")
            .groupBy(*owner_of)
            .agg(fn.min("member_id").alias("member_id"))
        )
        jumps = jumps.drop("member_id").join(owners, owner_of, "left")
    if members is not None:
        member = ["partition", "group", "at_record", "member_id"]
        known = members.withColumnRenamed("offset", "at_record").select(*member, "client_id", "client_host")
        jumps = jumps.drop("client_id", "client_host").join(known, member, "left")
    return jumps


def _with_bounds(jumps: DataFrame, end_offsets: DataFrame | None, topic_times: DataFrame | None) -> DataFrame:
    """Where the topic partition began and ended, where that is known."""
    topic_partition = ["topic", "topic_partition"]
    starts: DataFrame | None = None
    if end_offsets is not None:
        starts = end_offsets.groupBy(*topic_partition).agg(fn.collect_set("start_offset").alias("starts"))
    jumps = (
        jumps.withColumn("starts", fn.lit(None).cast("array<bigint>"))
        if starts is None
        else jumps.join(starts, topic_partition, "left")
    )
    return with_ends(jumps, samples_of(end_offsets, topic_times))


def _kind() -> Column:
    to = fn.col("committed_offset")
    is_start = (to == 0) | fn.coalesce(fn.array_contains("starts", to), fn.lit(False))
    is_known = fn.col("source") != "furthest_group"
    missed = fn.abs(step(to, "end_offset"))
    is_end = is_known & (missed <= fn.ceil(fn.col("distance") * fn.lit(_NEAR)))
    return (
        fn.when((fn.col("distance") < 0) & is_start, "reset_to_earliest")
        .when(fn.col("distance") < 0, "rewind")
        .when(is_end, "reset_to_latest")
        .otherwise("skip")
    )
