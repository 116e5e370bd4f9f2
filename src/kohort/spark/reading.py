"""Stretches of logs as Arrow batches of a table. Nothing here needs Spark."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kohort.errors import CorruptLog
from kohort.log.place import OpenFile
from kohort.log.source import BadSource, OnDamage
from kohort.log.stretch import Marker, markers, stretch_columns
from kohort.records.arrow import to_arrow
from kohort.records.columns import Columns
from kohort.records.kernels import NO_KEY
from kohort.records.key_columns import KeyColumns
from kohort.records.key_table import GROUP_KIND, OFFSET_KIND, KeyTable
from kohort.spark.commits import Commits
from kohort.spark.fates import Fates
from kohort.spark.group_rows import GROUP_TABLES, rows_of
from kohort.spark.inputs import LogChanged, Segment, Stretch
from kohort.spark.quarantine import quarantine_row
from kohort.spark.request import Request
from kohort.spark.schema import arrow_schema_of

BATCH_ROWS = 16_384
"""How many rows a batch has at most."""

_MOST_KEYS = 1 << 20
"""So many distinct keys are remembered; then all are forgotten and read anew, so that memory stays bounded."""


def read(stretches: Iterable[Stretch], request: Request) -> Iterator[pa.RecordBatch]:
    """The rows of a table that stand in some stretches, which are in the order of their logs."""
    reader = _Reader(request)
    for stretch in stretches:
        with open_stretch(stretch) as (file, size):
            for batch in reader.stretch(stretch, file, size):
                for start in range(0, len(batch), BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)


@contextlib.contextmanager
def open_stretch(stretch: Stretch) -> Iterator[tuple[OpenFile, int]]:
    """A stretch's file and its size, which must be what it was when the log was listed."""
    with _opened(stretch.segment, stretch.segment.path) as (file, size):
        stretch.segment.check(size)
        yield file, size


@contextlib.contextmanager
def _opened(segment: Segment, path: str) -> Iterator[tuple[OpenFile, int]]:
    try:
        file = segment.place.open(path)
    except FileNotFoundError:
        raise LogChanged(f"{path}: is gone: the log changed while it was read") from None
    except OSError as error:
        raise BadSource(f"{path}: {error.strerror or error}") from None
    with file:
        try:
            yield file, file.seek(0, os.SEEK_END)
        except OSError as error:
            raise BadSource(f"{path}: {error.strerror or error}") from None


def raise_within(stretch: Stretch) -> OnDamage:
    """Damage in a stretch is raised, told from its file."""

    def refuse(damage: CorruptLog) -> None:
        raise damage.within(stretch.segment.path)

    return refuse


class _Reader:
    """What is kept from one stretch to the next: the texts of keys, and which producers hang."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._schema = pa.schema([arrow_schema_of(request.table).field(name) for name in request.columns])
        self._keys = KeyColumns(KeyTable())
        self._fates: dict[int, Fates] = {}

    def stretch(self, stretch: Stretch, file: OpenFile, size: int) -> Iterator[pa.RecordBatch]:
        damaged: list[CorruptLog] = []
        on_damage = raise_within(stretch) if self._request.fail_fast else damaged.append
        behind = _markers_behind(stretch, file, size)
        for position, columns in stretch_columns(file, size, stretch.start, stretch.end, self._key_table, on_damage):
            if self._request.table == "quarantine":
                yield self._from_rows(quarantine_row(damage, stretch, file, size) for damage in damaged)
                damaged.clear()
            else:
                yield self._batch(stretch, position, columns, behind)

    def _key_table(self) -> KeyTable:
        if self._keys.keys.size > _MOST_KEYS:
            self._keys = KeyColumns(KeyTable())
        return self._keys.keys

    def _batch(
        self, stretch: Stretch, position: int, columns: Columns, behind: Callable[[int], Iterator[Marker]]
    ) -> pa.RecordBatch:
        table, partition = self._request.table, stretch.partition
        if table == "offset_commits":
            rows = np.flatnonzero(self._wanted(columns, columns.of_kind(OFFSET_KIND)))
            fates = self._fates.setdefault(stretch.log, Fates())
            commits = Commits(columns, rows, partition, self._keys, lambda: fates.decide(columns, position, behind))
            return commits.batch(self._request.columns).cast(self._schema)
        if table in GROUP_TABLES:
            rows = np.flatnonzero(self._wanted(columns, columns.of_kind(GROUP_KIND)))
            return self._from_rows(found for row in rows for found in rows_of(table, columns, int(row), partition))
        kept = columns.chosen(self._wanted(columns, np.ones(len(columns), np.bool_)))
        whole = to_arrow(kept, partition, self._keys).select(self._request.columns)
        return next(iter(whole.combine_chunks().to_batches()), self._from_rows(()))

    def _wanted(self, columns: Columns, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of the chosen rows that may be asked for."""
        request = self._request
        if request.starting is not None:
            chosen &= columns.timestamps >= request.starting
        if request.ending is not None:
            chosen &= columns.timestamps <= request.ending
        if request.groups is not None:
            chosen &= _of_keys(columns, self._keys.of_groups(request.groups))
        if request.topics is not None:
            chosen &= _of_keys(columns, self._keys.of_topics(request.topics))
        return chosen

    def _from_rows(self, rows: Iterable[dict[str, object]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(rows), schema=self._schema)


def _of_keys(columns: Columns, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    has_key = columns.key_ids != NO_KEY
    found: NDArray[np.bool_] = has_key.copy()
    found[has_key] = wanted[columns.key_ids[has_key]]
    return found


def _markers_behind(stretch: Stretch, file: OpenFile, size: int) -> Callable[[int], Iterator[Marker]]:
    """The markers from a byte of a stretch's file on, to the end that its log had when it was listed."""

    def behind(position: int) -> Iterator[Marker]:
        yield from markers(file, size, position, _listed_end(stretch, stretch.segment.path, size))
        for path in stretch.following():
            with _opened(stretch.segment, path) as (next_file, next_size):
                yield from markers(next_file, next_size, 0, _listed_end(stretch, path, next_size))

    return behind


def _listed_end(stretch: Stretch, path: str, size: int) -> int:
    return min(size, stretch.last.size) if path == stretch.last.path else size
