"""A broker in a thread of the test's own process."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig
from kohort.clock import Clock
from kohort.errors import StorageFailed
from kohort.log.files import Files
from kohort.testing.controlled import ControlledBroker
from kohort.testing.faults import Faults
from kohort.testing.ports import Ports
from kohort.testing.refusals import BrokerFailed, NotPossible

if TYPE_CHECKING:
    from kohort.broker.http.port import HttpPort

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long something may take that is a matter of milliseconds."""


class InProcess:
    """One life of a broker, from its start to its end."""

    def __init__(self, config: BrokerConfig, ports: Ports, files: Files, clock: Clock, faults: Faults) -> None:
        self._config = config
        self._ports = ports
        self._files = files
        self._clock = clock
        self._faults = faults
        self._ready: Future[Ports] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._broker: ControlledBroker | None = None
        self._end: asyncio.Future[bool] | None = None
        self._errors: list[str] = []
        self._thread = threading.Thread(target=self._run, name="kohort-broker", daemon=True)

    def start(self) -> Ports:
        """Returns the ports when clients can connect to them."""
        self._thread.start()
        return self._ready.result(PATIENCE_S)

    def finish(self, *, cleanly: bool) -> None:
        """`BrokerFailed` if something went wrong that nobody heard of yet."""
        if self._loop is not None and self._end is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                self._loop.call_soon_threadsafe(self._set_end, cleanly)
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            raise BrokerFailed(f"the broker did not end within {PATIENCE_S} s")
        if self._errors:
            raise BrokerFailed("; ".join(self._errors))

    def call(self, action: Callable[[ControlledBroker], T]) -> T:
        """Do something with the broker in its own thread."""
        loop, broker = self._loop, self._broker
        if loop is None or broker is None or not self._thread.is_alive():
            raise NotPossible("the broker is not running")
        if threading.current_thread() is self._thread:
            return action(broker)
        told: Future[T] = Future()

        def act() -> None:
            try:
                told.set_result(action(broker))
            except BaseException as error:  # noqa: BLE001 - whoever called hears of it, whatever it is
                told.set_exception(error)

        loop.call_soon_threadsafe(act)
        return told.result(PATIENCE_S)

    # In the broker's thread

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            try:
                runner.run(self._serve())
            except BaseException as error:  # noqa: BLE001 - whoever waits hears of it, whatever it is
                if self._ready.done():
                    self._errors.append(f"{type(error).__name__}: {error}")
                else:
                    self._ready.set_exception(error)

    async def _serve(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._note)
        self._end = loop.create_future()
        broker = ControlledBroker(self._config, self._files, self._clock, loop, on_failure=self._fail)
        server = Server(broker, loop)
        self._broker = broker  # before anybody can connect: what was ordered holds from the first request on
        self._faults.attach(server)
        http = None if self._ports.http is None else _http_port(server)
        try:
            listeners = await server.listen()
            http_port = None if http is None else await http.listen(self._config.host, self._ports.http or 0)
        except OSError:
            self._faults.detach()
            broker.stop()
            await server.close()
            raise
        port = listeners[0].address.port
        broker.start(port)
        self._ready.set_result(Ports(port, http_port, ",".join(map(str, listeners))))
        is_clean = await self._end
        self._faults.detach()
        if http is not None:
            await http.close()
        if is_clean:
            broker.stop()
        async with asyncio.timeout(PATIENCE_S / 2):
            await server.close()
        if not is_clean:
            broker.crash()

    def _set_end(self, is_clean: bool) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(is_clean)

    def _fail(self, failure: StorageFailed) -> None:
        self._errors.append(str(failure))

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._errors.append(f"{context.get('message')}: {error!r}")


def _http_port(server: Server) -> "HttpPort":
    from kohort.broker.http.port import HttpPort  # not needed by a broker without it, and large

    return HttpPort(server)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
