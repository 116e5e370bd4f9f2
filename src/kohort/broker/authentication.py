"""Who is at the other end of a connection, where that has to be said (SASL).

A listener that wants to know gives each connection an `Authenticator` of its own (`Entrance.new_authenticator`). Until
that is content, the connection may ask for the versions that are served and say who it is, and nothing else: any other
request ends it, as in Kafka. So does one that comes when a login does not count any more, unless it is a new login.
Without an authenticator everybody is welcome, and whoever wants to log in hears that this is not the time for it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kohort.broker.security.principal import Principal
from kohort.errors import ErrorCode

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
EXPIRED = "its login has expired"
_BEFORE_LOGIN = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})


class Reply(NamedTuple):
    """What an authenticator answers to some bytes of a mechanism."""

    error: ErrorCode
    message: str | None = None
    data: bytes = b""
    session_lifetime_ms: int = 0
    """After so much time the client has to log in again; 0: never."""


Told = Callable[[Reply], None]


class Authenticator(Protocol):
    """The conversation in which one connection says who it is, and does so again later."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """What it understands, under the names of SASL."""

    @property
    def is_authenticated(self) -> bool:
        """Whether it is known who asks. Not while somebody is about to log in again."""

    @property
    def is_expired(self) -> bool:
        """Whether what was said does not count any more."""

    @property
    def principal(self) -> Principal:
        """Who asks, if that is known."""

    def handshake(self, mechanism: str) -> ErrorCode:
        """The client wants to use this mechanism."""

    def authenticate(self, data: bytes, told: Told) -> None:
        """What the client says in the mechanism that it has chosen; `told` hears the answer, at once or later."""


NewAuthenticator = Callable[[], Authenticator]


def refusal_of(authenticator: Authenticator, api_key: int) -> str | None:
    """Why a connection that asks for this API now is closed; None if it is not."""
    if api_key in _BEFORE_LOGIN:
        return None
    if not authenticator.is_authenticated:
        return f"API {api_key} before it was said who asks"
    return EXPIRED if authenticator.is_expired else None
