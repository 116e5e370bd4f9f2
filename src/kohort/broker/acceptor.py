"""Takes connections from the system: as many and as fast as the limits allow, and each with a place among the others.

Nothing is set aside for a connection, neither a protocol nor TLS, before it has that place. Whoever has to wait does so
in the system's queue.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

from kohort.broker.security.connection_limits import Admission, ConnectionLimits
from kohort.broker.security.listeners import Address
from kohort.broker.security.tls import Tls

logger = logging.getLogger(__name__)

_BACKLOG = 4096
_AT_A_TIME = 64
"""So many are accepted before those that are there already have their turn."""
_NOT_HERE = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""A host may have addresses that this machine has not."""
_OUT_OF_MEANS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_LONGEST_PAUSE_S = 1.0
_PATIENCE_S = 5.0
"""How long connections may take to end at the end."""
_GOODBYE_S = 5.0
"""How long a client may take to say that it has heard the end of TLS."""

MakeProtocol = Callable[[Admission], asyncio.Protocol]


class Acceptor:
    """One address that is listened on."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limits: ConnectionLimits, make_protocol: MakeProtocol, tls: Tls | None
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._make_protocol = make_protocol
        self._tls = tls
        self._sockets: list[socket.socket] = []
        self._welcomes: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    def listen(self, address: Address) -> int:
        """Returns the port, which the system chooses if it is 0."""
        self._sockets = listening_sockets(address)
        self._limits.on_room.append(self._on_room)
        self._resume()
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        """No new connections; whoever is not through the door yet stays outside."""
        self._stop_listening()
        if self._on_room in self._limits.on_room:
            self._limits.on_room.remove(self._on_room)
        for listening in self._sockets:
            listening.close()
        self._sockets.clear()
        for welcome in self._welcomes:
            welcome.cancel()

    async def wait_closed(self) -> None:
        """Until all that were accepted have ended, which they are told elsewhere, or for a while."""
        if not self._limits.total:
            return
        over: asyncio.Future[None] = self._loop.create_future()

        def look() -> None:
            if not self._limits.total and not over.done():
                over.set_result(None)

        self._limits.on_room.append(look)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over, _PATIENCE_S)
        finally:
            self._limits.on_room.remove(look)

    def _resume(self) -> None:
        self._pause = None
        for listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _on_room(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._resume()

    def _wait(self, seconds: float) -> None:
        """Accept nobody for so long, or until there is room. Now and then look whether the limits are others now."""
        self._stop_listening()
        self._pause = self._loop.call_later(min(seconds, _LONGEST_PAUSE_S), self._resume)

    def _stop_listening(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_A_TIME):
            if wait_s := self._limits.wait_s():
                self._wait(wait_s)
                return
            try:
                client, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_MEANS:
                    raise
                logger.error("no connection can be accepted for a while: %s", error)
                self._wait(_LONGEST_PAUSE_S)
                return
            admission = self._limits.admit(address[0])
            if admission is None:
                logger.info("a connection from %s is refused: it has as many as it may", address[0])
                client.close()
                continue
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._welcome(client, admission)

    def _welcome(self, client: socket.socket, admission: Admission) -> None:
        welcome = self._loop.create_task(self._connect(client, admission))
        self._welcomes.add(welcome)
        welcome.add_done_callback(self._welcomes.discard)

        def give_up(reason: str) -> bool:
            logger.info("a connection from %s is closed: %s", admission.address, reason)
            return welcome.cancel()

        admission.give_up = give_up

    async def _connect(self, client: socket.socket, admission: Admission) -> None:
        """Each connection begins with the certificates of its time. Who knows what happens on the way through TLS: the
        place is free again if it ends there."""
        tls: dict[str, Any] = {}
        if self._tls is not None:
            within_s = self._limits.setup_s
            tls = {"ssl": self._tls.context, "ssl_handshake_timeout": within_s, "ssl_shutdown_timeout": _GOODBYE_S}
        is_through = False
        try:
            await self._loop.connect_accepted_socket(lambda: self._make_protocol(admission), client, **tls)
            is_through = True
        except OSError as error:  # what is wrong with TLS is one too
            reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
            logger.info("connection from /%s is closed: no TLS: %s", admission.address, reason or type(error).__name__)
        finally:
            if not is_through:
                admission.release()
                client.close()


def listening_sockets(address: Address) -> list[socket.socket]:
    """One for each address that the host has, all with the same port; `OSError` if there is none."""
    found: list[socket.socket] = []
    port, failure = address.port, OSError(errno.EADDRNOTAVAIL, f"no address for {address}")
    infos = socket.getaddrinfo(address.host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, _, _, _, place in dict.fromkeys(infos):
            try:
                one = socket.create_server((place[0], port, *place[2:]), family=family, backlog=_BACKLOG)
            except OSError as error:
                failure = OSError(error.errno, f"{error.strerror}: {address}")
                if error.errno in _NOT_HERE:
                    continue
                raise failure from None
            one.setblocking(False)
            found.append(one)
            port = one.getsockname()[1]
    except OSError:
        for one in found:
            one.close()
        raise
    if not found:
        raise failure
    return found
