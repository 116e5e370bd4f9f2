"""Rows of tables as values of a page: times as milliseconds, names of groups as their numbers, text by reference."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kohort.report.text import Strings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def collected(rows: DataFrame, strings: Strings, as_text: Sequence[str] = ()) -> list[list[Any]]:
    """All rows, column by column; those of `as_text` are numbers of strings."""
    found = rows.toArrow()
    columns = []
    for name in rows.columns:
        values = found[name].to_pylist()
        columns.append([strings.number(value) for value in values] if name in as_text else [_plain(v) for v in values])
    return [list(row) for row in zip(*columns, strict=True)]


def last_of(rows: DataFrame, by: str | Sequence[str], order: Sequence[Column], most: int) -> DataFrame:
    """The first rows of each group in an order, no more than so many."""
    window = Window.partitionBy(*([by] if isinstance(by, str) else by)).orderBy(*order)
    return rows.withColumn("_place", fn.row_number().over(window)).where(fn.col("_place") <= most).drop("_place")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return None
        return int(value) if value.is_integer() else float(f"{value:.6g}")
    return value
