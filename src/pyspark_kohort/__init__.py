"""Spark imports every `pyspark_*` and registers its `DefaultSource`: this makes `format("kohort")` known."""

from kohort.spark.source import KohortDataSource as DefaultSource

__all__ = ["DefaultSource"]
