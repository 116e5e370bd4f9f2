"""The formats in which a run's tables are left: Parquet, or Delta Lake or Iceberg where Spark has their package.

A run makes all of its tables as Parquet. Those formats replace a table in one step of their own, so for them the last
thing that a run does is to copy each table (`lake`).
"""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from kohort.errors import KohortError
from kohort.spark.choices import DELTA, ICEBERG, PARQUET

PACKAGES = {
    DELTA: "io.delta:delta-spark_2.13",
    ICEBERG: "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13",
}
"""What Spark must be given for a format, without its version, which has to go with that of Spark."""

TRIED_SPARK = "4.0.0"
TRIED = {DELTA: f"{PACKAGES[DELTA]}:4.0.0", ICEBERG: f"{PACKAGES[ICEBERG]}:1.10.0"}
"""What the tests write with that Spark."""

_CLASSES = {DELTA: "io.delta.sql.DeltaSparkSessionExtension", ICEBERG: "org.apache.iceberg.spark.SparkCatalog"}

CATALOG = "kohort_tables"
"""What Spark calls the directory of a run whose tables are Iceberg's."""


class FormatMissing(KohortError):
    """A format whose package Spark does not have."""


def settings_of(format_: str, out: Path) -> Mapping[str, str]:
    """What a new Spark session has to be told for a format."""
    if format_ == DELTA:
        return {
            "spark.sql.extensions": _CLASSES[DELTA],
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    return iceberg_settings(out) if format_ == ICEBERG else {}


def iceberg_settings(out: Path) -> dict[str, str]:
    """What makes a directory a catalog of Iceberg's."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {catalog: _CLASSES[ICEBERG], f"{catalog}.type": "hadoop", f"{catalog}.warehouse": out.absolute().as_uri()}


def check_format(spark: SparkSession, format_: str) -> None:
    """Refuse a format that this Spark lacks, before any work is done."""
    if format_ == PARQUET:
        return
    java = spark.sparkContext._jvm
    assert java is not None
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    path = _CLASSES[format_].replace(".", "/") + ".class"
    if loader.getResource(path) is None:
        package = PACKAGES[format_]
        raise FormatMissing(
            f"this Spark cannot write {format_}: give it --conf spark.jars.packages={package}:VERSION "
            f"(docs/pipeline.md tells which)"
        )
