"""One task's share of the walk: sorted batches of rows in, what they tell out. Arrow and numbers, no Spark.

Memory holds what is known of one topic partition's end and the last commits of one group, whatever there is in all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kohort.spark.tables import walk_kernel as kernel
from kohort.spark.tables import walk_kinds as kinds
from kohort.spark.tables.bucket import SUMS, Bucket
from kohort.spark.tables.packing import unpack
from kohort.spark.tables.walk_kernel import Bytes, Doubles, Longs

KEY = ("topic", "topic_partition", "group", "partition")
_TOPIC_PARTITION = KEY[:2]

_NUMBERS = {
    "end_offset": kinds.END,
    "source": kinds.SOURCE,
    "lag": kinds.LAG,
    "window_commits": kinds.WINDOW_COMMITS,
    "window_start": kinds.WINDOW_MILLIS,
    "status": kinds.STATUS,
    "status_before": kinds.STATUS_BEFORE,
    "last_status": kinds.LAST_STATUS,
    "ended_by": kinds.ENDED_BY,
    "previous_committed_offset": kinds.PREVIOUS_COMMITTED,
    "previous_offset": kinds.PREVIOUS_OFFSET,
    "previous_millis": kinds.PREVIOUS_MILLIS,
    "commits_before": kinds.COMMITS_BEFORE,
    "distance": kinds.DISTANCE,
    "idle_commits": kinds.IDLE_COMMITS,
    "changed_millis": kinds.CHANGED,
    "clock": kinds.CLOCK,
    "until": kinds.UNTIL,
    "stopped_at": kinds.STOPPED,
}
_FLAGS = {
    "is_status": kinds.IS_STATUS,
    "is_change": kinds.IS_CHANGE,
    "is_step": kinds.IS_STEP,
    "is_last": kinds.IS_LAST,
}
_OF_PREVIOUS = ("previous_committed_offset", "previous_offset", "distance")
_SPEEDS = {"speed": kinds.SPEED, "fastest_before": kinds.FASTEST_BEFORE}

OUT = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_partition", pa.int32()),
        ("group", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("committed_offset", pa.int64()),
        ("millis", pa.int64()),
        ("after_tombstone", pa.bool_()),
        *((name, pa.int64()) for name in _NUMBERS),
        *((name, pa.float64()) for name in _SPEEDS),
        *((name, pa.bool_()) for name in _FLAGS),
    ]
)
"""What the walk tells of a commit; what the kernel does not know (`UNKNOWN`, or not a number) is NULL."""

_OTHER_SORTS = ("is_sum", "is_point")
WALKED = pa.schema(
    [
        *OUT,
        *(field for field in SUMS if field.name not in OUT.names),
        *((name, pa.bool_()) for name in _OTHER_SORTS),
    ]
)
"""What the walk tells in all: of commits, of keys, and of topic partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkRules:
    """All that the walk is told, in milliseconds and messages."""

    intervals: int
    min_distance: int
    lately: int
    minimum_complete: float
    allowed_lag: int
    as_of: int | None
    least_step: int
    every_commit: bool


def walk_buckets(packed: Iterable[pa.RecordBatch], rules: WalkRules) -> Iterator[pa.RecordBatch]:
    """The walk through packed rows that come sorted by bucket."""
    for keys, rows in unpack(packed):
        bucket = Bucket(keys, rows)
        yield _walked(bucket.sums(), "is_sum")
        yield _walked(bucket.points(), "is_point")
        for batch in Walker(rules).walk(bucket.batches()):
            yield _walked(batch)


def _walked(batch: pa.RecordBatch, *sorts: str) -> pa.RecordBatch:
    """The same as rows of `WALKED`; flags that are not given are false."""
    columns = []
    for field in WALKED:
        if field.name in batch.schema.names:
            columns.append(batch.column(field.name))
        elif field.name in (*_FLAGS, *_OTHER_SORTS):
            columns.append(pa.repeat(field.name in sorts, len(batch)))
        else:
            columns.append(pa.nulls(len(batch), field.type))
    return pa.RecordBatch.from_arrays(columns, schema=WALKED)


