"""Who owns a store: one broker at a time, for as long as he says so again before his time is over.

Others wait until it is. Whoever takes over raises the epochs of all partitions in the same transaction, so from then on
nothing of his predecessor's is taken any more, however sure that one is of himself.

A broker that could not say so in time, because the database did not answer, has not lost anything as long as nobody
else has taken over: it may go on as soon as it has said so again. How often he has said so is counted, so he notices if
the database was set back to an earlier state.
"""

import logging
import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple, TypeVar
from uuid import UUID, uuid4

from psycopg import Connection

from kohort.errors import StorageFailed
from kohort.store.database import Database, StoreUnavailable

T = TypeVar("T")

logger = logging.getLogger(__name__)

_BEATS_A_LEASE = 5
_LOOK_S = 0.1
"""How often one who waits looks whether the store is free."""


class Standing(Enum):
    """What a broker may believe of itself."""

    OWNER = auto()
    UNSURE = auto()
    """Its time is over, and nobody has answered whether somebody else has taken over."""


class Holder(NamedTuple):
    """Who has the store."""

    broker_id: int
    seconds_left: float


class Lease:
    """One broker's hold on a store."""

    def __init__(self, database: Database, broker_id: int, lease_ms: int) -> None:
        self._database = database
        self._broker_id = broker_id
        self._lease_s = lease_ms / 1000
        self.life: UUID = uuid4()
        """A broker that comes back under the same id is not the one that went."""
        self._beats = 0
        self._until = 0.0
        self._standing = Standing.UNSURE
        self.look_again: Callable[[], None] = _no_look
        """Whether all is as it was, when the database was away for a while; `StorageFailed` if not."""
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> Holder | None:
        """Take over if the store is free; else tell who has it."""
        asked = time.monotonic()
        holder = self._database.run(_holder)
        if holder is None:
            holder = self._database.run(self._take)
        if holder is None:
            self._note(asked)
            self._standing = Standing.OWNER
        return holder

    def _take(self, connection: Connection) -> Holder | None:
        """It is locked first, which waits for whatever its last owner has begun (`own`)."""
        with connection.transaction():
            connection.execute("SELECT FROM kohort.store FOR UPDATE")
            holder = _holder(connection)
            if holder is None:
                connection.execute(
                    "UPDATE kohort.store SET owner = %s, broker_id = %s, beats = 0, "
                    "lease_until = clock_timestamp() + %s * interval '1 second'",
                    (self.life, self._broker_id, self._lease_s),
                )
                connection.execute("UPDATE kohort.partitions SET epoch = epoch + 1 WHERE NOT is_doomed")
        return holder

    def _note(self, asked: float) -> None:
        """The lease counts from when it was asked for, and ends here before it does for others: by as much as it may
        take to notice."""
        self._until = asked + self._lease_s - self._database.patience_s

    def wait(self, told: Callable[[Holder], None], stopped: threading.Event) -> bool:
        """Take over as soon as the store is free. `told` hears once who has it; False if it was stopped before."""
        is_told = False
        while not stopped.is_set():
            try:
                holder = self.take()
            except StoreUnavailable as failure:
                logger.warning("the store is waited for: %s", failure)
            else:
                if holder is None:
                    return True
                if not is_told:
                    is_told = True
                    told(holder)
            stopped.wait(_LOOK_S)
        return False

    def keep(self, on_change: Callable[[Standing], None], on_loss: Callable[[StorageFailed], None]) -> None:
        """Renew it from now on, in a thread, which tells when it is unsure, and when it is lost for good."""
        self._thread = threading.Thread(target=self._live, args=(on_change, on_loss), name="kohort-lease", daemon=True)
        self._thread.start()

    def _live(self, on_change: Callable[[Standing], None], on_loss: Callable[[StorageFailed], None]) -> None:
        pause_s, was_away = self._lease_s / _BEATS_A_LEASE, False
        while not self._stopped.wait(max(0.0, min(pause_s, self._until - time.monotonic()))):
            try:
                self._renew()
                if was_away:
                    self.look_again()
                was_away = False
            except StoreUnavailable as failure:
                logger.warning("the store cannot be reached: %s", failure)
                was_away = True
                self._stopped.wait(_LOOK_S)
            except StorageFailed as failure:
                on_loss(failure)
                return
            standing = Standing.OWNER if time.monotonic() < self._until else Standing.UNSURE
            if standing is not self._standing:
                self._standing = standing
                on_change(standing)

    def _renew(self) -> None:
        asked = time.monotonic()
        self._beats = self._database.run(self._beat)
        self._note(asked)

    def _beat(self, connection: Connection) -> int:
        """An earlier try may have gone through although nobody heard of it."""
        row = connection.execute(
            "UPDATE kohort.store SET beats = beats + 1, lease_until = clock_timestamp() + %s * interval '1 second' "
            "WHERE owner = %s AND beats BETWEEN %s AND %s RETURNING beats",
            (self._lease_s, self.life, self._beats, self._beats + 1),
        ).fetchone()
        if row is not None:
            return int(row[0])
        raise self.loss(connection)

    def loss(self, connection: Connection) -> StorageFailed:
        """Why this broker does not own the store any more."""
        row = connection.execute("SELECT owner, broker_id, beats FROM kohort.store").fetchone()
        if row is not None and row[0] == self.life and row[2] < self._beats:
            return self._failure("was set back to an earlier state: what was acknowledged since may not be there")
        if row is None or row[0] is None:
            return self._failure("does not know this broker any more: it was set back to an earlier state, or cleared")
        return self._failure(f"was taken over by broker {row[1]}")

    def _failure(self, reason: str) -> StorageFailed:
        return StorageFailed(f"{self._database.place} {reason}")

    def own(self, database: Database, work: Callable[[Connection], T]) -> T:
        """Do something in a transaction that only the owner may do. The lease can be renewed meanwhile, not taken."""

        def guarded(connection: Connection) -> T:
            with connection.transaction():
                is_owner = connection.execute("SELECT FROM kohort.store WHERE owner = %s FOR KEY SHARE", (self.life,))
                if is_owner.rowcount != 1:
                    raise self.loss(connection)
                return work(connection)

        return database.run(guarded)

    def release(self) -> None:
        """Let go of it: whoever waits need not wait for the end of its time."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self._database.run(
                lambda connection: connection.execute(
                    "UPDATE kohort.store SET owner = NULL, lease_until = '-infinity' WHERE owner = %s", (self.life,)
                )
            )
        except StoreUnavailable as failure:
            logger.warning("the store keeps this broker's lease until it ends: %s", failure)


def _no_look() -> None:
    """There is nothing that could be another than before."""


def _holder(connection: Connection) -> Holder | None:
    row = connection.execute(
        "SELECT broker_id, extract(epoch FROM lease_until - clock_timestamp())::float8 FROM kohort.store "
        "WHERE owner IS NOT NULL AND lease_until >= clock_timestamp()"
    ).fetchone()
    return None if row is None else Holder(*row)
