"""The walk: all commits in their order, once, for every table that asks what a commit did (`walk_kernel` says what).

One shuffle and one sort of the columns that count bring the commits of each topic partition together, group after
group, behind what is known of its end. A task goes through its rows in batches and remembers no more than one group, so
that the number of commits costs no memory. Whoever makes several of those tables keeps the result, which is small, and
hands it on: `lag_status`, `offset_jumps`, `topic_health` and `lag` take it as `walked`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kohort.spark.columns import spark_type
from kohort.spark.tables.ends import END_OFFSETS, TOPIC_PARTITION, samples_of
from kohort.spark.tables.frames import commit_time, visible
from kohort.spark.tables.walk_kinds import CLAIM, COMMIT, END_SAMPLE, RECORD_SAMPLE, REMOVAL, UNWATCHED

if TYPE_CHECKING:
    import pyarrow as pa

CLAIM_MILLIS = 60_000
"""Where nothing is known of a topic partition's end, the furthest group is looked at so often."""

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
) -> DataFrame:
    """What `offset_commits` tell: where a status changes (or it at every commit), steps that may be jumps, sums."""
    from pyspark.sql.types import StructField, StructType

    from kohort.spark.tables.walker import OUT, Walker, WalkRules

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
    together = rows.unionByName(_claim_rows(rows))
    samples = samples_of(end_offsets, topic_times)
    if samples is not None:
        together = together.unionByName(_sample_rows(samples))
    order = fn.greatest(fn.least("kind", _kind(COMMIT)), _kind(RECORD_SAMPLE))
    ordered = together.repartition(*TOPIC_PARTITION).sortWithinPartitions(
        *TOPIC_PARTITION, order, "group", "partition", "offset"
    )

    def go(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        return Walker(rules).walk(batches)

    schema = StructType([StructField(field.name, spark_type(field.type)) for field in OUT])
    return ordered.mapInArrow(go, schema)


def _kind(kind: int) -> Column:
    return fn.lit(kind).cast("tinyint")


def _commit_rows(commits: DataFrame, as_of: datetime | None, burrow: BurrowRules) -> DataFrame:
    """Commits and tombstones that count, up to a time."""
    at = fn.when(fn.col("tombstone"), fn.col("timestamp")).otherwise(commit_time())
    counted = visible(commits)
    if as_of is not None:
        counted = counted.where(at.isNull() | (at <= fn.lit(as_of)))
    age = fn.unix_millis("timestamp") - fn.unix_millis("commit_timestamp")
    is_old = fn.coalesce(age > burrow.expire_group_seconds * 1000, fn.lit(False))
    kind = (
        fn.when(fn.col("tombstone"), _kind(REMOVAL))
        .when(at.isNull() | is_old, _kind(UNWATCHED))
        .otherwise(_kind(COMMIT))
    )
    return counted.select(
        *TOPIC_PARTITION,
        kind.alias("kind"),
        "group",
        "partition",
        "offset",
        fn.col("committed_offset").alias("value"),
        fn.unix_millis(at).alias("millis"),
    )


def _claim_rows(rows: DataFrame) -> DataFrame:
    """How far the furthest group of each topic partition was, every so often."""
    moment = fn.floor(fn.col("millis") / CLAIM_MILLIS)
    furthest = (
        rows.where((fn.col("kind") == COMMIT) & fn.col("millis").isNotNull())
        .groupBy(*TOPIC_PARTITION, moment.alias("moment"))
        .agg(fn.max("value").alias("value"))
    )
    known_at = (fn.col("moment") + 1) * CLAIM_MILLIS
    return _fact_rows(furthest, _kind(CLAIM), known_at, fn.col("value"))


def _sample_rows(samples: DataFrame) -> DataFrame:
    kind = fn.when(fn.col("sample.source") == END_OFFSETS, _kind(END_SAMPLE)).otherwise(_kind(RECORD_SAMPLE))
    return _fact_rows(samples, kind, fn.col("millis"), fn.col("sample.end"))


def _fact_rows(facts: DataFrame, kind: Column, millis: Column, value: Column) -> DataFrame:
    """What is known of a topic partition as rows that come before its commits, by time."""
    return facts.select(
        *TOPIC_PARTITION,
        kind.alias("kind"),
        fn.lit("").alias("group"),
        fn.lit(0).alias("partition"),
        millis.alias("offset"),
        value.alias("value"),
        millis.alias("millis"),
    )
