"""Connections that begin and do not go on (slow-loris): each holds a place and some memory for as long as it likes.

Of a request that has begun to come in `request.receive.timeout.ms` has to bring the rest, or 64 KiB: so a large one may
take its time over a thin line, and a byte now and then does not count as life. While we do not read nobody is blamed.
"""

from collections.abc import Callable
from typing import Protocol

LEAST_PROGRESS = 65_536


class Receiving(Protocol):
    """A connection on which part of a request has come."""

    @property
    def is_read(self) -> bool:
        """Whether we take what it sends."""

    @property
    def received(self) -> int:
        """How much of the request there is."""

    def drop(self, reason: str) -> None:
        """End it at once."""


class SlowRequests:
    """All requests that have begun and are not there. `now` tells seconds, as the event loop does."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begun: dict[Receiving, tuple[float, int]] = {}
        """When each began or was looked at last, and how much there was of it then."""
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._begun)

    def begin(self, connection: Receiving) -> None:
        self._begun[connection] = (self._now(), 0)

    def end(self, connection: Receiving) -> None:
        """The request is there, or the connection is gone."""
        self._begun.pop(connection, None)

    def look(self, timeout_s: float) -> None:
        """End those that have not gone on for so long."""
        now = self._now()
        for connection, (since, before) in list(self._begun.items()):
            if not connection.is_read:
                self._begun[connection] = (now, connection.received)
            elif now - since < timeout_s:
                continue
            elif connection.received - before < LEAST_PROGRESS:
                del self._begun[connection]
                self.dropped += 1
                connection.drop(f"a request has begun and not gone on for {timeout_s:g} s")
            else:
                self._begun[connection] = (now, connection.received)
