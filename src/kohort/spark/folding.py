"""The replay in pieces, as Spark's tasks do it: fold stretches of log, merge what was folded.

Pieces travel between the stages as rows of the table `folded`. Nothing here needs Spark.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from kohort.errors import CorruptLog
from kohort.log.place import OpenFile
from kohort.log.source import OnDamage
from kohort.log.stretch import stretch_columns
from kohort.records import kernels
from kohort.records.columns import Columns
from kohort.records.key_table import KeyTable
from kohort.records.piece_bytes import piece_from_bytes, piece_to_bytes
from kohort.records.replay import Piece, Rule
from kohort.spark.inputs import Stretch
from kohort.spark.quarantine import affected_records
from kohort.spark.reading import open_stretch, raise_within
from kohort.spark.request import Request
from kohort.spark.schema import arrow_schema_of

FOLDED = arrow_schema_of("folded")

_NO_TIME = -(1 << 63)


class Folded(NamedTuple):
    """A piece of one log's replay and its place; `ended` says that the time up to which to replay was reached."""

    log: int
    partition: int
    place: int
    ended: bool
    next_offset: int
    last_timestamp: int
    records: int
    damaged: int
    piece: bytes


def fold(stretches: Iterable[Stretch], request: Request, place: int) -> Iterator[Folded]:
    """Fold the stretches of one task, log by log, into a piece each."""
    folding: _Folding | None = None
    for stretch in stretches:
        if folding is None or folding.log != stretch.log:
            if folding is not None:
                yield folding.folded(place)
            folding = _Folding(stretch, request)
        folding.append(stretch)
    if folding is not None:
        yield folding.folded(place)


class _Folding:
    """One log's stretches, folded in order."""

    def __init__(self, first: Stretch, request: Request) -> None:
        self.log, self._partition, self._request = first.log, first.partition, request
        self._since = request.since.get(first.partition, 0)
        self._until = None if request.until is None else request.until.get(first.partition, 0)
        self._piece = Piece(Rule(request.rule))
        self._ended = False
        self._next_offset, self._last_timestamp = self._since, _NO_TIME
        self._records = self._damaged = 0

    def append(self, stretch: Stretch) -> None:
        if self._ended:
            return
        with open_stretch(stretch) as (file, size):
            on_damage = raise_within(stretch) if self._request.fail_fast else self._count(file, size)
            for _, columns in stretch_columns(
                file, size, stretch.start, stretch.end, self._keys, on_damage, is_border=stretch.is_border
            ):
                self._append(columns)
                if self._ended:
                    return

    def folded(self, place: int) -> Folded:
        return Folded(
            self.log,
            self._partition,
            place,
            self._ended,
            self._next_offset,
            self._last_timestamp,
            self._records,
            self._damaged,
            piece_to_bytes(self._piece),
        )

    def _keys(self) -> KeyTable:
        return self._piece.keys

    def _append(self, columns: Columns) -> None:
        if self._request.as_of is not None:
            columns, self._ended = columns.until(self._request.as_of)
        if self._since:
            columns = columns.chosen(columns.offsets >= self._since)
        if self._until is not None:
            columns = columns.chosen(columns.offsets < self._until)
        self._piece.append(columns)
        self._records += len(columns)
        if len(columns.heads):
            ends = columns.heads[:, kernels.BASE_OFFSET] + columns.heads[:, kernels.LAST_OFFSET_DELTA] + 1
            reached = int(ends.max()) if self._until is None else min(int(ends.max()), self._until)
            self._next_offset = max(self._next_offset, reached)
            self._last_timestamp = max(self._last_timestamp, int(columns.heads[:, kernels.MAX_TIMESTAMP].max()))

    def _count(self, file: OpenFile, size: int) -> OnDamage:
        """Damage is passed over and counted; the table `quarantine` tells of it."""

        def count(damage: CorruptLog) -> None:
            self._damaged += affected_records(damage, file, size)

        return count


def merge(pieces: Iterable[Folded]) -> Folded:
    """Pieces of one log that follow each other, merged into the piece of them all.

    They are taken in the order of their places, up to the first that ended: what stands behind it is too late.
    """
    ordered = iter(sorted(pieces, key=lambda folded: folded.place))
    first = last = next(ordered)
    merged = piece_from_bytes(first.piece)
    next_offset, last_timestamp = first.next_offset, first.last_timestamp
    records, damaged = first.records, first.damaged
    while not last.ended and (following := next(ordered, None)):
        merged, last = merged.merge(piece_from_bytes(following.piece)), following
        next_offset = max(next_offset, last.next_offset)
        last_timestamp = max(last_timestamp, last.last_timestamp)
        records, damaged = records + last.records, damaged + last.damaged
    return Folded(
        first.log,
        first.partition,
        first.place,
        last.ended,
        next_offset,
        last_timestamp,
        records,
        damaged,
        piece_to_bytes(merged),
    )


def to_table(folded: Iterable[Folded]) -> pa.Table:
    """Pieces as rows of `FOLDED`."""
    rows = list(folded)
    columns = zip(*rows, strict=True) if rows else ((),) * len(FOLDED)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, FOLDED, strict=True)], schema=FOLDED
    )


def from_table(rows: pa.Table) -> list[Folded]:
    columns = [rows.column(name).to_pylist() for name in Folded._fields]
    return [Folded(*row) for row in zip(*columns, strict=True)]
