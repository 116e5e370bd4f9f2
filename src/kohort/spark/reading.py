"""Stretches of logs as Arrow batches of a table. Nothing here needs Spark."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
from kohort.spark.fates import DecidedRows, Fates
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
    keys = Keys()
    reader = TableReader(request, keys)
    for stretch in stretches:
        for window in windows(stretch, keys, fail_fast=request.fail_fast):
            batch = reader.rows(window)
            for start in range(0, len(batch), BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


@contextlib.contextmanager
def open_segment(segment: Segment) -> Iterator[tuple[OpenFile, int]]:
    """A segment's file and its size now."""
    with _opened(segment, segment.path) as found:
        yield found


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


class Keys:
    """The keys that a task has met, with their texts. Several tables of the same columns share them."""

    def __init__(self) -> None:
        self.columns = KeyColumns(KeyTable())

    def table(self) -> KeyTable:
        if self.columns.keys.size > _MOST_KEYS:
            self.columns = KeyColumns(KeyTable())
        return self.columns.keys


@dataclass(slots=True)
class Window:
    """A window of a stretch: the byte where it begins, its columns, and what was found to be damaged before its end."""

    stretch: Stretch
    file: OpenFile
    size: int
    position: int
    columns: Columns
    damaged: list[CorruptLog]

    def markers(self, position: int) -> Iterator[Marker]:
        """The markers from a byte of the file on, to the end that the log had when it was listed."""
        stretch = self.stretch
        yield from markers(self.file, self.size, position, _listed_end(stretch, stretch.segment.path, self.size))
        for path in stretch.following():
            with _opened(stretch.segment, path) as (next_file, next_size):
                yield from markers(next_file, next_size, 0, _listed_end(stretch, path, next_size))


def windows(stretch: Stretch, keys: Keys, *, fail_fast: bool) -> Iterator[Window]:
    """A stretch, decoded once for whatever tables are wanted of it. A window is good until the next is asked for."""
    with open_stretch(stretch) as (file, size):
        damaged: list[CorruptLog] = []
        on_damage = raise_within(stretch) if fail_fast else damaged.append
        for position, columns in stretch_columns(
            file, size, stretch.start, stretch.end, keys.table, on_damage, is_border=stretch.is_border
        ):
            yield Window(stretch, file, size, position, columns, damaged.copy())
            damaged.clear()


class TableReader:
    """A table's rows, window by window; which producers hang is kept from one window to the next."""

    def __init__(self, request: Request, keys: Keys) -> None:
        self._request, self._keys = request, keys
        self._schema = pa.schema([arrow_schema_of(request.table).field(name) for name in request.columns])
        self._fates: dict[int, Fates] = {}

    def rows(self, window: Window) -> pa.RecordBatch:
        table, columns, partition = self._request.table, window.columns, window.stretch.partition
        start = self._request.since.get(partition, 0)
        end = None if self._request.until is None else self._request.until.get(partition, 0)
        if table == "quarantine":
            found = (quarantine_row(damage, window.stretch, window.file, window.size) for damage in window.damaged)
            return self._from_rows(row for row in found if _is_between(row["offset"], start, end))
        if table == "offset_commits":
            chosen = np.flatnonzero(self._wanted(columns, columns.of_kind(OFFSET_KIND), start, end))
            fates = self._fates.setdefault(window.stretch.log, Fates())

            def decide() -> DecidedRows:
                return fates.decide(columns, window.position, window.markers, end)

            commits = Commits(columns, chosen, partition, self._keys.columns, decide)
            return commits.batch(self._request.columns)
        if table in GROUP_TABLES:
            chosen = np.flatnonzero(self._wanted(columns, columns.of_kind(GROUP_KIND), start, end))
            return self._from_rows(found for row in chosen for found in rows_of(table, columns, int(row), partition))
        kept = columns.chosen(self._wanted(columns, np.ones(len(columns), np.bool_), start, end))
        whole = to_arrow(kept, partition, self._keys.columns).select(self._request.columns)
        return next(iter(whole.combine_chunks().to_batches()), self._from_rows(()))

    def _wanted(self, columns: Columns, chosen: NDArray[np.bool_], start: int, end: int | None) -> NDArray[np.bool_]:
        """Those of the chosen rows that may be asked for."""
        request = self._request
        if start:
            chosen &= columns.offsets >= start
        if end is not None:
            chosen &= columns.offsets < end
        if request.starting is not None:
            chosen &= columns.timestamps >= request.starting
        if request.ending is not None:
            chosen &= columns.timestamps <= request.ending
        if request.groups is not None:
            chosen &= _of_keys(columns, self._keys.columns.of_groups(request.groups))
        if request.topics is not None:
            chosen &= _of_keys(columns, self._keys.columns.of_topics(request.topics))
        return chosen

    def _from_rows(self, rows: Iterable[dict[str, object]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(rows), schema=self._schema)


def _of_keys(columns: Columns, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    has_key = columns.key_ids != NO_KEY
    found: NDArray[np.bool_] = has_key.copy()
    found[has_key] = wanted[columns.key_ids[has_key]]
    return found


def _is_between(offset: object, start: int, end: int | None) -> bool:
    """Whether damage counts that may stand outside of what is wanted of a log: what has no offset does."""
    return not isinstance(offset, int) or (offset >= start and (end is None or offset < end))


def _listed_end(stretch: Stretch, path: str, size: int) -> int:
    is_last = os.path.basename(path) == os.path.basename(stretch.last.path)
    return min(size, stretch.last.size) if is_last and not stretch.last.is_fetched else size
