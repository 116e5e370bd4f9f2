"""The listener: accepts connections and lets go of idle ones."""

import asyncio
import logging

from kohort.broker.api import Api, all_apis
from kohort.broker.authentication import NewAuthenticator
from kohort.broker.broker import Broker
from kohort.broker.connection import Connection
from kohort.broker.traffic import Traffic

logger = logging.getLogger(__name__)


class Server:
    """All connections of one broker."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.loop = loop
        self.apis: dict[int, Api] = all_apis()
        self.traffic = Traffic(self.apis.values())
        self.max_request_bytes = broker.config.socket_request_max_bytes
        self.connections: set[Connection] = set()
        self.new_authenticator: NewAuthenticator | None = None
        """What connections have to say who they are to; None: to nobody."""
        self._to_write: list[Connection] = []
        self._listener: asyncio.Server | None = None
        self._idle_check: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int) -> int:
        """Returns the port, which the system chooses if it is 0."""
        self._listener = await self.loop.create_server(lambda: Connection(self), host, port, backlog=4096)
        self._close_idle()
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """No new connections; those that there are end when what was written is out."""
        if self._idle_check is not None:
            self._idle_check.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.close()
        if self._listener is not None:
            await self._listener.wait_closed()

    def write_soon(self, connection: Connection) -> None:
        """At the end of this turn of the loop the connection's answers are written, together with those of others.

        A client that waits for many answers is woken once then, and not anew for each of them.
        """
        if not self._to_write:
            self.loop.call_soon(self._write_all)
        self._to_write.append(connection)

    def _write_all(self) -> None:
        connections, self._to_write = self._to_write, []
        for connection in connections:
            connection.write_out()

    def _close_idle(self) -> None:
        allowed = self.broker.config.connections_max_idle_ms / 1000
        now = self.loop.time()
        for connection in list(self.connections):
            if now - connection.last_active > allowed:
                connection.close()
        self._idle_check = self.loop.call_later(allowed / 10, self._close_idle)
