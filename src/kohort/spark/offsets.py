"""The notebook's way in: `from kohort.spark import offsets; offsets.commits(spark, path)`, each table a DataFrame.

A path is a segment file, a partition directory, a Kafka log directory, a pattern, or a URI of any of these; several may
be given. Options are those of `format("kohort")`.
"""

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kohort.spark.inputs import find_logs
from kohort.spark.options import parse_options
from kohort.spark.replaying import Replay, replay

Paths = str | Sequence[str]

__all__ = ["Replay", "assignments", "commits", "generations", "members", "quarantine", "records", "replay", "table"]


def table(spark: SparkSession, name: str, paths: Paths, **options: str | int) -> DataFrame:
    """A table of the data source, by name. A path that is no log is refused here and now."""
    given = [paths] if isinstance(paths, str) else list(paths)
    chosen = {key: str(value) for key, value in options.items()} | {"table": name, "paths": json.dumps(given)}
    find_logs(given, parse_options(chosen).topic)
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
