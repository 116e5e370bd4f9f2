"""What holds on a cluster only; the other tests of this directory run there too (`make test-spark`)."""

import os
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession


@pytest.mark.skipif(not os.environ.get("KOHORT_TEST_CLUSTER"), reason="only on a cluster: make test-spark")
def test_the_workers_have_the_package_only_because_it_was_sent(spark: SparkSession) -> None:
    def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import kohort

        for _ in batches:
            yield pa.RecordBatch.from_pylist([{"file": kohort.__file__, "process": str(os.getppid())}])

    rows = spark.range(8, numPartitions=8).mapInArrow(where, "file string, process string").distinct().collect()
    assert {row.file.rpartition("kohort.zip")[2] for row in rows} == {"/kohort/__init__.py"}
    assert len({row.process for row in rows}) == 2
