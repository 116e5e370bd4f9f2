"""A bucket of commits in the order in which the walk goes through them, and the sums that need no order.

For each topic partition come first what is known of its end (samples), then how far its furthest group was, minute by
minute (claims), then the commits and tombstones of one group after the other, each as they stand in the log.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.spark.tables import walk_kinds as kinds
from kohort.spark.tables.packing import KEY, Codes, distinct_keys

Longs = NDArray[np.int64]

_BATCH_ROWS = 1 << 16

SUMS = pa.schema(
    [
        *KEY,
        ("counted_records", pa.int64()),
        ("counted_bytes", pa.int64()),
        ("aborted_records", pa.int64()),
        ("aborted_bytes", pa.int64()),
        ("open_records", pa.int64()),
        ("open_bytes", pa.int64()),
        ("commits", pa.int64()),
        ("first_millis", pa.int64()),
        ("last_millis", pa.int64()),
        ("last_bytes", pa.int64()),
        ("is_removed", pa.bool_()),
    ]
)
"""What the records of a key come to: those that count, and those of transactions that do not."""

POINTS = pa.schema([*KEY.remove(3).remove(2), ("committed_offset", pa.int64()), ("millis", pa.int64())])
"""How far the furthest group of a topic partition was: one for each minute in which it went on."""


class Bucket:
    """All rows of some topic partitions."""

    def __init__(self, keys: pa.Table, rows: pa.Table) -> None:
        codes, distinct = distinct_keys(keys)
        order, self._topic_partitions = _ordered(distinct)
        self._keys = distinct.take(pa.array(order)).combine_chunks()
        place: Longs = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        self._key: Codes = place[codes][_numbers(rows, "key")]
        self._kind, self._offset = _numbers(rows, "kind"), _numbers(rows, "offset")
        self._value, self._millis = _numbers(rows, "value"), _numbers(rows, "millis")
        self._bytes = _numbers(rows, "bytes")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows that the walk goes through, in its order."""
        walked = np.flatnonzero(self._kind <= kinds.REMOVAL)
        kind, key, millis = self._kind[walked], self._key[walked], self._millis[walked]
        offset, value = self._offset[walked], self._value[walked]
        claim_key, claim_millis, claim_value = self._claims()
        kind = np.concatenate([kind, np.full(len(claim_key), kinds.CLAIM, np.int8)])
        key, millis = np.concatenate([key, claim_key]), np.concatenate([millis, claim_millis])
        offset, value = np.concatenate([offset, claim_millis]), np.concatenate([value, claim_value])
        first_key = np.searchsorted(self._topic_partitions, self._topic_partitions[key])
        # All that is known of a topic partition comes before its first group.
        is_fact = kind <= kinds.CLAIM
        major = np.where(is_fact, 2 * first_key, 2 * key + 1)
        order = np.lexsort((offset, np.where(is_fact, kind == kinds.CLAIM, False), major))
        group = self._keys["group"].combine_chunks()
        for start in range(0, len(order), _BATCH_ROWS):
            rows = order[start : start + _BATCH_ROWS]
            ids, facts = key[rows], is_fact[rows]
            no_time = millis[rows] == kinds.UNKNOWN
            yield pa.RecordBatch.from_arrays(
                [
                    self._keys["topic"].combine_chunks().take(pa.array(ids)),
                    self._keys["topic_partition"].combine_chunks().take(pa.array(ids)),
                    pa.array(kind[rows], pa.int8()),
                    group.take(pa.array(ids, mask=facts)).fill_null(""),
                    self._keys["partition"].combine_chunks().take(pa.array(ids, mask=facts)).fill_null(0),
                    pa.array(offset[rows]),
                    pa.array(value[rows], mask=kind[rows] == kinds.REMOVAL),
                    pa.array(millis[rows], mask=no_time),
                ],
                names=["topic", "topic_partition", "kind", "group", "partition", "offset", "value", "millis"],
            )

    def sums(self) -> pa.RecordBatch:
        """A row of `SUMS` for each key."""
        kind, count = self._kind, len(self._keys)
        is_record = kind > kinds.CLAIM
        is_aborted, is_open = kind == kinds.ABORTED, kind == kinds.OPENED
        counts = is_record & ~is_aborted & ~is_open
        is_removal = (kind == kinds.REMOVAL) | (kind == kinds.LATER_REMOVAL)
        columns: dict[str, object] = {}
        for name, chosen in (("counted", counts), ("aborted", is_aborted), ("open", is_open)):
            columns[f"{name}_records"] = np.bincount(self._key[chosen], minlength=count)
            columns[f"{name}_bytes"] = _summed(self._key[chosen], self._bytes[chosen], count)
        timed = counts & ~is_removal & (self._millis != kinds.UNKNOWN)
        first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, kinds.UNKNOWN)
        np.minimum.at(first, self._key[timed], self._millis[timed])
        np.maximum.at(last, self._key[timed], self._millis[timed])
        commits = np.bincount(self._key[timed], minlength=count)
        columns |= {
            "commits": commits,
            "first_millis": pa.array(first, mask=commits == 0),
            "last_millis": pa.array(last, mask=commits == 0),
        }
        rows = np.flatnonzero(counts)
        rows = rows[np.lexsort((self._offset[rows], self._key[rows]))]
        ends = np.flatnonzero(np.diff(self._key[rows], append=-1))
        last_row = np.full(count, -1)
        last_row[self._key[rows[ends]]] = rows[ends]
        none = last_row < 0
        columns["last_bytes"] = pa.array(self._bytes[last_row].astype(np.int64), mask=none)
        columns["is_removed"] = pa.array(is_removal[last_row], mask=none)
        whole = pa.table([*self._keys.columns, *(columns[field.name] for field in list(SUMS)[len(KEY) :])], schema=SUMS)
        told = np.bincount(self._key[is_record], minlength=count) > 0
        return _batch(whole.filter(pa.array(told)), SUMS)

    def points(self) -> pa.RecordBatch:
        """Rows of `POINTS`."""
        told = ((self._kind == kinds.COMMIT) | (self._kind == kinds.UNWATCHED)) & (self._value >= 0)
        key, _, row = self._furthest(np.flatnonzero(told & (self._millis != kinds.UNKNOWN)))
        value = self._value[row]
        # Minute by minute, those that are further than all before them.
        begins = np.flatnonzero(np.diff(self._topic_partitions[key], prepend=-1))
        before = np.full(len(value), -1, np.int64)
        for start, end in zip(begins, [*begins[1:], len(value)][: len(begins)], strict=True):
            before[start + 1 : end] = np.maximum.accumulate(value[start : end - 1])
        chosen = value > before
        taken = self._keys.take(pa.array(key[chosen]))
        columns = [taken["topic"], taken["topic_partition"], pa.array(value[chosen])]
        return _batch(pa.table([*columns, pa.array(self._millis[row[chosen]])], schema=POINTS), POINTS)

    def _claims(self) -> tuple[Longs, Longs, Longs]:
        """Some key of a topic partition, the time from which on a claim is known, and how far the furthest was."""
        key, moment, row = self._furthest(
            np.flatnonzero((self._kind == kinds.COMMIT) & (self._millis != kinds.UNKNOWN))
        )
        return key, (moment + 1) * kinds.CLAIM_MILLIS, self._value[row]

    def _furthest(self, rows: Longs) -> tuple[Longs, Longs, Longs]:
        """Of some rows the furthest of each topic partition and minute, in the order of those: key, minute, row."""
        place, moment = self._topic_partitions[self._key[rows]], self._millis[rows] // kinds.CLAIM_MILLIS
        order = np.lexsort((self._value[rows], moment, place))
        place, moment, rows = place[order], moment[order], rows[order]
        ends = np.ones(len(rows), np.bool_)
        ends[:-1] = (place[1:] != place[:-1]) | (moment[1:] != moment[:-1])
        return self._key[rows[ends]], moment[ends], rows[ends]


def _ordered(keys: pa.Table) -> tuple[Longs, Longs]:
    """An order of keys in which those of a topic partition follow each other, and the number of that, in that order."""
    parts = [
        keys[name].combine_chunks().dictionary_encode().indices.to_numpy()
        for name in ("partition", "group", "topic_partition", "topic")
    ]
    order = np.lexsort(parts)
    changes = np.zeros(len(order), np.int64)
    changes[1:] = np.diff(parts[2][order]) != 0
    changes[1:] |= np.diff(parts[3][order]) != 0
    return order, np.cumsum(changes)


def _numbers(rows: pa.Table, name: str) -> NDArray[np.int64]:
    """A column as numbers; what is NULL is `UNKNOWN`, or zero where that does not fit."""
    column = rows[name].combine_chunks()
    if column.null_count:
        column = column.fill_null(kinds.UNKNOWN if pa.types.is_int64(column.type) else 0)
    found: NDArray[np.int64] = column.to_numpy()
    return found


def _summed(keys: Longs, numbers: Longs, count: int) -> Longs:
    sums: Longs = np.zeros(count, np.int64)
    np.add.at(sums, keys, numbers)
    return sums


def _batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    found = table.combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=schema)
