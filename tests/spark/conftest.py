"""One Spark for all tests of this directory, which one worker of pytest runs (`tests/scheduling.py`)."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from kohort.spark.session import get_spark
from tests.spark.cluster import standalone_cluster

HERE = Path(__file__).parent

_FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """pyspark 4.0 leaves sockets open."""
    for item in items:
        if HERE in item.path.parents and pyspark.__version__.startswith("4.0."):
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores, with little ceremony, for the data of tests is small.

    Java compiles quickly rather than well. As it keeps little room for what is compiled so, it is given more: else it
    would throw compiled code away again and again. Spark makes no code of its own for so few rows, nor plans anew.
    With KOHORT_TEST_CLUSTER, on a cluster of two workers that is started for it, where it does.
    """
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    }
    with contextlib.ExitStack() as running:
        master = "local[2]"
        if os.environ.get("KOHORT_TEST_CLUSTER"):
            cluster = standalone_cluster(tmp_path_factory.mktemp("cluster"))
            master, of_workers = running.enter_context(cluster)
            settings |= of_workers
        else:
            settings |= _FOR_FEW_ROWS
        session = get_spark(master, name="kohort-tests", settings=settings)
        running.callback(session.stop)
        yield session
