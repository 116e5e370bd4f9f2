"""Whatever differs between the releases of pyspark 4, from 4.0 to the newest."""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, cast

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


def _stream_module() -> Any:
    """What Spark has from 4.2 on for streams that limit their batches."""
    try:
        return importlib.import_module("pyspark.sql.streaming.datasource")
    except ModuleNotFoundError:
        return None


def admits() -> bool:
    """Whether a stream of ours is told where a batch begins and how much it may hold."""
    return _stream_module() is not None


def _available_now() -> type[Any]:
    module = _stream_module()
    return object if module is None else cast(type[Any], module.SupportsTriggerAvailableNow)


AvailableNow = _available_now()
"""What a stream that knows `Trigger.AvailableNow` has to be, or just any object."""


def read_limit_of(most: int | None) -> Any:
    """So many rows, or all, as Spark says it."""
    module = _stream_module()
    return module.ReadAllAvailable() if most is None else module.ReadMaxRows(most)


def rows_limit(limit: Any) -> int | None:
    """How many rows Spark allows."""
    return limit.max_rows if isinstance(limit, _stream_module().ReadMaxRows) else None
