"""The walk: all commits in their order, once, for every table that asks what a commit did (`walk_kernel` says what).

One shuffle of packed rows brings the commits of each topic partition together; a task sorts a bucket of them at a time
and goes through it, group after group, behind what is known of the topic partition's end. Whoever makes several of
those tables keeps the result, which is small, and hands it on: `lag_status`, `offset_jumps`, `topic_health` and `lag`
take it as `walked`. Its rows are of three sorts: commits that have something to tell, the sums of each key (`is_sum`),
and how far each topic partition was known to be, minute by minute (`is_point`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kohort.spark.columns import spark_type
from kohort.spark.tables.ends import END_OFFSETS, TOPIC_PARTITION, samples_of
from kohort.spark.tables.frames import commit_time, counted
from kohort.spark.tables.walk_kinds import (
    ABORTED,
    COMMIT,
    END_SAMPLE,
    LATER,
    LATER_REMOVAL,
    OPENED,
    RECORD_SAMPLE,
    REMOVAL,
    UNWATCHED,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_DAY_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class BurrowRules:
    """Burrow's settings, with its defaults."""

    intervals: int = 10
    """Commits in a window, and polls of the end that are remembered."""
    expire_group_seconds: int = 604_800
    min_distance_seconds: float = 0.0
    offset_refresh_seconds: float = 10.0
    minimum_complete: float = 0.0
    allowed_lag: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpRules:
    """When a step forward is a skip."""

    least_messages: int = 1_000
    """A shorter step never is."""
    speed_factor: float = 10.0
    """How many times faster than ever before it must be."""
    least_commits: int = 10
    """How many commits must be known before it, so that "ever before" means something."""


def walk(
    commits: DataFrame,
    end_offsets: DataFrame | None = None,
    topic_times: DataFrame | None = None,
    *,
    as_of: datetime | None = None,
    burrow: BurrowRules | None = None,
    jumps: JumpRules | None = None,
    every_commit: bool = False,
    commit_count: int = 0,
) -> DataFrame:
    """What `offset_commits` tell: where a status changes (or it at every commit), steps that may be jumps, sums.

    Who knows how many commits there are says so: a task then takes as many of them at once as it can hold.
    """
    from kohort.spark.tables.packing import PACKED, buckets_for, pack
    from kohort.spark.tables.walker import WALKED, WalkRules

    burrow, jumps = burrow or BurrowRules(), jumps or JumpRules()
    rules = WalkRules(
        intervals=burrow.intervals,
        min_distance=round(burrow.min_distance_seconds * 1000),
        lately=round((burrow.intervals - 1) * burrow.offset_refresh_seconds * 1000),
        minimum_complete=burrow.minimum_complete,
        allowed_lag=burrow.allowed_lag,
        as_of=None if as_of is None else round((as_of - _DAY_ZERO).total_seconds() * 1000),
        least_step=jumps.least_messages,
        every_commit=every_commit,
    )
    rows = _commit_rows(commits, as_of, burrow)
    samples = samples_of(end_offsets, topic_times)
    if samples is not None:
        rows = rows.unionByName(_sample_rows(samples))
    packed = rows.mapInArrow(partial(pack, bucket_count=buckets_for(commit_count)), _spark_schema(PACKED))
    ordered = packed.repartition("bucket").sortWithinPartitions("bucket")

    def go(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        from kohort.spark.tables.walker import walk_buckets

        return walk_buckets(batches, rules)

    return ordered.mapInArrow(go, _spark_schema(WALKED))


def _spark_schema(schema: "pa.Schema") -> "StructType":
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, spark_type(field.type)) for field in schema])


def _kind(kind: int) -> Column:
    return fn.lit(kind).cast("tinyint")


def _commit_rows(commits: DataFrame, as_of: datetime | None, burrow: BurrowRules) -> DataFrame:
    """Commits and tombstones, each with its kind."""
    is_removal = fn.col("tombstone")
    at = fn.when(is_removal, fn.col("timestamp")).otherwise(commit_time())
    is_later = fn.lit(False) if as_of is None else fn.coalesce(at > fn.lit(as_of), fn.lit(False))
    age = fn.unix_millis("timestamp") - fn.unix_millis("commit_timestamp")
    is_old = fn.coalesce(age > burrow.expire_group_seconds * 1000, fn.lit(False))
    kind = (
        fn.when(fn.col("fate") == "aborted", _kind(ABORTED))
        .when(~counted(), _kind(OPENED))
        .when(is_later & is_removal, _kind(LATER_REMOVAL))
        .when(is_later, _kind(LATER))
        .when(is_removal, _kind(REMOVAL))
        .when(at.isNull() | is_old, _kind(UNWATCHED))
        .otherwise(_kind(COMMIT))
    )
    return commits.select(
        *TOPIC_PARTITION,
        "group",
        "partition",
        kind.alias("kind"),
        "offset",
        fn.col("committed_offset").alias("value"),
        fn.unix_millis(at).alias("millis"),
        "bytes",
    )


def _sample_rows(samples: DataFrame) -> DataFrame:
    """What is known of a topic partition's end."""
    kind = fn.when(fn.col("sample.source") == END_OFFSETS, _kind(END_SAMPLE)).otherwise(_kind(RECORD_SAMPLE))
    return samples.select(
        *TOPIC_PARTITION,
        fn.lit("").alias("group"),
        fn.lit(0).alias("partition"),
        kind.alias("kind"),
        fn.col("millis").alias("offset"),
        fn.col("sample.end").alias("value"),
        "millis",
        fn.lit(0).alias("bytes"),
    )
