"""The mergeable replay: what a broker would know of its groups after loading a log.

Kafka loads a partition from its first byte to its last. Here any stretch of the log is folded into a `Piece` on its
own, and two neighbouring pieces merge into the piece of both: in parallel, in any bracketing, or as the log grows,
always with the result of the serial load.

Why that works. For one key let *t* be the position of its last tombstone. Then the committed value is the one at the
highest position among

    position    all puts behind t                          (what a broker answers while it runs, and what 4.x loads)
    kafka-2.6   plain puts behind t, and puts of a transaction whose commit *marker* stands behind t
                                                           (what brokers up to 3.9 make of their log)

where a transactional put counts once its producer's next marker is a commit. So a piece keeps, per key, t and the best
value so far. Per producer it keeps what is not decided inside of it: the keys touched before its first marker (they
replace what an earlier piece has open), that marker, and the puts still open at its end. Merging decides the left
piece's open puts at the right piece's first markers. Of all other records (groups, members) the last one counts.

A record that cannot be read is no reason to stop: an unreadable key is counted, an unreadable value stands where it
stands, and `finish` lists it instead of giving an older value for the truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kohort.records import fold_kernels, kernels
from kohort.records.batch import CONTROL, NO_TIMESTAMP
from kohort.records.columns import Columns
from kohort.records.control import ControlType
from kohort.records.kernels import Ints, Longs
from kohort.records.key_table import OFFSET_KIND, KeyTable
from kohort.records.values import Values, extended

NOWHERE = -1

Rows = NDArray[np.int64]


class Rule(StrEnum):
    """Whose load to follow where they differ."""

    POSITION = "position"
    KAFKA_2_6 = "kafka-2.6"


@dataclass(slots=True)
class Put:
    """A transactional commit that waits for its marker, and the time of its record."""

    position: int
    value: bytes
    timestamp: int = NO_TIMESTAMP


@dataclass(slots=True)
class Producer:
    """What a piece knows of one producer's transactions."""

    touched: set[int] = field(default_factory=set)
    marker: tuple[ControlType, int] | None = None
    open: dict[int, Put] = field(default_factory=dict)


