"""What a mechanism of SASL is made of: exchanges, one for each login, which end with a proof or a refusal."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Challenge(NamedTuple):
    """Something that the client has to answer."""

    data: bytes


class Proof(NamedTuple):
    """It is known who asks."""

    user: str
    data: bytes = b""
    """What the client is told, which may have to be sure of us too."""
    expires_at_ms: int | None = None
    """When the proof ends by itself."""


class Refusal(NamedTuple):
    """It is not who it says. The message is for the client, and the same whether or not there is such a user."""

    message: str


Outcome = Challenge | Proof | Refusal
ToldOutcome = Callable[[Outcome], None]


class Exchange(Protocol):
    """One login in one mechanism."""

    def step(self, data: bytes, told: ToldOutcome) -> None:
        """What the client says next; `told` hears what comes of it, at once or later, and once."""


class Mechanism(NamedTuple):
    """A mechanism as one listener has it."""

    name: str
    new_exchange: Callable[[], Exchange]
    max_reauth_ms: int
    """How long a login counts; 0 and less: for ever."""
