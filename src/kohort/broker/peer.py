"""Who is at the other end of a connection, as far as its requests need to know."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.broker.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kohort.broker.authentication import Authenticator
    from kohort.broker.security.authorizer import Authorizer
    from kohort.broker.security.listeners import Address


@dataclass(slots=True)
class Peer:
    """One for each connection, which all of its calls share."""

    host: str = ""
    """Where it connects from, as Kafka writes it: with a slash before the address."""
    principal: Principal = ANONYMOUS
    """Who asks, as far as that is known. Whoever logs in again has to be the same."""
    authenticator: "Authenticator | None" = None
    """Who finds out who asks, where that has to be said."""
    authorizer: "Authorizer | None" = None
    """Who decides what may be done, if anybody does."""
    told_address: "Address | None" = None
    """Where the broker is, as far as this client is told; None: where it listens."""