class Piece:
    """What a stretch of log does to the state before it."""

    def __init__(self, rule: Rule = Rule.POSITION, keys: KeyTable | None = None) -> None:
        self.rule = rule
        self.keys = keys if keys is not None else KeyTable()
        self.records = 0
        self.unreadable_keys = 0
        self.producers: dict[int, Producer] = {}
        self.best: Longs = np.empty(0, np.int64)
        self.removed: Longs = np.empty(0, np.int64)
        self.mentioned: Longs = np.empty(0, np.int64)
        self.values = Values()
        self._last_rows: Longs = np.empty(0, np.int64)

    def append(self, columns: Columns) -> None:
        """Fold the records that follow this piece directly; `columns` must share its key table."""
        if columns.keys is not self.keys:
            raise ValueError("these columns were decoded with another key table")
        canonical, kinds = self.keys.canonical, self.keys.kinds
        self.resize()
        touched = np.empty(min(len(columns), self.keys.size), np.int32)
        transactional_rows = np.empty(len(columns), np.int64)
        count, unreadable, transactional = fold_kernels.fold_rows(
            columns.heads,
            columns.offsets,
            columns.key_ids,
            columns.value_sizes,
            columns.batches,
            canonical,
            kinds,
            self.rule is Rule.POSITION,
            self.best,
            self.removed,
            self.mentioned,
            self._last_rows,
            touched,
            transactional_rows,
        )
        self.records += len(columns)
        self.unreadable_keys += unreadable
        keys = touched[:count].astype(np.int64)
        rows = self._last_rows[keys]
        self._last_rows[keys] = fold_kernels.UNTOUCHED
        self.values.drop(keys[rows == fold_kernels.REMOVED])
        self._keep_values(columns, keys[rows >= 0], rows[rows >= 0])
        if transactional:
            self._end_transactions(columns, canonical, transactional_rows[:transactional])

    def merge(self, right: "Piece") -> "Piece":
        """The piece of both stretches, this one before `right`. This piece is used up; `right` is left as it is."""
        if right.rule is not self.rule:
            raise ValueError(f"a {self.rule} piece cannot take in a {right.rule} one")
        ids = self.keys.intern_table(right.keys)[: len(right.best)]
        ids = self.keys.canonical[ids].astype(np.int64)
        self.resize()
        self.records += right.records
        self.unreadable_keys += right.unreadable_keys
        mentioned = right.mentioned != NOWHERE
        self.mentioned[ids[mentioned]] = right.mentioned[mentioned]
        removed = right.removed > NOWHERE
        self._remove(ids[removed], right.removed[removed])
        standing = np.flatnonzero(right.best > NOWHERE)
        self.best[ids[standing]] = right.best[standing]
        self.values.put_from(ids[standing], right.values, standing)
        self._merge_producers(
            {
                pid: Producer(
                    {int(ids[key]) for key in producer.touched},
                    producer.marker,
                    {int(ids[key]): put for key, put in producer.open.items()},
                )
                for pid, producer in right.producers.items()
            }
        )
        return self

    def resize(self) -> None:
        """Make room for all keys of the table."""
        size = self.keys.size
        self.best = extended(self.best, size, NOWHERE)
        self.removed = extended(self.removed, size, NOWHERE)
        self.mentioned = extended(self.mentioned, size, NOWHERE)
        self._last_rows = extended(self._last_rows, size, fold_kernels.UNTOUCHED)
        self.values.resize(size)

    def _remove(self, keys: Longs, positions: Longs) -> None:
        self.removed[keys] = positions
        self.best[keys] = NOWHERE
        self.values.drop(keys)

    def _keep_values(self, columns: Columns, keys: Longs, rows: Rows) -> None:
        sizes = columns.value_sizes[rows].astype(np.int64)
        self.values.put(keys, columns.data, columns.value_starts[rows], sizes)

    def _end_transactions(self, columns: Columns, canonical: Ints, rows: Rows) -> None:
        """Transactional rows and markers: decide what this stretch decides, keep the rest per producer."""
        events = _Transactions(columns, canonical, rows, self.rule)
        # Where nothing is open and the first marker is known, neither marker nor touched keys can matter any more.
        settled = {pid for pid, producer in self.producers.items() if producer.marker and not producer.open}
        mine: dict[int, Producer] = {}
        for pid, row, control_type in events.first_markers():
            if pid not in settled:
                mine[pid] = Producer(marker=(control_type, int(columns.offsets[row])))
        for pid, row in events.before_first_marker():
            if pid not in settled:
                mine.setdefault(pid, Producer()).touched.add(int(canonical[columns.key_ids[row]]))
        for pid, row in events.undecided():
            key, value = int(canonical[columns.key_ids[row]]), columns.value(row)
            producer = mine.setdefault(pid, Producer())
            if value is not None:
                producer.open[key] = Put(int(columns.offsets[row]), value, int(columns.timestamps[row]))
            elif self.rule is Rule.KAFKA_2_6:
                producer.open.pop(key, None)
        self._accept(columns, canonical, *events.committed(self.rule))
        self._merge_producers(mine)

    def _accept(self, columns: Columns, canonical: Ints, rows: Rows, marker_rows: Rows) -> None:
        """Transactional puts whose commit marker stands in this stretch: the youngest of each key, if it may stand."""
        keys = canonical[columns.key_ids[rows]].astype(np.int64)
        positions = columns.offsets[rows]
        alive = (columns.offsets[marker_rows] if self.rule is Rule.KAFKA_2_6 else positions) > self.removed[keys]
        standing = np.flatnonzero(alive & (positions > self.best[keys]))
        order = standing[np.lexsort((positions[standing], keys[standing]))]
        youngest = np.ones(len(order), np.bool_)
        youngest[:-1] = keys[order][1:] != keys[order][:-1]
        chosen = order[youngest]
        self.best[keys[chosen]] = positions[chosen]
        self._keep_values(columns, keys[chosen], rows[chosen])

    def _merge_producers(self, right: dict[int, Producer]) -> None:
        """Decide what is open here at the first markers on the right, and take over what stays undecided."""
        offers: dict[int, Put] = {}
        for pid, theirs in right.items():
            ours = self.producers.setdefault(pid, Producer())
            still_open = {key: put for key, put in ours.open.items() if key not in theirs.touched}
            if theirs.marker is not None:
                if theirs.marker[0] is ControlType.COMMIT:
                    for key, put in still_open.items():
                        alive = theirs.marker[1] if self.rule is Rule.KAFKA_2_6 else put.position
                        standing = offers[key].position if key in offers else self.best[key]
                        if alive > self.removed[key] and put.position > standing:
                            offers[key] = put
                still_open = {}
            if ours.marker is None:
                ours.touched |= theirs.touched
                ours.marker = theirs.marker
            ours.open = still_open | theirs.open
        for key, put in offers.items():
            self.best[key] = put.position
        self.values.put_all({key: put.value for key, put in offers.items()})

    def pending(self) -> Iterator[tuple[int, int, Put]]:
        """Producer id, key and put of every commit that is still open at the end of this piece."""
        for pid, producer in self.producers.items():
            for key, put in producer.open.items():
                if self.rule is Rule.KAFKA_2_6 or put.position > self.removed[key]:
                    yield pid, key, put

    def standing(self) -> Longs:
        """The keys that have a value at the end of this piece."""
        return np.flatnonzero(self.best > NOWHERE)

    def positions_and_values(self, keys: Longs) -> Iterator[tuple[int, int, bytes]]:
        """Key, position and value of keys that stand."""
        return zip(keys.tolist(), self.best[keys].tolist(), self.values.of(keys), strict=True)

    def gone(self) -> list[int]:
        """The keys whose last record is a tombstone."""
        return np.flatnonzero((self.best == NOWHERE) & (self.removed > NOWHERE)).tolist()

    def mentioned_only(self) -> Iterator[tuple[int, int]]:
        """The offset keys that were given a value once but have none now, and where that was last.

        Those that a coordinator up to 3.9 removed are not among them: with its last offset it forgets a group.
        """
        kinds = self.keys.kinds[: len(self.best)]
        keys = np.flatnonzero((kinds == OFFSET_KIND) & (self.mentioned > NOWHERE) & (self.best == NOWHERE))
        return zip(keys.tolist(), self.mentioned[keys].tolist(), strict=True)


