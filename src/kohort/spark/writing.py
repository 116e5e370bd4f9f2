"""All tables of a log in one pass: the tasks that decode it write the Parquet files themselves.

Columns that are there already need not become Spark's rows on their way to a file: that takes most of the time of a
table that Spark writes. A task tells which files it has written. It writes under names that nobody else takes, so what
a task left that failed, or was done twice, is in nobody's way: only files that are told of belong to a table.
"""

import contextlib
import dataclasses
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kohort.spark.inputs import Stretch
from kohort.spark.reading import Keys, TableReader, windows
from kohort.spark.request import Request
from kohort.spark.schema import LOG_TABLES, arrow_schema_of, schema_of

GROUP_ROWS = 1 << 17
"""So many rows are gathered before they are written, so that many small segments do not make many small row groups."""

_NUMBERED = ("offset", "timestamp", "commit_timestamp", "decided_offset", "decided_timestamp", "batch_offset")
"""Columns of ever new numbers, each a little more than the last: a dictionary would be of no use to them."""

_SCATTERED = ("committed_offset",)


class Written(NamedTuple):
    """A file that belongs to a table; `seconds` is how long its task was busy with it."""

    table: str
    file: str
    rows: int
    seconds: float


def write(stretches: Iterable[Stretch], request: Request, place: int) -> Iterator[Written]:
    """Write what some stretches hold, a file for each table. The task at the first place writes empty ones too."""
    keys = Keys()
    name = f"part-{place:05d}-{uuid.uuid4()}.snappy.parquet"
    files = [_File(table, name, request, keys) for table in LOG_TABLES]
    for stretch in stretches:
        for window in windows(stretch, keys, fail_fast=request.fail_fast):
            for file in files:
                began = time.perf_counter()
                file.add(file.reader.rows(window))
                file.seconds += time.perf_counter() - began
    for file in files:
        began = time.perf_counter()
        if file.close(even_if_empty=place == 0):
            yield Written(file.table, name, file.rows, file.seconds + time.perf_counter() - began)


def told(files: Iterable[Written]) -> Iterator[pa.RecordBatch]:
    """The same as rows of the table `written`."""
    yield pa.RecordBatch.from_pylist([file._asdict() for file in files], schema=arrow_schema_of("written"))


class _File:
    """A table's file, which is there when the first rows are written."""

    def __init__(self, table: str, name: str, request: Request, keys: Keys) -> None:
        schema = arrow_schema_of(table)
        of_table = dataclasses.replace(request, table=table, columns=tuple(schema.names))
        self.table, self.rows, self.seconds = table, 0, 0.0
        self.reader = TableReader(of_table, keys)
        self._path = os.path.join(request.into, table, name)
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self._held.append(batch)
            self._held_rows += len(batch)
        if self._held_rows >= GROUP_ROWS:
            self._write()

    def close(self, *, even_if_empty: bool) -> bool:
        """Write the rest; whether there is a file at all."""
        if self._held or (even_if_empty and self._writer is None):
            self._write()
        if self._writer is None:
            return False
        self._writer.add_key_value_metadata(_spark_metadata(self.table))
        self._writer.close()
        return True

    def _write(self) -> None:
        if self._writer is None:
            self._writer = _open(self._path, self._schema)
        self._writer.write_table(pa.Table.from_batches(self._held, self._schema))
        self.rows += self._held_rows
        self._held, self._held_rows = [], 0


@contextlib.contextmanager
def open_table(table: str, path: str) -> Iterator[pq.ParquetWriter]:
    """A file of a table for whoever has its rows already."""
    with _open(path, arrow_schema_of(table)) as writer:
        yield writer
        writer.add_key_value_metadata(_spark_metadata(table))


def _open(path: str, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path,
        schema,
        compression="snappy",
        store_schema=False,
        use_dictionary=[name for name in schema.names if name not in (*_NUMBERED, *_SCATTERED)],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name in _NUMBERED},
    )


def _spark_metadata(table: str) -> dict[str, str]:
    """What Spark leaves in files of its own: from there it takes the comments, and that times need no mending."""
    from pyspark import __version__

    return {
        "org.apache.spark.version": __version__,
        "org.apache.spark.sql.parquet.row.metadata": schema_of(table).json(),
    }
