"""Runs that go on from each other, in a Spark that has the package of a format: `python -m ... FORMAT DIRECTORY`.

It is a process of its own, for a session keeps the packages that it was started with.
"""

import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from kohort.spark.formats import TRIED, settings_of
from kohort.spark.incremental import run_incrementally
from kohort.spark.lake import Lake, read_table
from kohort.spark.manifest import read_manifest
from kohort.spark.order import Order
from kohort.spark.pipeline import TABLES, run
from kohort.spark.session import get_spark
from tests.golden_sets import ROOT
from tests.spark.growing_log import STAGES, GrowingLog
from tests.spark.runs import Watched, rows_in

_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.databricks.delta.snapshotPartitions": "2",
}

Rows = dict[str, list[str]]


class DiedError(Exception):
    """What ends a run in the middle."""


def die() -> None:
    raise DiedError


class Story:
    """A log, its tables in a format, and what a run of all of it makes."""

    def __init__(self, spark: SparkSession, format_: str, work: Path) -> None:
        self._spark, self._work = spark, work
        self._log = GrowingLog(ROOT / "kafka-3.9.1", work / "log")
        self._order = Order(source=str(work / "log"), out=work / "made", format=format_)

    def grow(self, stage: int) -> None:
        self._log.grow(stage)

    def go_on(self, **events: object) -> None:
        run_incrementally(self._spark, self._order, Watched(**events))

    def dies_in(self, table: str) -> None:
        try:
            self.go_on(**{table: die})
        except DiedError:
            return
        raise AssertionError(f"the run did not come to {table}")

    def read(self) -> Rows:
        """All tables as a reader of ours sees them."""
        out, format_ = self._order.out, self._order.format
        found = {name: read_table(self._spark, format_, out, name).toArrow().to_pylist() for name in TABLES}
        counted = {name: made.rows for name, made in read_manifest(out).tables.items()}
        assert counted == {name: len(rows) for name, rows in found.items()}
        return {name: sorted(map(str, rows)) for name, rows in found.items()}

    def files(self, table: str) -> set[str]:
        """The files of which a table consists now."""
        rows = Lake(self._spark, self._order.format, self._order.out).read(table)
        return {row.name for row in rows.select(fn.input_file_name().alias("name")).distinct().collect()}

    def whole(self) -> Rows:
        """All tables of a run that reads the log from its beginning."""
        out = self._work / "whole"
        run(self._spark, Order(source=self._order.source, out=out), Watched())
        return {name: sorted(map(str, rows_in(out, name))) for name in TABLES}


def same(found: Rows, expected: Rows) -> None:
    for name in TABLES:
        assert found[name] == expected[name], (name, found[name][:3], expected[name][:3])


def tell(story: Story) -> None:
    story.grow(0)
    story.go_on()
    first, files = story.read(), story.files("records")
    assert any("'fate': 'open'" in row for row in first["offset_commits"])
    for stage, table in ((1, "members"), (2, "current_offsets"), (2, "lag")):
        story.grow(stage)
        story.dies_in(table)
        same(story.read(), first)
    story.go_on()
    same(story.read(), story.whole())
    story.grow(STAGES - 1)
    story.go_on()
    whole = story.whole()
    same(story.read(), whole)
    assert files < story.files("records")  # what was there was not written again
    story.go_on()  # nothing has come
    same(story.read(), whole)


def main() -> None:
    format_, work = sys.argv[1], Path(sys.argv[2])
    packages = {"spark.jars.packages": TRIED[format_]}
    assert pyspark.__version__.startswith("4.0")
    spark = get_spark("local[2]", settings={**settings_of(format_, work / "made"), **packages, **_SETTINGS})
    try:
        tell(Story(spark, format_, work))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
