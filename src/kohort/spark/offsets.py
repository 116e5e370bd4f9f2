"""The notebook's way in: `from kohort.spark import offsets; offsets.commits(spark, path)`, each table a DataFrame.

A path is a segment file, a partition directory, a Kafka log directory, a pattern, a URI of any of these, of which
several may be given, or kafka://HOST:PORT of a live cluster. Options are those of `format("kohort")`. What is derived
from tables takes and gives DataFrames: `offsets.rebalances(generations, members, assignments)`.
"""

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kohort.spark.live import logs_of
from kohort.spark.options import parse_options
from kohort.spark.replaying import Replay, replay
from kohort.spark.tables.expiry import expiry
from kohort.spark.tables.group_status import group_status
from kohort.spark.tables.lag import lag, lag_history
from kohort.spark.tables.lag_status import lag_status
from kohort.spark.tables.offset_jumps import offset_jumps
from kohort.spark.tables.rebalances import rebalances
from kohort.spark.tables.topic_health import LoadRates, topic_health
from kohort.spark.tables.walk import BurrowRules, JumpRules, walk

Paths = str | Sequence[str]

__all__ = [
    "BurrowRules",
    "JumpRules",
    "LoadRates",
    "Replay",
    "assignments",
    "commits",
    "expiry",
    "generations",
    "group_status",
    "lag",
    "lag_history",
    "lag_status",
    "members",
    "offset_jumps",
    "quarantine",
    "rebalances",
    "records",
    "replay",
    "table",
    "topic_health",
    "walk",
]


def table(spark: SparkSession, name: str, paths: Paths, **options: str | int) -> DataFrame:
    """A table of the data source, by name. A path that is no log is refused here and now."""
    given = [paths] if isinstance(paths, str) else list(paths)
    chosen = {key: str(value) for key, value in options.items()} | {"table": name, "paths": json.dumps(given)}
    asked = parse_options(chosen)
    logs_of(asked.live, asked.paths, asked.topic, {})
    return spark.read.format("kohort").options(**chosen).load()


def records(spark: SparkSession, paths: Paths, **options: str | int) -> DataFrame:
    """Every record, decoded."""
    return table(spark, "records", paths, **options)


def commits(spark: SparkSession, paths: Paths, **options: str | int) -> DataFrame:
    """Every offset commit and its tombstones, with the fate of those in transactions."""
    return table(spark, "offset_commits", paths, **options)


def generations(spark: SparkSession, paths: Paths, **options: str | int) -> DataFrame:
    """Every record of a classic group."""
    return table(spark, "group_generations", paths, **options)


def members(spark: SparkSession, paths: Paths, **options: str | int) -> DataFrame:
    """The members of every such record."""
    return table(spark, "members", paths, **options)


def assignments(spark: SparkSession, paths: Paths, **options: str | int) -> DataFrame:
    """The partitions that every such record gives to its members."""
    return table(spark, "assignments", paths, **options)


def quarantine(spark: SparkSession, paths: Paths, **options: str | int) -> DataFrame:
    """What cannot be read, and why."""
    return table(spark, "quarantine", paths, **options)
