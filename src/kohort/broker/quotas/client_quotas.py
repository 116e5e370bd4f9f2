"""The quotas of a broker, and how much of them each user and client has used.

Unless somebody has set one there are none, and nothing is counted. What counts for whom is looked up once and kept: it
is asked for with every request. Clients choose their ids, so only so many are remembered.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kohort.broker.quotas.entities import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    QUOTA,
    REQUEST_PERCENTAGE,
    USER,
    Entity,
    Quotas,
    entity_of_key,
    precedence,
    quotas_of,
)
from kohort.broker.rates import Rate
from kohort.broker.security.security_log import Fact, Key, SecurityLog
from kohort.clock import Clock

_MOST_CLIENTS = 10_000


class Share:
    """What somebody may have of something, and has had of it."""

    __slots__ = ("bound", "rate")

    def __init__(self, bound: float, rate: Rate) -> None:
        self.bound = bound
        self.rate = rate

    def take(self, amount: float, now_ms: int) -> int:
        """Count so much, and tell how long to wait until it is within bounds again, in ms."""
        self.rate.record(amount, now_ms)
        return self.rate.delay_ms(self.bound, now_ms)

    def give_back(self, amount: float, now_ms: int) -> None:
        """It was counted and did not happen."""
        self.rate.record(-amount, now_ms)


class Shares(NamedTuple):
    """All that is limited for one user with one client id."""

    produce: Share | None
    fetch: Share | None
    request: Share | None


class ClientQuotas:
    """Kept in the security log, used with every request."""

    def __init__(self, security_log: SecurityLog, clock: Clock, *, windows: int, window_s: int) -> None:
        self._clock = clock
        self._windows = windows
        self._window_ms = window_s * 1000
        self._quotas: dict[Entity, Quotas] = {}
        self._shares: dict[tuple[str, str], Shares] = {}
        self._rates: dict[tuple[str, str, str], Rate] = {}
        """By what is limited, the user and the client id; "" where a quota does not look at one of these."""
        self.throttled = 0
        """How many answers told a client to wait."""
        self._change(dict(security_log.of_kind(QUOTA)))
        security_log.watchers.append(self._change)
        self.is_active = bool(self._quotas)

    @property
    def longest_request_ms(self) -> int:
        """Whoever computes too much waits no longer than a window, as in Kafka."""
        return self._window_ms

    @property
    def longest_burst_s(self) -> int:
        """So many seconds' worth may come at once."""
        return max((self._windows - 1) * self._window_ms // 1000, 1)

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def __iter__(self) -> Iterator[tuple[Entity, Quotas]]:
        return iter(self._quotas.items())

    def shares_of(self, user: str, client_id: str) -> Shares:
        """What is limited for whoever asks."""
        found = self._shares.get((user, client_id))
        if found is None:
            if len(self._shares) >= _MOST_CLIENTS:
                self._forget_some()
            found = self._shares[user, client_id] = Shares(
                self._share(PRODUCER_BYTE_RATE, user, client_id),
                self._share(CONSUMER_BYTE_RATE, user, client_id),
                self._share(REQUEST_PERCENTAGE, user, client_id),
            )
        return found

    def _share(self, key: str, user: str, client_id: str) -> Share | None:
        for entity in precedence(user, client_id):
            bound = self._quotas.get(entity, {}).get(key)
            if bound is not None:
                kinds = dict(entity)
                owner = (key, user if USER in kinds else "", client_id if CLIENT_ID in kinds else "")
                rate = self._rates.get(owner)
                if rate is None:
                    rate = self._rates[owner] = Rate(self._windows, self._window_ms)
                return Share(bound, rate)
        return None

    def _forget_some(self) -> None:
        """Those of whom nothing counts any more; if that does not help, those that came first."""
        self._shares.clear()
        now_ms = self.now_ms()
        self._rates = {owner: rate for owner, rate in self._rates.items() if not rate.is_over(now_ms)}
        for owner in list(self._rates)[: len(self._rates) - _MOST_CLIENTS]:
            del self._rates[owner]

    def _change(self, changes: Mapping[Key, Fact | None]) -> None:
        for key, fact in changes.items():
            if key[0] != QUOTA:
                continue
            entity, quotas = entity_of_key(key), {} if fact is None else quotas_of(fact)
            if quotas:
                self._quotas[entity] = quotas
            else:
                self._quotas.pop(entity, None)
        self._shares.clear()
        self.is_active = bool(self._quotas)
