"""A whole broker behind a real socket, in a thread of its own, for as long as a test needs it."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kohort.broker.broker import Broker
from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig, with_settings
from kohort.clock import Clock, SystemClock
from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.log.files import Files, RealFiles
from kohort.log.simulated_files import SimulatedFiles
from kohort.store.copying import CopyFiles
from tests.broker.wire_client import WireClient
from tests.store.everywhere import store_for

T = TypeVar("T")

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Running:
    """A broker that serves."""

    broker: Broker
    server: Server
    loop: asyncio.AbstractEventLoop
    port: int
    failures: list[StorageFailed]
    """What the broker's disk did to it."""
    unhandled: list[dict[str, object]]
    """Errors that nobody in the broker's thread has handled; there should be none."""

    def port_of(self, listener: str) -> int:
        """The port of one of several listeners."""
        return {entrance.listener.name: entrance.listener.address.port for entrance in self.server.entrances}[listener]

    @property
    def principals(self) -> list[str]:
        """Who is connected."""
        return self.on_loop(lambda: sorted(str(connection.peer.principal) for connection in self.server.connections))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def client(self, *, client_id: str | None = "wire-client") -> WireClient:
        return WireClient(self.port, client_id=client_id)

    def on_loop(self, call: Callable[[], T]) -> T:
        """Call something of the broker where it may be called: in its own thread."""
        told: Future[T] = Future()

        def run() -> None:
            try:
                told.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the test hears of it, whatever it is
                told.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return told.result(_PATIENCE_S)


@contextmanager
def running(
    path: Path | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    prepare: Callable[[Server], None] = lambda _: None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> Iterator[Running]:
    """A broker on a directory, or in memory, with these settings under Kafka's names; stopped cleanly at the end.

    An error that nobody handled in the broker's thread fails the test.
    """
    store = store_for(path) if files is None else None
    if files is None:
        files = SimulatedFiles() if path is None else RealFiles()
    if store is not None:
        files, path = CopyFiles(), path or Path("/store")
    data = "/memory" if path is None else str(path)
    flush_mode = FlushMode.OS if path is None else FlushMode.ALWAYS
    config = BrokerConfig(port=0, data=data, log_flush_mode=flush_mode)
    config = with_settings(config, {"group.initial.rebalance.delay.ms": "0", **(settings or {})})
    loop = new_loop()
    unhandled: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    failures: list[StorageFailed] = []
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(loop.close)
        broker = Broker(config, files, clock or SystemClock(), loop, on_failure=failures.append, storage=store)
        server = Server(broker, loop)
        prepare(server)
        listeners = loop.run_until_complete(server.listen())
        on_failure.pop_all()
    port = listeners[0].address.port
    broker.start(port)
    thread = threading.Thread(target=loop.run_forever, name="broker")
    thread.start()
    try:
        yield Running(broker, server, loop, port, failures, unhandled)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PATIENCE_S)
        broker.stop()
        loop.run_until_complete(server.close())
        loop.close()
        if store is not None:
            store.close()
    assert not unhandled, unhandled
