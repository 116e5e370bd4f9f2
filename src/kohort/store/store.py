"""A store as a broker comes to it: connects, waits until it is free, and then has everything in it."""

import contextlib
import logging
import tempfile
import threading
from collections.abc import Callable

from kohort.clock import Clock
from kohort.config import LogConfig
from kohort.errors import StorageFailed
from kohort.log.documents import Documents
from kohort.store import schema
from kohort.store.database import Database
from kohort.store.directory import StoreDirectory
from kohort.store.documents import StoreDocuments
from kohort.store.keeper import StoreKeeper
from kohort.store.lease import Holder, Lease, Standing

logger = logging.getLogger(__name__)

_HOUSEKEEPING_S = 600.0
"""What nobody waits for may take long."""


class Store:
    """One broker's way to it. A `Storage` for the broker as soon as the store is its own."""

    def __init__(self, url: str, *, broker_id: int, lease_ms: int) -> None:
        """`StorageFailed` if it cannot be reached, or is none of ours."""
        lease_s = lease_ms / 1000
        self._renewals = Database(url, patience_s=lease_s / 5)
        self._requests = Database(url, patience_s=lease_s)
        self._appends = Database(url, patience_s=lease_s)
        self._housekeeping = Database(url, patience_s=_HOUSEKEEPING_S)
        self.place = self._requests.place
        self._lease = Lease(self._renewals, broker_id, lease_ms)
        self._keeper = StoreKeeper(self._appends, self._housekeeping, self._lease)
        self._lease.look_again = self._keeper.check
        self._stopped = threading.Event()
        self.documents: Documents = StoreDocuments(self._requests, self._lease)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self._requests.close)
            self._requests.run(schema.prepare)
            on_failure.pop_all()

    def wait_until_free(self, told: Callable[[Holder], None]) -> bool:
        """Take it over. `told` hears once who has it, if that is somebody else; False if it was stopped before."""
        return self._lease.wait(told, self._stopped)

    def keep(self, on_change: Callable[[Standing], None], on_loss: Callable[[StorageFailed], None]) -> None:
        """Stay the owner: see `Lease.keep`."""
        self._lease.keep(on_change, on_loss)

    def open_directory(self, clock: Clock, config_of: Callable[[str], LogConfig]) -> StoreDirectory:
        """With a copy of everything, in a directory that is gone at the end."""
        path = tempfile.mkdtemp(prefix="kohort-copy-")
        return StoreDirectory(self._housekeeping, self._keeper, self._lease, path, clock, config_of)

    def stop_waiting(self) -> None:
        """Whoever waits for the store waits no longer. In any thread."""
        self._stopped.set()

    def hurry(self) -> None:
        """Nobody waits for a database that does not answer. In any thread."""
        self._keeper.hurry()

    def close(self) -> None:
        """Let go of it; everything was written."""
        self._lease.release()
        for database in (self._renewals, self._requests, self._appends, self._housekeeping):
            database.close()
