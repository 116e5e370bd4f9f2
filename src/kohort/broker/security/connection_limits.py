"""How many connections there may be, how fast they may come, and how many that have not said yet what they want.

As in Kafka, nobody is refused because there are too many in all (`max.connections`) or because they come too fast
(`max.connection.creation.rate`): they are accepted later, and wait with the system until then. An address that has too
many of its own (`max.connections.per.ip`) loses the new one at once.

A connection is half open until its first request has come, and where somebody has to log in, until he has. There may be
`max.connections.half.open` of those (ours alone). When there are, newcomers wait; and one that is half open for longer
than a second makes room for them. So a flood of silent connections keeps nobody out who speaks.
"""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from kohort.broker.rates import Rate
from kohort.broker.security.ip_limits import parse_overrides, plain_address

if TYPE_CHECKING:
    from kohort.broker.settings import BrokerConfig

UNLIMITED = (1 << 31) - 1
_GRACE_S = 1.0
"""How long a connection may be half open while others wait."""


class Admission:
    """The place of one connection among all."""

    __slots__ = ("_limits", "_release", "address", "give_up", "since")

    def __init__(self, limits: "ConnectionLimits", address: str, since: float) -> None:
        self._limits = limits
        self.address = address
        self.since = since
        self.give_up: Callable[[str], bool] = _nothing_to_give_up
        """Ends the connection if it is half open still, and tells whether it is; takes the reason."""
        self._release: Callable[[Admission], None] | None = limits._release

    def settle(self) -> None:
        """It is not half open any more."""
        self._limits.half_open.pop(self, None)

    def release(self) -> None:
        """The connection is gone. It may be said again."""
        release, self._release = self._release, None
        if release is not None:
            release(self)


def _nothing_to_give_up(_: str) -> bool:
    return False


class ConnectionLimits:
    """Counts the connections of a broker. `now` tells seconds, as the event loop does."""

    def __init__(self, config: "Callable[[], BrokerConfig]", now: Callable[[], float]) -> None:
        self._config = config
        self._now = now
        self._by_address: Counter[str] = Counter()
        self._rate = Rate(config().quota_window_num, config().quota_window_size_seconds * 1000)
        self.total = 0
        self.half_open: dict[Admission, None] = {}
        """Those that are, the oldest first."""
        self._hosts: dict[str, str] = {}
        """Of addresses, the name in the settings."""
        self.on_room: list[Callable[[], None]] = []
        """Called when one of those that counted does not any more."""
        self.refused = 0
        self.given_up = 0

    async def resolve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Find the addresses of the hosts that have limits of their own by name."""
        for host in parse_overrides(self._config().max_connections_per_ip_overrides):
            with contextlib.suppress(OSError):  # a name that nobody knows is nobody's
                found = await loop.getaddrinfo(host, None)
                self._hosts |= {plain_address(str(address[0])): host for *_, address in found}

    @property
    def setup_s(self) -> float:
        """How long a connection may be half open."""
        return self._config().connection_setup_timeout_ms / 1000

    def wait_s(self) -> float:
        """How long to wait before the next is accepted; may end one that is half open in its favour."""
        config = self._config()
        if self.total >= config.max_connections:
            return math.inf
        if config.max_connection_creation_rate < UNLIMITED:
            allowed = max(config.max_connection_creation_rate, 1)
            if delay_ms := self._rate.delay_ms(allowed, self._now_ms()):
                return delay_ms / 1000
        while len(self.half_open) >= config.max_connections_half_open:
            oldest = next(iter(self.half_open))
            if (left := oldest.since + _GRACE_S - self._now()) > 0:
                return left
            self._give_up(oldest, "others wait, and it has not said what it wants")
        return 0

    def admit(self, address: str) -> Admission | None:
        """A place for a connection that was accepted; None if there is none for its address."""
        config = self._config()
        address = plain_address(address)
        if config.max_connection_creation_rate < UNLIMITED:
            self._rate.record(1, self._now_ms())
        if self._by_address[address] >= self._allowed(config, address):
            self.refused += 1
            return None
        self.total += 1
        self._by_address[address] += 1
        admission = Admission(self, address, self._now())
        self.half_open[admission] = None
        return admission

    def end_half_open(self) -> None:
        """Whoever has not said what he wants for too long has to go."""
        longer_than_s = self.setup_s
        until = self._now() - longer_than_s
        while self.half_open and (oldest := next(iter(self.half_open))).since < until:
            self._give_up(oldest, f"it has not said what it wants for {longer_than_s:g} s")

    def _give_up(self, admission: Admission, reason: str) -> None:
        del self.half_open[admission]
        if admission.give_up(reason):
            self.given_up += 1

    def _allowed(self, config: "BrokerConfig", address: str) -> int:
        overrides = parse_overrides(config.max_connections_per_ip_overrides)
        return overrides.get(self._hosts.get(address, address), config.max_connections_per_ip)

    def _release(self, admission: Admission) -> None:
        self.total -= 1
        self._by_address[admission.address] -= 1
        if not self._by_address[admission.address]:
            del self._by_address[admission.address]
        self.half_open.pop(admission, None)
        for call in self.on_room:
            call()

    def _now_ms(self) -> int:
        return int(self._now() * 1000)
