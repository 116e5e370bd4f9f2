"""Commits on their way to the walk: packed, so that Spark moves a few large rows instead of many small ones.

A task that has rows packs them: those of the same bucket of topic partitions become one row of bytes, in which each key
stands once. Whoever gets all rows of a bucket has all commits of its topic partitions, whatever task read them, and
sorts them as numbers: 30 bytes a commit, where Spark would sort rows of text.
"""

import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BUCKETS = 256
"""A bucket is what is held in memory at once."""

BUCKET_ROWS = 1 << 22
"""So many rows a bucket should have at most: more rows, more buckets. What one topic partition has stays together."""

_MOST_BUCKETS = 1 << 14

_PACK_ROWS = 1 << 18
_LEAST_ROWS = 1 << 8
"""So many rows are packed together, and at least so many for each bucket, so that its share of them is worth a row."""

KEY = pa.schema(
    [("topic", pa.string()), ("topic_partition", pa.int32()), ("group", pa.string()), ("partition", pa.int32())]
)
NUMBERS = pa.schema(
    [("kind", pa.int8()), ("offset", pa.int64()), ("value", pa.int64()), ("millis", pa.int64()), ("bytes", pa.int32())]
)
_ROWS = pa.schema([("key", pa.int32()), *((field.name, field.type) for field in NUMBERS)])

PACKED = pa.schema([("bucket", pa.int32()), ("keys", pa.binary()), ("rows", pa.binary())])

Codes = NDArray[np.int64]


def buckets_for(rows: int) -> int:
    """How many buckets it takes that none is too large for a task."""
    return min(_MOST_BUCKETS, max(BUCKETS, -(-rows // BUCKET_ROWS)))


def pack(batches: Iterable[pa.RecordBatch], bucket_count: int = BUCKETS) -> Iterator[pa.RecordBatch]:
    """Rows of `KEY` and `NUMBERS`, in any order, as rows of `PACKED`."""
    enough = max(_PACK_ROWS, _LEAST_ROWS * bucket_count)
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        if count >= enough:
            yield from _packed(pa.Table.from_batches(held), bucket_count)
            held, count = [], 0
    if count:
        yield from _packed(pa.Table.from_batches(held), bucket_count)


def _packed(table: pa.Table, bucket_count: int) -> Iterator[pa.RecordBatch]:
    codes, keys = distinct_keys(table)
    buckets = _buckets(keys, bucket_count)
    # Keys and rows of a bucket follow each other; a row names its key by the place that this has in the bucket.
    key_order, row_order = np.argsort(buckets, kind="stable"), np.argsort(buckets[codes], kind="stable")
    place_of_key = np.empty(len(keys), np.int64)
    place_of_key[key_order] = np.arange(len(keys))
    keys = keys.take(pa.array(key_order)).combine_chunks()
    key_bounds = np.searchsorted(buckets[key_order], np.arange(bucket_count + 1))
    row_bounds = np.searchsorted(buckets[codes][row_order], np.arange(bucket_count + 1))
    row_keys = (place_of_key[codes] - key_bounds[buckets[codes]])[row_order].astype(np.int32)
    numbers = table.select(NUMBERS.names).take(pa.array(row_order)).combine_chunks()
    rows = pa.table([pa.array(row_keys), *numbers.columns], schema=_ROWS)
    (key_batch,), (row_batch,) = keys.to_batches(), rows.combine_chunks().to_batches()
    packed: dict[str, list[object]] = {name: [] for name in PACKED.names}
    for bucket in np.flatnonzero(np.diff(row_bounds)).tolist():
        first, behind = row_bounds[bucket : bucket + 2]
        first_key, behind_keys = key_bounds[bucket : bucket + 2]
        packed["bucket"].append(bucket)
        packed["keys"].append(key_batch.slice(first_key, behind_keys - first_key).serialize().to_pybytes())
        packed["rows"].append(row_batch.slice(first, behind - first).serialize().to_pybytes())
    yield pa.RecordBatch.from_pydict(packed, schema=PACKED)


def distinct_keys(table: pa.Table) -> tuple[Codes, pa.Table]:
    """For each row the number of its key, and the keys."""
    code: Codes = np.zeros(len(table), np.int64)
    for name in KEY.names:
        column = table.column(name).combine_chunks().dictionary_encode()
        both = code * len(column.dictionary) + column.indices.to_numpy()
        code = pa.array(both).dictionary_encode().indices.to_numpy().astype(np.int64)
    first = np.full(int(code.max()) + 1, len(code), np.int64)
    np.minimum.at(first, code, np.arange(len(code)))
    return code, table.select(KEY.names).cast(KEY).take(pa.array(first))


def _buckets(keys: pa.Table, bucket_count: int) -> NDArray[np.int16]:
    """The same for a topic partition whoever asks."""
    pairs = zip(keys["topic"].to_pylist(), keys["topic_partition"].to_pylist(), strict=True)
    found: dict[tuple[str, int], int] = {}
    numbers = []
    for pair in pairs:
        if pair not in found:
            found[pair] = zlib.crc32(f"{pair[1]} {pair[0]}".encode()) % bucket_count
        numbers.append(found[pair])
    return np.array(numbers, np.int16)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The buckets of rows of `PACKED` that come sorted by bucket: the keys of each, and its rows, which name them."""
    for _, parts in groupby(_parts(batches), lambda part: part[0]):
        keys, rows, count = [], [], 0
        for _, key_bytes, row_bytes in parts:
            keys.append(pa.ipc.read_record_batch(key_bytes, KEY))
            part = pa.ipc.read_record_batch(row_bytes, _ROWS)
            rows.append(part.set_column(0, "key", pc.add(part.column("key"), pa.scalar(count, pa.int32()))))
            count += len(keys[-1])
        yield pa.Table.from_batches(keys), pa.Table.from_batches(rows)


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Buffer, pa.Buffer]]:
    for batch in batches:
        for bucket, keys, rows in zip(*batch.columns, strict=True):
            yield bucket.as_py(), keys.as_buffer(), rows.as_buffer()
