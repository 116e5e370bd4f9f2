"""One connection's logins: which mechanism, who it is, and for how long that counts (KIP-43, KIP-152, KIP-368).

Who has to log in again from time to time does so on the same connection, in the same mechanism and as the same user. A
connection may begin that at any time, but not more than once a second; while it lasts nothing else is served on it.
"""

from collections.abc import Mapping, Sequence

from kohort.broker.authentication import Reply, Told
from kohort.broker.security.exchange import Challenge, Exchange, Mechanism, Outcome, Refusal
from kohort.broker.security.principal import ANONYMOUS, USER, Principal
from kohort.broker.traffic import Logins
from kohort.clock import Clock
from kohort.errors import ErrorCode

_SOONEST_AGAIN_MS = 1000


class SaslAuthenticator:
    """`Authenticator` for the mechanisms of a listener."""

    def __init__(self, mechanisms: Mapping[str, Mechanism], clock: Clock, logins: Logins) -> None:
        self._known = mechanisms
        self._clock = clock
        self._logins = logins
        self._mechanism: Mechanism | None = None
        self._exchange: Exchange | None = None
        """What is under way."""
        self._is_other_mechanism = False
        self._was_mechanism: str | None = None
        """By which it was proved who it is."""
        self._principal: Principal | None = None
        self._ends_at_ms: int | None = None
        self._began_again_ms: int | None = None

    @property
    def mechanisms(self) -> Sequence[str]:
        return tuple(self._known)

    @property
    def is_authenticated(self) -> bool:
        return self._principal is not None and self._exchange is None

    @property
    def is_expired(self) -> bool:
        return self._ends_at_ms is not None and self._clock.monotonic_ms() > self._ends_at_ms

    @property
    def principal(self) -> Principal:
        return self._principal or ANONYMOUS

    def handshake(self, mechanism: str) -> ErrorCode:
        if self._exchange is not None or not self._may_begin():
            return ErrorCode.ILLEGAL_SASL_STATE
        known = self._known.get(mechanism)
        if known is None:
            self._logins.failed += 1
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        # Kafka tells of another mechanism than before only when the client goes on.
        self._is_other_mechanism = self._was_mechanism not in (None, mechanism)
        self._mechanism, self._exchange = known, known.new_exchange()
        return ErrorCode.NONE

    def _may_begin(self) -> bool:
        """Whoever is logged in may log in again, if that is asked of him, now and then."""
        if self._principal is None:
            return True
        now_ms = self._clock.monotonic_ms()
        if self._ends_at_ms is None:
            return False
        if self._began_again_ms is not None and now_ms - self._began_again_ms < _SOONEST_AGAIN_MS:
            return False
        self._began_again_ms = now_ms
        return True

    def authenticate(self, data: bytes, told: Told) -> None:
        mechanism, exchange = self._mechanism, self._exchange
        if mechanism is None or exchange is None:
            told(Reply(ErrorCode.ILLEGAL_SASL_STATE, "no mechanism was chosen, or the login is over"))
        elif self._is_other_mechanism:
            was = self._was_mechanism
            told(self._refused(f"SASL mechanism {mechanism.name} cannot renew a login by {was}"))
        else:
            exchange.step(data, lambda outcome: told(self._reply(mechanism, outcome)))

    def _reply(self, mechanism: Mechanism, outcome: Outcome) -> Reply:
        if isinstance(outcome, Challenge):
            return Reply(ErrorCode.NONE, data=outcome.data)
        if isinstance(outcome, Refusal):
            return self._refused(outcome.message)
        principal = Principal(USER, outcome.user)
        if self._principal not in (None, principal):
            return self._refused("a login cannot be renewed by another user")
        self._logins.succeeded += 1
        self._logins.renewed += self._principal is not None
        self._principal, self._was_mechanism, self._exchange = principal, mechanism.name, None
        lifetime_ms = self._settle_end(mechanism, outcome.expires_at_ms)
        return Reply(ErrorCode.NONE, data=outcome.data, session_lifetime_ms=lifetime_ms)

    def _settle_end(self, mechanism: Mechanism, expires_at_ms: int | None) -> int:
        """How long the login counts, 0 if for ever: what expires ends a connection only where logins have to be new."""
        if mechanism.max_reauth_ms <= 0:
            return 0
        lifetime_ms = mechanism.max_reauth_ms
        if expires_at_ms is not None:
            lifetime_ms = max(0, min(lifetime_ms, expires_at_ms - self._clock.now_ms()))
        self._ends_at_ms = self._clock.monotonic_ms() + lifetime_ms
        return lifetime_ms

    def _refused(self, message: str) -> Reply:
        """The exchange stays open, so nobody is taken for somebody whose login could not be renewed."""
        self._logins.failed += 1
        return Reply(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
