"""Who asks at the HTTP port: the broker's own users, by HTTP's Basic scheme (RFC 7617).

Their passwords are checked against what SCRAM keeps of them, which takes milliseconds on purpose. So that is done in
threads, of which there are two; whoever comes when too many wait is sent away. What was found right is remembered, as a
digest that is worth nothing to anybody else, until the user's credentials change. Somebody whom there is not is checked
for as long as somebody whom there is.
"""

import asyncio
import base64
import binascii
import hmac
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kohort.broker.security.scram_credentials import ScramCredential, ScramMechanism, is_password
from kohort.broker.security.users import Users

_THREADS = 2
_MOST_WAITING = 64
_MOST_REMEMBERED = 1_024
_LONGEST = 4_096
_FAILED_S = 0.1
"""As long as Kafka keeps back the answer to a failed login."""

Checks = list[tuple[ScramMechanism, ScramCredential]]
"""What a password may fit."""


class TooBusy(Exception):
    """So many passwords are being checked that one more has to wait elsewhere."""


class _Login(NamedTuple):
    user: str
    password: str


class BasicAuthentication:
    """Checks passwords of one broker's users."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._secret = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        """Digests of what was found right, the one that was used last at the end."""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kohort-password")
        self._waiting = 0

    @property
    def has_users(self) -> bool:
        return bool(self._users.names())

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def user_of(self, authorization: str | None) -> str | None:
        """Whose header this is, None if nobody's; `TooBusy` if that cannot be found out now."""
        login = _login(authorization)
        if login is None:
            return None
        kept = self._kept(login.user)
        for _, credential in kept:
            if (digest := self._digest(login, credential)) in self._right:
                self._right[digest] = self._right.pop(digest)
                return login.user
        if self._waiting >= _MOST_WAITING:
            raise TooBusy
        self._waiting += 1
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._threads, _first_right, login.password, kept or self._made_up(login.user)
            )
            if found is None or not kept:
                await asyncio.sleep(_FAILED_S)
                return None
        finally:
            self._waiting -= 1
        self._remember(self._digest(login, found))
        return login.user

    def _kept(self, user: str) -> Checks:
        found = ((mechanism, self._users.credential(user, mechanism)) for mechanism in ScramMechanism)
        return [(mechanism, credential) for mechanism, credential in found if credential is not None]

    def _made_up(self, user: str) -> Checks:
        mechanism = ScramMechanism.SCRAM_SHA_256
        return [(mechanism, self._users.made_up(user, mechanism))]

    def _digest(self, login: _Login, credential: ScramCredential) -> bytes:
        """Tells user, password and credentials apart from all others, and nothing of them."""
        parts = (login.user.encode(), login.password.encode(), credential.stored_key)
        return hmac.digest(self._secret, b"".join(len(part).to_bytes(4, "big") + part for part in parts), "sha256")

    def _remember(self, digest: bytes) -> None:
        self._right[digest] = None
        while len(self._right) > _MOST_REMEMBERED:
            del self._right[next(iter(self._right))]


def _first_right(password: str, checks: Checks) -> ScramCredential | None:
    """The first of these that the password fits."""
    for mechanism, credential in checks:
        if is_password(mechanism, credential, password):
            return credential
    return None


def _login(authorization: str | None) -> _Login | None:
    """What a header says, if it says something."""
    scheme, _, told = (authorization or "").partition(" ")
    if scheme.lower() != "basic" or len(told) > _LONGEST:
        return None
    try:
        user, colon, password = base64.b64decode(told.strip(), validate=True).partition(b":")
        return _Login(user.decode(), password.decode()) if colon else None
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
