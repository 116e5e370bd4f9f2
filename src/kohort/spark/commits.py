"""The table `offset_commits`: a window's commits as Arrow columns, with the fate of each."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.records import kernels
from kohort.records.arrow import strings
from kohort.records.batch import TRANSACTIONAL
from kohort.records.columns import Columns, OffsetValues
from kohort.records.kernels import Longs
from kohort.records.key_columns import KeyColumns
from kohort.records.offsets_topic import OffsetCommitValue, decode_value
from kohort.spark.arrays import numbers, times
from kohort.spark.fates import NAMES, NOT_DECIDED, DecidedRows
from kohort.spark.schema import arrow_schema_of

TABLE = "offset_commits"

_SCHEMA = arrow_schema_of(TABLE)
_FATES = pa.array(NAMES)


class Commits:
    """The commits of some columns; each column of the table is made when it is asked for."""

    def __init__(
        self, columns: Columns, rows: Longs, partition: int, keys: KeyColumns, decide: Callable[[], DecidedRows]
    ) -> None:
        values = OffsetValues(columns.data, columns.value_starts[rows], columns.value_sizes[rows])
        mended: dict[int, str | None] = {}
        if not values.usable.all():
            rows, values, mended = _read_oddities(columns, rows, values)
        self._columns, self._rows, self._values = columns, rows, values
        self._partition, self._keys, self._decide = partition, keys, decide
        self._mended = mended
        self._removed = values.tombstones if values.tombstones.any() else None
        self._batches, self._key_ids = columns.batches[rows], columns.key_ids[rows]
        self._decided: DecidedRows | None = None

    def batch(self, names: Sequence[str]) -> pa.RecordBatch:
        """The columns of these names."""
        schema = pa.schema([_SCHEMA.field(name) for name in names])
        return pa.RecordBatch.from_arrays([self._column(name) for name in names], schema=schema)

    def __len__(self) -> int:
        return len(self._rows)

    def _column(self, name: str) -> pa.Array:
        columns, rows, values, type_ = self._columns, self._rows, self._values, _SCHEMA.field(name).type
        match name:
            case "partition":
                return numbers(np.full(len(rows), self._partition, np.int32), type_)
            case "offset":
                return numbers(columns.offsets[rows], type_)
            case "timestamp":
                return times(columns.timestamps[rows])
            case "group":
                return self._keys.groups(self._key_ids)
            case "topic":
                return self._keys.topics(self._key_ids)
            case "topic_partition":
                return numbers(self._keys.partitions(self._key_ids), type_)
            case "committed_offset":
                return numbers(values.offsets, type_, self._removed)
            case "leader_epoch":
                return numbers(values.leader_epochs, type_, self._removed)
            case "metadata":
                return self._metadata()
            case "commit_timestamp":
                return times(values.commit_timestamps, self._removed)
            case "expire_timestamp":
                return times(values.expire_timestamps, self._removed)
            case "tombstone":
                return pa.array(values.tombstones)
            case "producer_id":
                return numbers(self._of_batch(kernels.PRODUCER_ID), type_)
            case "producer_epoch":
                return numbers(self._of_batch(kernels.PRODUCER_EPOCH).astype(np.int16), type_)
            case "transactional":
                return pa.array(self._of_batch(kernels.ATTRIBUTES) & TRANSACTIONAL != 0)
            case "fate":
                return _FATES.take(pa.array(self._fates[0][rows]))
            case "decided_offset":
                offsets = self._fates[1][rows]
                return numbers(offsets, type_, offsets == NOT_DECIDED)
            case "decided_timestamp":
                return times(self._fates[2][rows])
            case "batch_offset":
                return numbers(self._of_batch(kernels.BASE_OFFSET), type_)
            case "bytes":
                return numbers(columns.record_sizes[rows], type_)
        raise AssertionError(f"{TABLE} has no column {name}")

    @property
    def _fates(self) -> DecidedRows:
        if self._decided is None:
            self._decided = self._decide()
        return self._decided

    def _of_batch(self, field: int) -> Longs:
        return self._columns.heads[:, field][self._batches]

    def _metadata(self) -> pa.Array:
        values = self._values
        plain = strings(self._columns.data, values.metadata_starts, values.metadata_sizes, values.tombstones)
        if not self._mended:
            return plain
        mask = np.zeros(len(plain), np.bool_)
        mask[list(self._mended)] = True
        return pc.replace_with_mask(plain, pa.array(mask), pa.array(self._mended.values(), pa.string()))


def _read_oddities(
    columns: Columns, rows: Longs, values: OffsetValues
) -> tuple[Longs, OffsetValues, dict[int, str | None]]:
    """Values that the kernel leaves to the scalar codec; what that cannot read either has no row here."""
    read: dict[int, OffsetCommitValue] = {}
    unreadable = []
    for at in np.flatnonzero(~values.usable).tolist():
        row = int(rows[at])
        value = decode_value(columns.keys.key(int(columns.key_ids[row])), columns.value(row))
        if isinstance(value, OffsetCommitValue):
            read[at] = value
        else:
            unreadable.append(at)
    kept = np.ones(len(rows), np.bool_)
    kept[unreadable] = False
    for at, value in read.items():
        values.offsets[at], values.leader_epochs[at] = value.offset, value.leader_epoch
        values.commit_timestamps[at], values.expire_timestamps[at] = value.commit_timestamp, value.expire_timestamp
        values.metadata_sizes[at] = 0
    places = np.cumsum(kept) - 1
    return rows[kept], values.chosen(kept), {int(places[at]): value.metadata for at, value in read.items()}
