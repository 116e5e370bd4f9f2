"""The Spark of `tests/spark` for the notebook."""

from tests.spark.conftest import spark as spark  # the fixture, for this directory too
