"""Columns as Arrow: the rows of `rows.py` for a whole window at once.

Offset commits, which are nearly all that such a topic holds, are built from the kernels' arrays. The few other records
(groups, members, markers, whatever cannot be read) go through the scalar codec, row by row.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.records import kernels
from kohort.records.arrow_schema import SCHEMA
from kohort.records.batch import CONTROL, TRANSACTIONAL, BatchHeader, Record, read_batch
from kohort.records.columns import Columns, OffsetValues
from kohort.records.json_text import to_json
from kohort.records.kernels import Ints, Longs
from kohort.records.key_columns import KeyColumns
from kohort.records.key_table import OFFSET_KIND
from kohort.records.machine import Bytes
from kohort.records.modern_groups import kafka_uuid
from kohort.records.offsets_topic import OFFSET_COMMIT
from kohort.records.primitives import text
from kohort.records.rows import Row, describe


def from_rows(rows: Iterable[Row]) -> pa.Table:
    """Rows as a table of `SCHEMA`."""
    return pa.Table.from_pylist([_flat(row) for row in rows], schema=SCHEMA)


def to_arrow(columns: Columns, partition: int, keys: KeyColumns | None = None) -> pa.Table:
    """All records of some columns as a table of `SCHEMA`, in their order. With `keys`, key texts are not read again."""
    attributes = columns.heads[:, kernels.ATTRIBUTES][columns.batches]
    kinds = np.zeros(len(columns), np.int8)
    has_key = columns.key_ids != kernels.NO_KEY
    kinds[has_key] = columns.keys.kinds[columns.key_ids[has_key]]
    rows = np.flatnonzero((kinds == OFFSET_KIND) & (attributes & CONTROL == 0))
    values = OffsetValues(columns.data, columns.value_starts[rows], columns.value_sizes[rows])
    simple = rows[values.usable]
    others = np.setdiff1d(np.arange(len(columns)), simple, assume_unique=True)
    table = _offset_commits(columns, partition, simple, values, keys or KeyColumns(columns.keys))
    if not len(others):
        return table
    table = pa.concat_tables([table, from_rows(_scalar_rows(columns, partition, others))])
    order = np.argsort(np.concatenate([simple, others]), kind="stable")
    return table.take(pa.array(order)).combine_chunks()


def _offset_commits(columns: Columns, partition: int, rows: Longs, values: OffsetValues, keys: KeyColumns) -> pa.Table:
    used, batches, ids = values.usable, columns.batches[rows], columns.key_ids[rows]
    tombstones = values.tombstones[used]
    attributes = columns.heads[batches, kernels.ATTRIBUTES]
    known: dict[str, Any] = {
        "partition": np.full(len(rows), partition, np.int32),
        "offset": columns.offsets[rows],
        "timestamp": columns.timestamps[rows],
        "kind": pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), [OFFSET_COMMIT]).dictionary_decode(),
        "key_version": keys.versions(ids),
        "value_version": pa.array(values.versions[used], mask=tombstones),
        "tombstone": tombstones,
        "producer_id": columns.heads[batches, kernels.PRODUCER_ID],
        "producer_epoch": columns.heads[batches, kernels.PRODUCER_EPOCH].astype(np.int16),
        "transactional": attributes & TRANSACTIONAL != 0,
        "control": np.zeros(len(rows), np.bool_),
        "group": keys.groups(ids),
        "topic": keys.topics(ids),
        "topic_partition": keys.partitions(ids),
        "committed_offset": pa.array(values.offsets[used], mask=tombstones),
        "leader_epoch": pa.array(values.leader_epochs[used], mask=tombstones),
        "metadata": strings(columns.data, values.metadata_starts[used], values.metadata_sizes[used], tombstones),
        "commit_timestamp": pa.array(values.commit_timestamps[used], mask=tombstones),
        "expire_timestamp": pa.array(values.expire_timestamps[used], mask=tombstones),
    }
    topic_ids = values.topic_ids(used)
    if topic_ids is not None:
        known["topic_id"] = pa.array([None if id_ is None else kafka_uuid(id_) for id_ in topic_ids], pa.string())
    return pa.table(
        [_array(known[f.name], f.type) if f.name in known else pa.nulls(len(rows), f.type) for f in SCHEMA],
        schema=SCHEMA,
    )


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, type_)


def strings(data: Bytes, starts: Longs, sizes: Ints, missing: NDArray[np.bool_]) -> pa.Array:
    """Pieces of `data` as text, with malformed UTF-8 mended as everywhere."""
    wide = np.where(missing, 0, sizes).astype(np.int64)
    bounds = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(wide, out=bounds[1:])
    characters = np.empty(int(bounds[-1]), np.uint8)
    if len(characters):
        kernels.gather(data, starts, wide, characters, bounds[:-1].astype(np.int64))
    valid = pa.array(~missing).buffers()[1]
    array = pa.StringArray.from_buffers(len(starts), pa.py_buffer(bounds), pa.py_buffer(characters), valid)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raw = array.cast(pa.binary(), safe=False).to_pylist()
        return pa.array([None if piece is None else text(piece) for piece in raw], pa.string())
    return array


def _scalar_rows(columns: Columns, partition: int, rows: Longs) -> Iterable[Row]:
    """Rows of the scalar codec, from the columns; a control batch is read again, for its keys were not kept."""
    control: dict[int, list[Record]] = {}
    for row in rows.tolist():
        batch = int(columns.batches[row])
        header = _header(columns.heads[batch])
        if header.is_control:
            if batch not in control:
                data = columns.data[header.position : header.position + header.size].tobytes()
                control[batch] = list(read_batch(data).records)
            yield describe(partition, header, control[batch].pop(0))
            continue
        key_id = int(columns.key_ids[row])
        key = None if key_id == kernels.NO_KEY else columns.keys.raw(key_id)
        record = Record(int(columns.offsets[row]), int(columns.timestamps[row]), key, columns.value(row))
        yield describe(partition, header, record)


def _header(head: Longs) -> BatchHeader:
    return BatchHeader(
        position=int(head[kernels.POSITION]),
        size=int(head[kernels.SIZE]),
        base_offset=int(head[kernels.BASE_OFFSET]),
        magic=int(head[kernels.MAGIC]),
        crc=0,
        attributes=int(head[kernels.ATTRIBUTES]),
        max_timestamp=int(head[kernels.MAX_TIMESTAMP]),
        record_count=int(head[kernels.RECORD_COUNT]),
        producer_id=int(head[kernels.PRODUCER_ID]),
        producer_epoch=int(head[kernels.PRODUCER_EPOCH]),
    )


def _flat(row: Row) -> Row:
    flat = dict(row)
    for name in ("key", "value"):
        if name in flat:
            flat[name] = to_json(flat[name])
    if "members" in flat:
        flat["members"] = [_flat_member(member) for member in flat["members"]]
    return flat


def _flat_member(member: Row) -> Row:
    assignment = member["assignment"]
    pairs = None if assignment is None else [{"topic": topic, "partition": p} for topic, p in assignment]
    return member | {"assignment": pairs}
