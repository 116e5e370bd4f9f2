"""The blocks of the pages that need Spark, on the one of `tests/spark`."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.blocks import Session, blocks_of
from tests.docs.test_blocks import PAGES, TEXTS, needs_spark
from tests.slow import slow
from tests.spark.conftest import spark as spark  # the fixture, for this file too


@slow
@pytest.mark.parametrize("page", [page for page in PAGES if needs_spark(page)], ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, spark: SparkSession) -> None:
    with Session(tmp_path, spark) as session:
        for block in blocks_of(TEXTS[page]):
            session.run(block)
