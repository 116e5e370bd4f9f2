"""What can be made bit by bit, and what a run that died leaves; `test_formats` does it with the formats themselves."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from kohort.spark import publishing
from kohort.spark.incremental import CannotIncrement, run_incrementally
from kohort.spark.lake import Lake
from kohort.spark.manifest import Manifest
from kohort.spark.order import Order
from kohort.spark.schema import TABLES
from tests.golden_sets import ROOT
from tests.spark.runs import Watched

MANIFEST = Manifest(
    source="log",
    topic="__consumer_offsets",
    format="delta",
    rule="position",
    mode="permissive",
    retention_minutes=1,
    started_at="2026-11-19T10:00:00+00:00",
    seconds=1.0,
    as_of=None,
    at="2026-11-19T10:00:00+00:00",
    ends="furthest_group",
    accounting={},
    versions={},
    tables={},
)


class Versions:
    """A lake of which only the versions are known."""

    def __init__(self) -> None:
        self.now = {name: 3 for name in TABLES if name != "lag"}

    def version(self, name: str) -> int | None:
        return self.now.get(name)

    def put_back(self, name: str, version: int) -> None:
        self.now[name] = version


def test_what_cannot_be_made_bit_by_bit_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(CannotIncrement, match="not both"):
        run_incrementally(spark, Order(source="x", out=tmp_path, format="delta", as_of=5), Watched())
    with pytest.raises(CannotIncrement, match="--follow"):
        run_incrementally(spark, Order(source="x", out=tmp_path), Watched())


def test_tables_are_read_as_they_were_until_the_run_is_done(tmp_path: Path) -> None:
    versions = Versions()
    lake = cast(Lake, versions)
    MANIFEST.write(tmp_path)
    assert publishing.versions_to_read(tmp_path) == {}
    publishing.begin(lake, tmp_path)
    versions.now["records"] = 4
    assert publishing.versions_to_read(tmp_path)["records"] == 3
    assert "lag" not in publishing.versions_to_read(tmp_path)
    replace(MANIFEST, started_at="2026-11-19T11:00:00+00:00").write(tmp_path)
    assert publishing.versions_to_read(tmp_path) == {}
    publishing.end(tmp_path)
    assert not publishing.is_begun(tmp_path)


def test_what_runs_that_died_have_done_is_undone(tmp_path: Path) -> None:
    """The second of them finds the note of the first, and leaves it: the tables were not whole when it came."""
    versions = Versions()
    lake = cast(Lake, versions)
    MANIFEST.write(tmp_path)
    for version in (4, 5):
        publishing.begin(lake, tmp_path)
        versions.now["records"] = version
    publishing.put_back(lake, tmp_path)
    assert set(versions.now.values()) == {3}


def test_a_first_run_that_died_is_made_good_by_another(tmp_path: Path) -> None:
    """There is no run that its tables could belong to, and yet they are no stranger's."""
    publishing.begin(cast(Lake, Versions()), tmp_path)
    (tmp_path / "records").mkdir()
    assert publishing.versions_to_read(tmp_path) == {}
    Order(source=str(ROOT / "kafka-3.9.1"), out=tmp_path, format="delta").check()
