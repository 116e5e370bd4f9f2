"""What a server counts while it serves: plain numbers, which cost next to nothing and which `/metrics` reads.

Connections add to them where it happens. One event loop writes and reads them, so nothing is locked.
"""

from collections.abc import Iterable

from kohort.broker.api import Api
from kohort.log.durations import Durations


class ApiTraffic:
    """The requests of one API."""

    __slots__ = ("errors", "requests", "times")

    def __init__(self, last_version: int) -> None:
        self.requests = [0] * (last_version + 1)
        """How many there were of each version."""
        self.errors: dict[int, int] = {}
        """How often each error code was told, for a whole request or for one of its partitions, groups or topics."""
        self.times = Durations()
        """From the first look at a request to its answer."""


class Logins:
    """How often somebody has logged in."""

    __slots__ = ("expired", "failed", "renewed", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.renewed = 0
        """How many of those were on a connection that was logged in already."""
        self.failed = 0
        self.expired = 0
        """Connections that were closed because their login did not count any more."""


class Traffic:
    """All connections of one server."""

    __slots__ = ("apis", "bad_requests", "bytes_in", "bytes_out", "connections_closed", "connections_opened", "logins")

    def __init__(self, apis: Iterable[Api]) -> None:
        self.apis = {api.key: ApiTraffic(api.last) for api in apis}
        self.logins = Logins()
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections_opened = 0
        self.connections_closed = 0
        self.bad_requests = 0
        """Connections that were closed because of what came on them."""
