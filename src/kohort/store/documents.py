"""The small texts of a broker, as rows."""

from kohort.store.database import Database
from kohort.store.lease import Lease


class StoreDocuments:
    """`Documents` in a database. Only the store's owner writes them."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    def place(self, name: str) -> str:
        return f"{self._database.place}: {name}"

    def read(self, name: str) -> bytes | None:
        row = self._database.run(
            lambda connection: connection.execute(
                "SELECT data FROM kohort.documents WHERE name = %s", (name,), binary=True
            ).fetchone()
        )
        return None if row is None else bytes(row[0])

    def write(self, name: str, data: bytes) -> None:
        self._lease.own(
            self._database,
            lambda connection: connection.execute(
                "INSERT INTO kohort.documents (name, data) VALUES (%s, %s) "
                "ON CONFLICT (name) DO UPDATE SET data = excluded.data",
                (name, data),
            ),
        )