class _Transactions:
    """The transactional rows and the markers of some columns, in the order of producer and log."""

    def __init__(self, columns: Columns, canonical: Ints, rows: Rows, rule: Rule) -> None:
        batches = columns.batches[rows]
        control = columns.heads[batches, kernels.ATTRIBUTES] & CONTROL != 0
        ends = np.ones(len(rows), np.bool_)
        ends[1:] = batches[1:] != batches[:-1]
        if rule is Rule.POSITION:
            # To brokers up to 3.9 any control record ends a transaction, to 4.x only a commit or an abort does.
            ends &= np.isin(columns.heads[batches, kernels.MARKER], list(ControlType))
        rows = rows[~control | ends]
        pids = columns.heads[:, kernels.PRODUCER_ID][columns.batches[rows]]
        order = np.argsort(pids, kind="stable")
        self._rows, self._pids = rows[order], pids[order]
        self._is_marker = columns.heads[columns.batches[self._rows], kernels.ATTRIBUTES] & CONTROL != 0
        self._is_commit = columns.heads[columns.batches[self._rows], kernels.MARKER] == ControlType.COMMIT
        self._has_value = columns.value_sizes[self._rows] >= 0
        self._keys = np.full(len(self._rows), kernels.NO_KEY, np.int32)
        self._keys[~self._is_marker] = canonical[columns.key_ids[self._rows[~self._is_marker]]]
        count = len(self._rows)
        next_marker = np.where(self._is_marker, np.arange(count), count)
        next_marker = np.minimum.accumulate(next_marker[::-1])[::-1] if count else next_marker
        same = np.append(self._pids, np.int64(0))[next_marker] == self._pids
        self._next = np.where(same & (next_marker < count), next_marker, count)

    def first_markers(self) -> Iterator[tuple[int, int, ControlType]]:
        """Where each producer's first marker stands, and what it says; whatever is no commit ends without one."""
        at = np.flatnonzero(self._is_marker)
        first = np.ones(len(at), np.bool_)
        first[1:] = self._pids[at][1:] != self._pids[at][:-1]
        at = at[first]
        for (pid, row), commit in zip(self._pairs(at), self._is_commit[at], strict=True):
            yield pid, row, ControlType.COMMIT if commit else ControlType.ABORT

    def before_first_marker(self) -> Iterator[tuple[int, int]]:
        markers = np.cumsum(self._is_marker)
        new_producer = np.ones(len(self._pids), np.bool_)
        new_producer[1:] = self._pids[1:] != self._pids[:-1]
        before = np.maximum.accumulate(np.where(new_producer, markers - self._is_marker, 0))
        return self._pairs(np.flatnonzero((markers == before) & ~self._is_marker))

    def undecided(self) -> Iterator[tuple[int, int]]:
        return self._pairs(np.flatnonzero(~self._is_marker & (self._next == len(self._rows))))

    def committed(self, rule: Rule) -> tuple[Rows, Rows]:
        """The rows of puts that a marker commits, and the rows of those markers."""
        decided = ~self._is_marker & (self._next < len(self._rows))
        at = np.flatnonzero(decided)
        at = at[self._is_commit[self._next[at]]]
        if rule is Rule.KAFKA_2_6 and not self._has_value[at].all():
            # A tombstone inside a transaction takes back what the same transaction put before it.
            order = np.lexsort((self._keys[at], self._next[at]))
            at = at[order]
            last = np.ones(len(at), np.bool_)
            last[:-1] = (self._keys[at][1:] != self._keys[at][:-1]) | (self._next[at][1:] != self._next[at][:-1])
            at = at[last]
        at = at[self._has_value[at]]
        return self._rows[at], self._rows[self._next[at]]

    def _pairs(self, at: Longs) -> Iterator[tuple[int, int]]:
        return zip(self._pids[at].tolist(), self._rows[at].tolist(), strict=True)
