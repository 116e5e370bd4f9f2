"""A connection to the database: made when it is needed, made anew when it was lost, and what its errors mean here."""

import threading
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kohort.errors import StorageFailed

T = TypeVar("T")

_PASSING = ("08", "40", "53", "55P03", "57", "25006")
"""States of SQL, by their beginnings, that say nothing against what was asked: connections that break, transactions
that were in each other's way, no room, a server that stops or is read by others only."""


class StoreUnavailable(StorageFailed):
    """The database does not answer, or cannot now. Whether it has done what it was asked for is not known."""


class Database:
    """One connection, used by one thread at a time."""

    def __init__(self, url: str, *, patience_s: float) -> None:
        """What takes longer than `patience_s` counts as lost."""
        self.place = told(url)
        self.patience_s = patience_s
        ms = round(patience_s * 1000)
        try:
            self._conninfo = make_conninfo(
                url,
                connect_timeout=max(2, round(patience_s)),
                tcp_user_timeout=ms,
                keepalives_idle=max(1, round(patience_s / 2)),
                keepalives_interval=1,
                keepalives_count=3,
                application_name="kohort",
                options=f"-c statement_timeout={ms} -c idle_in_transaction_session_timeout={ms}",
            )
        except psycopg.Error as error:
            raise StorageFailed(f"{self.place}: {_line(error)}") from error
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do something with a connection on which every statement stands for itself.

        `StoreUnavailable` if it may be tried again, any other `StorageFailed` if not.
        """
        with self._lock:
            try:
                return work(self._opened())
            except psycopg.Error as error:
                state = error.sqlstate
                is_passing = state.startswith(_PASSING) if state else isinstance(error, psycopg.OperationalError)
                if self._connection is not None and self._connection.closed:
                    self._connection = None
                    is_passing = True
                failure = StoreUnavailable if is_passing else StorageFailed
                raise failure(f"{self.place}: {_line(error)}") from error

    def _opened(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._conninfo, autocommit=True)
            commits = self._connection.execute("SHOW synchronous_commit").fetchone()
            if commits in (
                ("off",),
                ("local",),
            ):  # what is acknowledged is on the disk, of standbys too if there are any
                self._connection.execute("SET synchronous_commit = on")
        return self._connection

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def told(url: str) -> str:
    """The address without the password and other settings."""
    try:
        known = conninfo_to_dict(url)
    except psycopg.Error:
        return "the store"
    host, port = known.get("host") or "localhost", known.get("port") or 5432
    return f"postgresql://{host}:{port}/{known.get('dbname') or ''}"


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
