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
from kohort.records.batch import CONTROL, TRANSACTIONAL, BatchHeader, Record, read_batch
from kohort.records.columns import Columns, OffsetValues
from kohort.records.json_text import to_json
from kohort.records.kernels import Ints, Longs
from kohort.records.key_table import OFFSET_KIND, KeyTable
from kohort.records.machine import Bytes
from kohort.records.offsets_topic import OFFSET_COMMIT, OffsetKey
from kohort.records.primitives import text
from kohort.records.rows import Row, describe

MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("instance_id", pa.string()),
        ("rebalance_timeout", pa.int32()),
        ("session_timeout", pa.int32()),
        ("subscription", pa.list_(pa.string())),
        ("assignment", pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))),
        ("subscription_raw", pa.binary()),
        ("assignment_raw", pa.binary()),
    ]
)

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("kind", pa.string()),
        ("key_version", pa.int16()),
        ("value_version", pa.int16()),
        ("tombstone", pa.bool_()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("transactional", pa.bool_()),
        ("control", pa.bool_()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("commit_timestamp", pa.int64()),
        ("expire_timestamp", pa.int64()),
        ("topic_id", pa.string()),
        ("protocol_type", pa.string()),
        ("generation", pa.int32()),
        ("protocol", pa.string()),
        ("leader", pa.string()),
        ("state_timestamp", pa.int64()),
        ("members", pa.list_(MEMBER)),
        ("control_type", pa.string()),
        ("coordinator_epoch", pa.int32()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("raw_key", pa.binary()),
        ("raw_value", pa.binary()),
        ("reason", pa.string()),
    ]
)
"""Every key that a row can have; the fields of newer coordinators' records (`key`, `value`) are JSON."""


def from_rows(rows: Iterable[Row]) -> pa.Table:
    """Rows as a table of `SCHEMA`."""
    return pa.Table.from_pylist([_flat(row) for row in rows], schema=SCHEMA)


def to_arrow(columns: Columns, partition: int) -> pa.Table:
    """All records of some columns as a table of `SCHEMA`, in their order."""
    attributes = columns.heads[:, kernels.ATTRIBUTES][columns.batches]
    kinds = np.zeros(len(columns), np.int8)
    has_key = columns.key_ids != kernels.NO_KEY
    kinds[has_key] = columns.keys.kinds[columns.key_ids[has_key]]
    rows = np.flatnonzero((kinds == OFFSET_KIND) & (attributes & CONTROL == 0))
    values = OffsetValues(columns.data, columns.value_starts[rows], columns.value_sizes[rows])
    simple = rows[values.usable]
    others = np.setdiff1d(np.arange(len(columns)), simple, assume_unique=True)
    table = _offset_commits(columns, partition, simple, values)
    if not len(others):
        return table
    table = pa.concat_tables([table, from_rows(_scalar_rows(columns, partition, others))])
    order = np.argsort(np.concatenate([simple, others]), kind="stable")
    return table.take(pa.array(order)).combine_chunks()


def _offset_commits(columns: Columns, partition: int, rows: Longs, values: OffsetValues) -> pa.Table:
    used, heads = values.usable, columns.heads[columns.batches[rows]]
    tombstones = values.tombstones[used]
    attributes = heads[:, kernels.ATTRIBUTES]
    groups, topics, partitions, versions = _key_columns(columns.keys, columns.key_ids[rows])
    known: dict[str, Any] = {
        "partition": np.full(len(rows), partition, np.int32),
        "offset": columns.offsets[rows],
        "timestamp": columns.timestamps[rows],
        "kind": pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), [OFFSET_COMMIT]).dictionary_decode(),
        "key_version": versions,
        "value_version": pa.array(values.versions[used], mask=tombstones),
        "tombstone": tombstones,
        "producer_id": heads[:, kernels.PRODUCER_ID],
        "producer_epoch": heads[:, kernels.PRODUCER_EPOCH].astype(np.int16),
        "transactional": attributes & TRANSACTIONAL != 0,
        "control": np.zeros(len(rows), np.bool_),
        "group": groups,
        "topic": topics,
        "topic_partition": partitions,
        "committed_offset": pa.array(values.offsets[used], mask=tombstones),
        "leader_epoch": pa.array(values.leader_epochs[used], mask=tombstones),
        "metadata": _strings(columns.data, values.metadata_starts[used], values.metadata_sizes[used], tombstones),
        "commit_timestamp": pa.array(values.commit_timestamps[used], mask=tombstones),
        "expire_timestamp": pa.array(values.expire_timestamps[used], mask=tombstones),
    }
    return pa.table(
        [_array(known[f.name], f.type) if f.name in known else pa.nulls(len(rows), f.type) for f in SCHEMA],
        schema=SCHEMA,
    )


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, type_)


def _key_columns(keys: KeyTable, ids: Ints) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Group, topic, partition and version of offset keys, each distinct key read once."""
    distinct, indices = np.unique(ids, return_inverse=True)
    read = [key for key in (keys.key(int(number)) for number in distinct) if isinstance(key, OffsetKey)]
    spread = pa.array(indices.astype(np.int32))
    return (
        pa.array([key.group for key in read], pa.string()).take(spread),
        pa.array([key.topic for key in read], pa.string()).take(spread),
        pa.array([key.partition for key in read], pa.int32()).take(spread),
        pa.array([key.version for key in read], pa.int16()).take(spread),
    )


def _strings(data: Bytes, starts: Longs, sizes: Ints, missing: NDArray[np.bool_]) -> pa.Array:
    """Pieces of `data` as text, with malformed UTF-8 mended as everywhere."""
    wide = np.where(missing, 0, sizes).astype(np.int64)
    bounds = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(wide, out=bounds[1:])
    characters = np.empty(int(bounds[-1]), np.uint8)
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
