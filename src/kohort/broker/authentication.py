"""Who is at the other end of a connection: the place for SASL, which nobody has taken yet.

A server that wants to know gives each connection an `Authenticator` of its own (`Server.new_authenticator`). Until that
is content, the connection may ask for the versions that are served and say who it is, and nothing else: any other
request ends it, as in Kafka. Without one everybody is welcome, and whoever wants to log in hears that this is not the
time for it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kohort.errors import ErrorCode

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
_BEFORE_LOGIN = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})


class Reply(NamedTuple):
    """What an authenticator answers to some bytes of a mechanism."""

    error: ErrorCode
    message: str | None = None
    data: bytes = b""
    session_lifetime_ms: int = 0
    """After so much time the client has to log in again; 0: never."""


class Authenticator(Protocol):
    """The conversation in which one connection says who it is."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """What it understands, under the names of SASL."""

    @property
    def is_authenticated(self) -> bool: ...

    def handshake(self, mechanism: str) -> ErrorCode:
        """The client wants to use this mechanism."""

    def authenticate(self, data: bytes) -> Reply:
        """What the client says in the mechanism that it has chosen."""


NewAuthenticator = Callable[[], Authenticator]


def may_ask(authenticator: Authenticator | None, api_key: int) -> bool:
    """Whether a connection may ask for this API now."""
    return authenticator is None or authenticator.is_authenticated or api_key in _BEFORE_LOGIN
