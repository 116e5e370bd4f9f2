"""The compiled loops behind a replay and the sparse indexes: they see numbers only, no bytes."""

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from kohort.records.batch import CONTROL, TRANSACTIONAL
from kohort.records.kernels import ATTRIBUTES, BASE_SEQUENCE, NO_KEY, Ints, Longs
from kohort.records.machine import CACHE

_I64 = types.int64
_LONGS = types.int64[::1]
_INTS = types.int32[::1]


@njit(types.UniTuple(_I64, 2)(_LONGS, _I64, _I64, _LONGS), cache=CACHE, nogil=True)
def index_points(sizes: Longs, since: int, interval: int, points: Longs) -> Any:
    """The batches that a sparse index names, one behind each `interval` bytes; how many, and what is left."""
    count = 0
    for batch in range(len(sizes)):
        if since > interval:
            points[count] = batch
            count += 1
            since = 0
        since += sizes[batch]
    return count, since


# What `fold_rows` leaves behind for a key that it met, where it is not the row of the value that stands.
UNTOUCHED, REMOVED = -1, -2

FORGOTTEN = -2
"""Instead of the place where a key was mentioned: it was, but coordinators up to 3.9 have forgotten it since."""


@njit(
    types.UniTuple(_I64, 3)(
        _I64[:, ::1],
        _LONGS,
        _INTS,
        _INTS,
        _INTS,
        _INTS,
        types.int8[::1],
        types.boolean,
        _LONGS,
        _LONGS,
        _LONGS,
        _LONGS,
        _INTS,
        _LONGS,
    ),
    cache=CACHE,
    nogil=True,
)
def fold_rows(
    heads: Longs,
    offsets: Longs,
    key_ids: Ints,
    value_sizes: Ints,
    batches: Ints,
    canonical: Ints,
    kinds: NDArray[np.int8],
    transactional_tombstones_remove: bool,
    best: Longs,
    removed: Longs,
    mentioned: Longs,
    last_rows: Longs,
    touched: Ints,
    transactional_rows: Longs,
) -> Any:
    """Plain puts and tombstones, in the order of the log. What belongs to a transaction is listed for others.

    Returns how many keys were touched, how many records had no readable key, and how many belong to a transaction.
    """
    keys = unreadable = transactional = 0
    for row in range(len(offsets)):
        attributes = heads[batches[row], ATTRIBUTES]
        if attributes & CONTROL:
            transactional_rows[transactional] = row
            transactional += 1
            continue
        if key_ids[row] == NO_KEY:
            unreadable += 1
            continue
        key = canonical[key_ids[row]]
        kind = kinds[key]
        if kind < 0:
            unreadable += 1
            continue
        has_value = value_sizes[row] >= 0
        if has_value:
            mentioned[key] = offsets[row]
        elif heads[batches[row], BASE_SEQUENCE] == -1:  # 4.x gives every batch a sequence
            mentioned[key] = FORGOTTEN
        if attributes & TRANSACTIONAL and kind == 1:
            transactional_rows[transactional] = row
            transactional += 1
            if has_value or not transactional_tombstones_remove:
                continue
        if last_rows[key] == UNTOUCHED:
            touched[keys] = key
            keys += 1
        if has_value:
            best[key] = offsets[row]
            last_rows[key] = row
        else:
            removed[key] = offsets[row]
            best[key] = -1
            last_rows[key] = REMOVED
    return keys, unreadable, transactional
