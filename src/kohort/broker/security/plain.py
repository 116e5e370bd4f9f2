"""PLAIN (RFC 4616): a name and a password, as they are. They belong into TLS.

Passwords stand in the settings of the listener, or are those of the users that the broker keeps. To check one of those
takes milliseconds, which other connections need not wait for: that happens in threads of its own.
"""

import asyncio
import hmac
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from kohort.broker.security.exchange import Proof, Refusal, ToldOutcome
from kohort.broker.security.scram_credentials import ScramCredential, ScramMechanism, is_password
from kohort.broker.security.users import Users

_PARTS = 3
_THREADS = 2


class PasswordChecks:
    """Checks names and passwords for the listeners of one broker."""

    def __init__(self, users: Users, loop: asyncio.AbstractEventLoop) -> None:
        self._users = users
        self._loop = loop
        self._threads: ThreadPoolExecutor | None = None

    def check(self, own: Mapping[str, str], user: str, password: str, told: ToldOutcome) -> None:
        """A user of the settings is no other. Whoever it is not, it takes as long to find out."""
        expected = own.get(user)
        if expected is not None and hmac.compare_digest(expected.encode(), password.encode()):
            told(Proof(user))
            return
        mechanism, credential = self._kept(user) if expected is None else (ScramMechanism.SCRAM_SHA_512, None)
        is_known, made_up = credential is not None, self._users.made_up(user, mechanism)

        def settle(checked: "asyncio.Future[bool]") -> None:
            is_right = not checked.cancelled() and checked.exception() is None and checked.result() and is_known
            told(Proof(user) if is_right else Refusal("Authentication failed: Invalid username or password"))

        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "kohort-passwords")
        self._loop.run_in_executor(
            self._threads, is_password, mechanism, credential or made_up, password
        ).add_done_callback(settle)

    def close(self) -> None:
        """What has not begun is not done any more."""
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)

    def _kept(self, user: str) -> tuple[ScramMechanism, ScramCredential | None]:
        for mechanism in reversed(ScramMechanism):
            credential = self._users.credential(user, mechanism)
            if credential is not None:
                return mechanism, credential
        return ScramMechanism.SCRAM_SHA_512, None


class PlainExchange:
    """One login."""

    def __init__(self, checks: PasswordChecks, own: Mapping[str, str]) -> None:
        self._checks = checks
        self._own = own

    def step(self, data: bytes, told: ToldOutcome) -> None:
        try:
            parts = data.decode().split("\0")
        except UnicodeDecodeError:
            told(Refusal("Authentication failed: not UTF-8"))
            return
        if len(parts) != _PARTS:
            told(Refusal(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"))
            return
        authorization, user, password = parts
        if not user or not password:
            told(Refusal(f"Authentication failed: {'password' if user else 'username'} not specified"))
        elif authorization and not hmac.compare_digest(authorization.encode(), user.encode()):
            told(Refusal("Authentication failed: the authorization id is not that of the user"))
        else:
            self._checks.check(self._own, user, password, told)
