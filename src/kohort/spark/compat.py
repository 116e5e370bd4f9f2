"""Whatever differs between the releases of pyspark 4, from 4.0 to the newest."""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


def plans_with_filters() -> bool:
    """Whether this process was started to plan a read with filters, which Spark does from 4.1 on if told to.

    A reader that takes filters must show up there only: elsewhere Spark refuses it unless the session has
    `spark.sql.python.filterPushdown.enabled`, which a reader cannot know.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _PUSHING_WORKER in sys.modules or (main is not None and main.name == _PUSHING_WORKER)


def filter_classes() -> dict[str, type[Any]]:
    """The filters that Spark may push, by name; none before 4.1."""
    datasource = importlib.import_module("pyspark.sql.datasource")
    names = ("EqualTo", "EqualNullSafe", "In", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual")
    return {name: getattr(datasource, name) for name in names if hasattr(datasource, name)}


def parallelism(spark: "SparkSession") -> int:
    """How many tasks a session runs at once; through Spark Connect nobody tells, so this machine's cores stand in."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except AttributeError:
        return os.cpu_count() or 1
