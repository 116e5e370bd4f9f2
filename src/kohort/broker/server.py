"""The listeners: accept connections, let go of those that are idle or too slow, look after certificates."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from kohort.broker.api import Api, all_apis
from kohort.broker.broker import Broker
from kohort.broker.connection import Connection
from kohort.broker.entrance import Entrance
from kohort.broker.security.connection_limits import ConnectionLimits
from kohort.broker.security.entrances import Entrances
from kohort.broker.security.listeners import Listener
from kohort.broker.security.request_memory import request_memory
from kohort.broker.security.slow_requests import SlowRequests
from kohort.broker.traffic import Traffic

logger = logging.getLogger(__name__)

_LOOK_S = 10.0
"""How often it is looked whether certificates have changed."""


class Server:
    """All connections of one broker."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.loop = loop
        self.apis: dict[int, Api] = all_apis()
        self.traffic = Traffic(self.apis.values())
        config = broker.config
        self.max_request_bytes = config.socket_request_max_bytes
        self.max_bytes_before_login = min(self.max_request_bytes, config.listener.sasl_server_max_receive_size)
        self.connections: set[Connection] = set()
        self._entrances = Entrances(broker, self.traffic.logins)
        self.entrances: Sequence[Entrance] = self._entrances.all
        self.look_s = _LOOK_S
        self.is_isolated = False
        self._to_write: list[Connection] = []
        self.limits = ConnectionLimits(lambda: broker.config, loop.time)
        self.slow_requests = SlowRequests(loop.time)
        self.request_memory = request_memory(broker.config.queued_max_request_bytes)
        self._idle_check: asyncio.TimerHandle | None = None
        self._slow_check: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None

    async def listen(self) -> tuple[Listener, ...]:
        """Returns the listeners with the ports that they have; the system chooses those that are 0."""
        await self.limits.resolve(self.loop)
        self._entrances.start()
        for entrance in self.entrances:
            entrance.open(self.loop, self.limits, partial(Connection, self, entrance))
        self._close_idle()
        self._close_slow()
        if any(entrance.helpers for entrance in self.entrances):
            self._look = self.loop.call_later(self.look_s, self._look_at_files)
        return tuple(entrance.listener for entrance in self.entrances)

    async def close(self) -> None:
        """No new connections; those that there are end when what was written is out."""
        for timer in (self._idle_check, self._slow_check, self._look):
            if timer is not None:
                timer.cancel()
        for entrance in self.entrances:
            entrance.stop()
        for connection in list(self.connections):
            connection.close()
        for entrance in self.entrances:
            await entrance.close()
        self._entrances.close()

    def isolate(self) -> None:
        """Hang up on everybody, and on whoever comes: what this broker could say may not be true any more."""
        self.is_isolated = True
        self.broker.isolate()
        for connection in list(self.connections):
            connection.drop("the broker is cut off from its store")

    def resume(self) -> None:
        """It is true after all, or again."""
        self.is_isolated = False
        self.broker.resume()

    def refresh(self) -> None:
        """Read certificates and keys again, whether or not they look as if they had changed."""
        for entrance in self.entrances:
            entrance.refresh(even_if_unchanged=True)

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
        self.broker.turns.settle()

    def _close_idle(self) -> None:
        allowed = self.broker.config.connections_max_idle_ms / 1000
        now = self.loop.time()
        for connection in list(self.connections):
            if now - connection.last_active > allowed:
                connection.close()
        self._idle_check = self.loop.call_later(allowed / 10, self._close_idle)

    def _look_at_files(self) -> None:
        for entrance in self.entrances:
            entrance.refresh()
        self._look = self.loop.call_later(self.look_s, self._look_at_files)

    def _close_slow(self) -> None:
        setup_s, receive_s = self.limits.setup_s, self.broker.config.request_receive_timeout_ms / 1000
        self.limits.end_half_open()
        self.slow_requests.look(receive_s)
        self._slow_check = self.loop.call_later(min(setup_s / 10, receive_s / 10, 1.0), self._close_slow)
