"""`kohort serve --store`: the broker's way to its database, from the wait for it to the end."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import click
from psycopg import Error
from psycopg.conninfo import conninfo_to_dict

from kohort.broker.server import Server
from kohort.cli.local_values import is_reference, resolved
from kohort.cli.output import one_line
from kohort.errors import KohortError, StorageFailed
from kohort.store.copying import CopyFiles
from kohort.store.lease import Holder, Standing
from kohort.store.store import Store

End = asyncio.Future[StorageFailed | None]
T = TypeVar("T")


def open_store(url: str, *, broker_id: int, lease_ms: int) -> "OwnedStore":
    """A usage error if the address has a password in it, where everybody on this machine could read it."""
    if not is_reference(url):
        try:
            has_secret = "password" in conninfo_to_dict(url)
        except Error as error:
            raise click.UsageError(
                f"--store wants postgresql://USER@HOST:PORT/DATABASE: {one_line(str(error))}"
            ) from None
        if has_secret:
            raise click.UsageError(
                "--store: everybody on this machine can read a password there; put it into PGPASSWORD or ~/.pgpass, or "
                "let ${env:NAME} or ${dir:PATH:NAME} refer to the whole address"
            )
    return OwnedStore(Store(resolved({"--store": url})["--store"], broker_id=broker_id, lease_ms=lease_ms))


class OwnedStore:
    """A store, and what is to be done when it is lost, or may be. For the event loop's thread."""

    def __init__(self, store: Store) -> None:
        self.storage = store
        self.files = CopyFiles()
        self.place = store.place
        self._server: Server | None = None
        self._standing = Standing.OWNER

    async def wait_until_owned(self, end: End) -> bool:
        """Become its owner, and stay it; False if the end came first. `end` hears when it is lost."""
        loop = asyncio.get_running_loop()
        taken: asyncio.Future[bool] = loop.create_future()

        def wait() -> None:
            try:
                is_ours = self.storage.wait_until_free(_tell)
            except KohortError as error:
                loop.call_soon_threadsafe(taken.set_exception, error)
            else:
                loop.call_soon_threadsafe(taken.set_result, is_ours)

        def lose(failure: StorageFailed) -> None:
            if not end.done():
                end.set_result(failure)

        threading.Thread(target=wait, name="kohort-store", daemon=True).start()
        end.add_done_callback(lambda _: self.storage.stop_waiting())
        if not await taken:
            return False
        self.storage.keep(
            lambda standing: _in_loop(loop, self._change, standing), lambda failure: _in_loop(loop, lose, failure)
        )
        return True

    def attach(self, server: Server) -> None:
        """Whom it concerns from now on."""
        self._server = server
        if self._standing is Standing.UNSURE:
            server.isolate()

    def _change(self, standing: Standing) -> None:
        self._standing = standing
        if self._server is not None:
            if standing is Standing.OWNER:
                self._server.resume()
            else:
                self._server.isolate()

    def hurry(self) -> None:
        """The end has come: nobody waits for a database that does not answer."""
        self.storage.hurry()

    def close(self) -> None:
        self.storage.close()


def _tell(holder: Holder) -> None:
    left_s = max(holder.seconds_left, 0)
    click.echo(
        f"kohort: waiting: broker {holder.broker_id} has the store, for {left_s:.1f} s unless it goes on", err=True
    )


def _in_loop(loop: asyncio.AbstractEventLoop, action: Callable[[T], None], told: T) -> None:
    loop.call_soon_threadsafe(action, told)
