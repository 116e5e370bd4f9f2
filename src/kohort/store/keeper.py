"""What is appended to logs goes to the database: all that waits, of all logs, in one statement.

While a statement is under way the next batches gather; so under a light load it carries one, under a heavy one
hundreds. It moves the ends of the partitions, if their epochs and ends are those that this broker knows, and has a row
for each batch. If the connection breaks nobody knows whether it has gone through: it is asked again until there is an
answer, and partitions that are already where they should be were moved by the first time.
"""

import logging
import struct
import threading
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from psycopg import Connection

from kohort.errors import IllegalState, StorageFailed
from kohort.log.failures import storage_errors
from kohort.log.names import TopicPartition
from kohort.log.partition import Log
from kohort.log.segment import Segment
from kohort.store.database import Database, StoreUnavailable
from kohort.store.lease import Lease

logger = logging.getLogger(__name__)

_BASE_AND_LENGTH = struct.Struct(">qi")
_LAST_DELTA_AT = 23
_LAST_DELTA = struct.Struct(">i")
_PAUSE_S = 0.1
_BYTES_TOGETHER = 64 * 1024 * 1024
"""A value may have a GiB in PostgreSQL, and everything of one statement is in memory at once."""
_ROWS_TOGETHER = 100

_APPEND = """
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%b::int8[], %b::int4[], %b::int8[], %b::int8[]) AS w (id, epoch, begins, ends)
), moved AS (
    UPDATE kohort.partitions p SET end_offset = w.ends FROM wanted w
    WHERE p.id = w.id AND p.epoch = w.epoch AND p.end_offset = w.begins AND NOT p.is_doomed RETURNING p.id
), put AS (
    INSERT INTO kohort.batches (partition_id, base_offset, next_offset, data)
    SELECT b.id, b.base, b.next, b.data
    FROM unnest(%b::int8[], %b::int8[], %b::int8[], %b::bytea[]) AS b (id, base, next, data)
    WHERE b.id IN (SELECT id FROM moved)
)
SELECT id FROM moved
"""

_MOVED_BEFORE = """
SELECT p.id FROM kohort.partitions p
JOIN unnest(%b::int8[], %b::int4[], %b::int8[]) AS w (id, epoch, ends) USING (id)
WHERE p.epoch = w.epoch AND p.end_offset = w.ends
"""


class Row(NamedTuple):
    """A partition as the database knows it."""

    id: int
    epoch: int


class _Append(NamedTuple):
    """What one log has to be brought to the database."""

    log: Log
    row: Row
    begins: int
    ends: int
    batches: Sequence[bytes]


class _Batch(NamedTuple):
    base_offset: int
    next_offset: int
    data: bytes