class Walker:
    """Goes through the rows of one task."""

    def __init__(self, rules: WalkRules) -> None:
        self._minimum_complete = rules.minimum_complete
        self._wanted = kinds.IS_STEP | kinds.IS_LAST | (kinds.IS_STATUS if rules.every_commit else kinds.IS_CHANGE)
        self._rules = np.zeros(kinds.RULES, np.int64)
        self._rules[kinds.INTERVALS] = rules.intervals
        self._rules[kinds.MIN_DISTANCE] = rules.min_distance
        self._rules[kinds.LATELY] = rules.lately
        self._rules[kinds.ALLOWED_LAG] = rules.allowed_lag
        self._rules[kinds.AS_OF] = kinds.UNKNOWN if rules.as_of is None else rules.as_of
        self._rules[kinds.LEAST_STEP] = rules.least_step
        self._memory = np.zeros(kinds.MEMORY, np.int64)
        self._memory[kinds.LAST_ROW] = self._memory[kinds.WATCHED_ROW] = -1
        self._fastest = np.full(1, np.nan)
        self._ring = np.zeros((3, rules.intervals), np.int64)
        self._samples = np.zeros((3, 0), np.int64)
        self._claims = np.zeros((2, 0), np.int64)
        self._held: list[pa.RecordBatch] = []
        self._told = np.zeros((0, kinds.COLUMNS), np.int64)
        self._speeds = np.zeros((0, 2))
        self._last: pa.RecordBatch | None = None

    def walk(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What all the rows tell; what is open for long comes later than it stands."""
        for batch in batches:
            if len(batch):
                yield from self._feed(batch)
        kernel.finish_key(
            self._memory, self._ring, self._samples, self._claims, self._rules, self._minimum_complete, self._told
        )
        yield from self._emit(self._held, 0, self._told, self._speeds)

    def _feed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        held, size = len(self._held), len(self._held) + len(batch)
        kind = _shifted(batch, "kind", np.int8, held)
        self._samples = _room(self._samples, self._memory[kinds.SAMPLES], kind < kinds.CLAIM)
        self._claims = _room(self._claims, self._memory[kinds.CLAIMS], kind == kinds.CLAIM)
        told = np.zeros((size, kinds.COLUMNS), np.int64)
        told[:held] = self._told
        speeds = np.zeros((size, 2))
        speeds[:held] = self._speeds
        kernel.go_through(
            held,
            kind,
            self._changes(batch, held),
            _shifted(batch, "offset", np.int64, held),
            _shifted(batch, "value", np.int64, held),
            _shifted(batch, "millis", np.int64, held),
            self._memory,
            self._fastest,
            self._ring,
            self._samples,
            self._claims,
            self._rules,
            self._minimum_complete,
            told,
            speeds,
        )
        open_rows = sorted({int(self._memory[at]) for at in (kinds.LAST_ROW, kinds.WATCHED_ROW)} - {-1})
        rows = [self._held[row] if row < held else batch.slice(row - held, 1) for row in open_rows]
        kept_told, kept_speeds = told[open_rows], speeds[open_rows]
        told[open_rows, kinds.FLAGS] = 0
        yield from self._emit(self._held, 0, told[:held], speeds[:held])
        yield from self._emit([batch], held, told, speeds)
        for at in (kinds.LAST_ROW, kinds.WATCHED_ROW):
            if self._memory[at] >= 0:
                self._memory[at] = open_rows.index(int(self._memory[at]))
        self._held, self._told, self._speeds = rows, kept_told, kept_speeds
        self._last = batch.slice(len(batch) - 1, 1)

    def _changes(self, batch: pa.RecordBatch, held: int) -> Bytes:
        """Where another key (1) or another topic partition (2) begins."""
        changes = np.zeros(held + len(batch), np.int8)
        for name in KEY:
            column = batch.column(name)
            level = 2 if name in _TOPIC_PARTITION else 1
            is_other = pc.not_equal(column.slice(1), column.slice(0, len(batch) - 1))
            np.maximum(changes[held + 1 :], level * is_other.to_numpy(zero_copy_only=False), out=changes[held + 1 :])
            if self._last is None or self._last.column(name)[0] != column[0]:
                changes[held] = max(changes[held], level)
        return changes

    def _emit(
        self,
        parts: list[pa.RecordBatch],
        start: int,
        told: Longs,
        speeds: Doubles,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of `parts` that have something to tell; theirs is what stands in the arrays from `start` on."""
        for part in parts:
            rows = np.flatnonzero(told[start : start + len(part), kinds.FLAGS] & self._wanted)
            if len(rows):
                yield _out(part, rows, told[start + rows], speeds[start + rows])
            start += len(part)


def _shifted(batch: pa.RecordBatch, name: str, type_: type, held: int) -> NDArray[Any]:
    """A column of numbers behind the rows that are held; what is NULL is `UNKNOWN`."""
    column = batch.column(name)
    if column.null_count:
        column = pc.fill_null(column, kinds.UNKNOWN)
    shifted: NDArray[Any] = np.zeros(held + len(batch), type_)
    shifted[held:] = column.to_numpy(zero_copy_only=False)
    return shifted


def _room(points: Longs, used: int, wanted: NDArray[np.bool_]) -> Longs:
    """The points, with room for as many more as rows are `wanted`."""
    needed = int(used) + int(np.count_nonzero(wanted))
    if needed <= points.shape[1]:
        return points
    larger = np.zeros((points.shape[0], 2 * needed), np.int64)
    larger[:, :used] = points[:, :used]
    return larger


def _out(part: pa.RecordBatch, rows: Longs, told: Longs, speeds: Doubles) -> pa.RecordBatch:
    taken = part.take(pa.array(rows))
    columns: dict[str, pa.Array] = {name: taken.column(name) for name in (*KEY, "offset", "millis")}
    columns["committed_offset"] = taken.column("value")
    columns["after_tombstone"] = pa.array(told[:, kinds.AFTER_TOMBSTONE] != 0)
    has_previous = told[:, kinds.COMMITS_BEFORE] > 0
    for name, place in _NUMBERS.items():
        values = np.ascontiguousarray(told[:, place])
        missing = ~has_previous if name in _OF_PREVIOUS else values == kinds.UNKNOWN
        columns[name] = pa.array(values, mask=missing)
    for name, place in _SPEEDS.items():
        columns[name] = pa.array(speeds[:, place], mask=np.isnan(speeds[:, place]))
    for name, flag in _FLAGS.items():
        columns[name] = pa.array(told[:, kinds.FLAGS] & flag != 0)
    return pa.RecordBatch.from_arrays([columns[name].cast(OUT.field(name).type) for name in OUT.names], schema=OUT)
