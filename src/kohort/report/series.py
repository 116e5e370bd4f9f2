"""Values over time, one line for each group, as short as JSON can say them."""

import itertools
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.report.axis import Axis

Line = NDArray[np.float64]

_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
_NOTHING, _AGAIN = ".", "*"


def lines(rows: DataFrame, axis: Axis, *values: str, by: Sequence[str] = ("g",)) -> dict[str, dict[Any, Line]]:
    """From rows with a step of time and values: of each value, a line for each group; nothing (NaN) without a row.

    The key of a line is the number of its group, or a tuple, if there are several columns.
    """
    drawn = rows.where(fn.col("bin") >= 0)
    told = fn.struct(fn.col("bin"), *[fn.col(value).cast("double").alias(value) for value in values])
    found = drawn.groupBy(*by).agg(fn.collect_list(told).alias("told")).toArrow()
    keys = list(zip(*(found[name].to_pylist() for name in by), strict=True))
    pieces = found["told"].combine_chunks()
    flat, ends = pieces.flatten(), pieces.offsets.to_numpy()
    ends = ends - (ends[0] if len(ends) else 0)
    bins = flat.field("bin").to_numpy(zero_copy_only=False)
    made: dict[str, dict[Any, Line]] = {}
    for value in values:
        numbers = flat.field(value).to_numpy(zero_copy_only=False)
        made[value] = {}
        for at, key in enumerate(keys):
            line = np.full(axis.bins, np.nan)
            here = slice(ends[at], ends[at + 1])
            line[bins[here]] = numbers[here]
            made[value][key[0] if len(by) == 1 else key] = line
    return made


def packed(line: Line) -> str:
    """Whole numbers as text: digits of five bits, the lowest first; a sign is the lowest bit of all.

    A point is a step without a value, and a star with a number says how often the value before it comes again.
    """
    if not len(line):
        return ""
    same = (line[1:] == line[:-1]) | (np.isnan(line[1:]) & np.isnan(line[:-1]))
    starts = np.concatenate(([0], np.flatnonzero(~same) + 1, [len(line)])).tolist()
    told = []
    for start, end in itertools.pairwise(starts):
        one, again = _digits_of(float(line[start])), end - start - 1
        repeated = _AGAIN + _digits(again)
        told.append(one * (again + 1) if again * len(one) <= len(repeated) else one + repeated)
    return "".join(told)


def _digits_of(value: float) -> str:
    if np.isnan(value):
        return _NOTHING
    whole = round(value)
    return _digits(2 * whole if whole >= 0 else -2 * whole - 1)


def _digits(number: int) -> str:
    """Each digit but the last has the sixth bit."""
    told = ""
    while number >= 32:
        told += _DIGITS[number % 32 + 32]
        number //= 32
    return told + _DIGITS[number]


def differences(line: Line) -> Line:
    """The first value, and by how much each differs from the one before it; these are shorter than the values."""
    known = ~np.isnan(line)
    told = line.copy()
    told[known] = np.diff(line[known], prepend=0)
    return told


def packed_all(of: Mapping[int, Line], count: int) -> list[str | None]:
    """The lines of groups by number; None for a group without one."""
    return [packed(of[g]) if g in of else None for g in range(count)]