class StoreKeeper:
    """A `Keeper` that keeps everything in a database."""

    has_originals = True
    is_to_settle = False

    def __init__(self, appends: Database, housekeeping: Database, lease: Lease) -> None:
        self._appends = appends
        self._housekeeping = housekeeping
        self._lease = lease
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._rows: dict[Log, Row] = {}
        self._kept: dict[Log, int] = {}
        """Up to where the database has each log."""
        self._waiting: dict[Log, list[bytes]] = {}
        self._put = 0
        self._synced = 0
        self._is_hurried = threading.Event()

    @property
    def path(self) -> str:
        return self._appends.place

    def adopt(self, log: Log, row: Row) -> None:
        """A log that is in the database up to its end."""
        log.note_durable(log.log_end_offset)
        with self._lock:
            self._rows[log] = row
            self._kept[log] = log.log_end_offset

    def row_of(self, log: Log) -> Row:
        return self._rows[log]

    def put(self, log: Log, batches: bytes) -> None:
        with self._lock:
            self._waiting.setdefault(log, []).append(batches)
            self._put += 1

    def drop(self, logs: Collection[Log]) -> None:
        """These were deleted: what they still wait for need not be kept."""
        with self._lock:
            for log in logs:
                self._waiting.pop(log, None)
                self._rows.pop(log, None)

    def forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        raise IllegalState(f"a log in a store is never cut: {topic_partitions}")

    @property
    def end(self) -> int:
        return self._put

    @property
    def recovery_point(self) -> int:
        return self._synced

    def settle(self) -> None:
        """There is nothing that nobody waits for."""

    def check(self) -> None:
        """`StorageFailed` if the database has less than it has acknowledged: it may have been away, and set back."""
        with self._flushing:
            found: dict[int, int] = dict(
                self._housekeeping.run(
                    lambda connection: connection.execute("SELECT id, end_offset FROM kohort.partitions").fetchall()
                )
            )
            with self._lock:
                behind = [log for log, row in self._rows.items() if found.get(row.id, -1) < self._kept[log]]
        if behind:
            raise StorageFailed(
                f"{self.path} was set back to an earlier state: {behind[0].topic_partition} ended at offset "
                f"{self._kept[behind[0]]}, and is shorter now, or gone"
            )

    def hurry(self) -> None:
        """The broker is about to end: if the database does not answer now, nobody waits for it."""
        self._is_hurried.set()

    def flush(self) -> int:
        with self._flushing:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
                put = self._put
                appends = [
                    _Append(log, self._rows[log], self._kept[log], *_joined(parts))
                    for log, parts in waiting.items()
                    if log in self._rows
                ]
            for group in _grouped(appends):
                self._store(group)
                for append in group:
                    self._kept[append.log] = append.ends
                    append.log.note_durable(append.ends)
            self._synced = put
            return put

    def _store(self, appends: Sequence[_Append]) -> None:
        moved = self._insist(appends)
        refused = [append for append in appends if append.row.id not in moved and append.log in self._rows]
        if refused:
            raise self._appends.run(lambda connection: self._refusal(connection, refused))

    def _insist(self, appends: Sequence[_Append]) -> set[int]:
        """The partitions that have what they should have."""
        moved: set[int] = set()
        is_again = False
        while True:
            try:
                if is_again:
                    moved = self._appends.run(lambda connection: _moved_before(connection, appends))
                left = [append for append in appends if append.row.id not in moved]
                return moved | self._appends.run(partial(_append, appends=left))
            except StoreUnavailable as failure:
                if self._is_hurried.is_set():
                    raise
                if not is_again:
                    logger.warning("commits wait for the store: %s", failure)
                is_again = True
                self._is_hurried.wait(_PAUSE_S)

    def _refusal(self, connection: Connection, refused: Sequence[_Append]) -> StorageFailed:
        is_owner = connection.execute("SELECT FROM kohort.store WHERE owner = %s", (self._lease.life,)).rowcount
        if not is_owner:
            return self._lease.loss(connection)
        log, row, begins, *_ = refused[0]
        found = connection.execute(
            "SELECT epoch, end_offset FROM kohort.partitions WHERE id = %s", (row.id,)
        ).fetchone()
        return StorageFailed(
            f"{self.path} was set back to an earlier state: {log.topic_partition} ended at offset {begins} in epoch "
            f"{row.epoch}, and is at (epoch, offset) {found} now"
        )

    def replace(self, log: Log, begin: int, end: int, segment: Segment | None) -> None:
        """In one transaction: who reads meanwhile finds what was there, or what is."""
        row = self._rows.get(log)
        if row is None:  # deleted meanwhile
            return
        batches: list[_Batch] = []
        if segment is not None:
            with storage_errors(segment.path):
                batches = list(_batches(segment.file.read_at(0, segment.size)))

        def work(connection: Connection) -> None:
            connection.execute(
                "DELETE FROM kohort.batches WHERE partition_id = %s AND base_offset >= %s AND next_offset <= %s",
                (row.id, begin, end),
            )
            for start in range(0, len(batches), _ROWS_TOGETHER):
                _insert(connection, row.id, batches[start : start + _ROWS_TOGETHER])

        self._lease.own(self._housekeeping, work)

    def note_starts(self, starts: Sequence[tuple[Log, int]]) -> None:
        """Logs begin later than before: what lies below goes. In any thread."""
        moved = [(self._rows[log].id, start) for log, start in starts if log in self._rows]

        def work(connection: Connection) -> None:
            for number, start in moved:
                changed = connection.execute(
                    "UPDATE kohort.partitions SET start_offset = %s WHERE id = %s AND start_offset < %s",
                    (start, number, start),
                )
                if changed.rowcount:
                    connection.execute(
                        "DELETE FROM kohort.batches WHERE partition_id = %s AND next_offset <= %s", (number, start)
                    )

        if moved:
            self._lease.own(self._housekeeping, work)


def _append(connection: Connection, appends: Sequence[_Append]) -> set[int]:
    if not appends:
        return set()
    batches = [(append.row.id, batch) for append in appends for data in append.batches for batch in _batches(data)]
    values = (
        [append.row.id for append in appends],
        [append.row.epoch for append in appends],
        [append.begins for append in appends],
        [append.ends for append in appends],
        [number for number, _ in batches],
        [batch.base_offset for _, batch in batches],
        [batch.next_offset for _, batch in batches],
        [batch.data for _, batch in batches],
    )
    return {row[0] for row in connection.execute(_APPEND, values, prepare=True, binary=True)}


def _moved_before(connection: Connection, appends: Sequence[_Append]) -> set[int]:
    values = (
        [append.row.id for append in appends],
        [append.row.epoch for append in appends],
        [append.ends for append in appends],
    )
    return {row[0] for row in connection.execute(_MOVED_BEFORE, values, binary=True)}


def _insert(connection: Connection, number: int, batches: Sequence[_Batch]) -> None:
    connection.execute(
        "INSERT INTO kohort.batches (partition_id, base_offset, next_offset, data) "
        "SELECT %b, * FROM unnest(%b::int8[], %b::int8[], %b::bytea[])",
        (
            number,
            [batch.base_offset for batch in batches],
            [batch.next_offset for batch in batches],
            [batch.data for batch in batches],
        ),
        binary=True,
    )


def _grouped(appends: Sequence[_Append]) -> Iterator[list[_Append]]:
    group: list[_Append] = []
    size = 0
    for append in appends:
        group.append(append)
        size += sum(map(len, append.batches))
        if size >= _BYTES_TOGETHER:
            yield group
            group, size = [], 0
    if group:
        yield group


def _joined(parts: Sequence[bytes]) -> tuple[int, Sequence[bytes]]:
    """Where the log ends with these, and these."""
    *_, last = _batches(parts[-1])
    return last.next_offset, parts


def _batches(data: bytes) -> Iterator[_Batch]:
    at = 0
    while at < len(data):
        base, length = _BASE_AND_LENGTH.unpack_from(data, at)
        (delta,) = _LAST_DELTA.unpack_from(data, at + _LAST_DELTA_AT)
        end = at + _BASE_AND_LENGTH.size + length
        yield _Batch(base, base + delta + 1, data[at:end])
        at = end
