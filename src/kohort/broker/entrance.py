"""A listener that is open: what a connection has to show there, and where it is told that the broker is."""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Protocol

from kohort.broker.acceptor import Acceptor, MakeProtocol
from kohort.broker.authentication import NewAuthenticator
from kohort.broker.security.connection_limits import ConnectionLimits
from kohort.broker.security.listeners import Address, Listener
from kohort.broker.security.principal import ANONYMOUS, Principal
from kohort.broker.security.tls import Tls


class Helper(Protocol):
    """Something that a listener needs and that may change while it is open."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None: ...

    def refresh(self, *, even_if_unchanged: bool = False) -> None:
        """Look whether there is something new."""

    async def stop(self) -> None: ...


class Entrance:
    """One listener."""

    def __init__(self, listener: Listener, tls: Tls | None = None) -> None:
        self.listener = listener
        """From when it is open, with the port that it has."""
        self.tls = tls
        self.new_authenticator: NewAuthenticator | None = None
        """What connections have to say who they are to; None: to nobody."""
        self.mechanisms: Sequence[str] = ()
        """How they can say it."""
        self.helpers: list[Helper] = [] if tls is None else [tls]
        self._acceptor: Acceptor | None = None

    @property
    def admits_anybody(self) -> bool:
        """Whether somebody comes in who has shown nothing."""
        return not self.listener.has_sasl and not (self.tls is not None and self.tls.is_client_known)

    def refresh(self, *, even_if_unchanged: bool = False) -> None:
        """Look whether certificates and keys have changed."""
        for helper in self.helpers:
            helper.refresh(even_if_unchanged=even_if_unchanged)

    def open(self, loop: asyncio.AbstractEventLoop, limits: ConnectionLimits, make_protocol: MakeProtocol) -> None:
        """Clients may come."""
        acceptor = Acceptor(loop, limits, make_protocol, self.tls)
        self.listener = self.listener.at(acceptor.listen(self.listener.address))
        self._acceptor = acceptor
        for helper in self.helpers:
            helper.start(loop)

    def stop(self) -> None:
        """No more clients may come."""
        if self._acceptor is not None:
            self._acceptor.close()

    async def close(self) -> None:
        """When all connections are being closed."""
        if self._acceptor is not None:
            await self._acceptor.wait_closed()
        for helper in self.helpers:
            await helper.stop()

    def greet(self, transport: asyncio.BaseTransport) -> tuple[Principal, Address | None]:
        """Who has come, as far as TLS tells, and where he is told that we are; `ClientError` if he cannot stay."""
        principal, connection = ANONYMOUS, transport.get_extra_info("ssl_object")
        if self.tls is not None and isinstance(connection, ssl.SSLObject):
            principal = self.tls.principal_of(connection)
        told, came_to = self.listener.told, transport.get_extra_info("sockname")
        if told is None and came_to is not None:
            told = Address(came_to[0], self.listener.address.port)
        return principal, told
