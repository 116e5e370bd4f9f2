"""Numbers as Arrow columns, without a copy where that is possible."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.records.kernels import Longs

# What Spark's timestamps hold: the years 1 to 9999.
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_NONE = -1

_TIME = pa.timestamp("us", "UTC")


def numbers(values: NDArray[Any], type_: pa.DataType, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """A column of numbers; those that are `missing` are NULL."""
    valid = None if missing is None or not missing.any() else pa.array(~missing).buffers()[1]
    return pa.Array.from_buffers(type_, len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])


def times(milliseconds: Longs, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Instants; NULL where there is none (-1), or none that Spark could hold."""
    if missing is None and len(milliseconds) and _NONE < milliseconds.min() <= milliseconds.max() <= LAST_MS:
        return numbers(milliseconds * 1000, _TIME)
    bad = (milliseconds == _NONE) | (milliseconds < FIRST_MS) | (milliseconds > LAST_MS)
    if missing is not None:
        bad |= missing
    return pa.nulls(len(bad), _TIME) if bad.all() else numbers(np.where(bad, 0, milliseconds) * 1000, _TIME, bad)


def time_or_none(milliseconds: int | None) -> int | None:
    """An instant for a column of times that is made from a list, in microseconds."""
    if milliseconds is None or milliseconds == _NONE or not FIRST_MS <= milliseconds <= LAST_MS:
        return None
    return milliseconds * 1000
