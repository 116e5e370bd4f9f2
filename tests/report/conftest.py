"""The story's tables, what a report gathers from them, and the page: each made once, by the Spark of `tests/spark`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.report.contents import STEPS, Wanted, gather
from kohort.report.page import make_page
from kohort.report.run import open_tables
from tests.report.story import write_story
from tests.spark.conftest import spark as spark  # the fixture, for this directory too
from tests.spark.runs import Watched, run_on


@pytest.fixture(scope="session")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = write_story(tmp_path_factory.mktemp("log"))
    out = tmp_path_factory.mktemp("tables")
    run_on(spark, log, out)
    return out


@pytest.fixture(scope="session")
def data(spark: SparkSession, tables: Path) -> dict[str, Any]:
    watcher = Watched()
    gathered = gather(open_tables(spark, tables), Wanted(), watcher)
    assert watcher.begun == list(watcher.made)
    assert len(watcher.begun) == STEPS
    return gathered


@pytest.fixture(scope="session")
def page_file(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(make_page(data), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def number(data: dict[str, Any]) -> Callable[[str], int]:
    """The number of a group."""
    names = [data["strings"][name] for name in data["groups"]["columns"]["name"]]
    return names.index
