"""The users that the broker keeps: their salted passwords in its security log, `["scram", user, mechanism]` each.

Somebody who asks for a user that there is not gets as far as for one that there is: a salt that is made up, and always
the same for that name, so that nobody finds out who is there. What it is made of is kept too.
"""

import base64
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from kohort.broker.security.scram_credentials import (
    SALT_BYTES,
    USUAL_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_of,
    mac,
)
from kohort.broker.security.security_log import Fact, Key, SecurityLog, Told
from kohort.errors import ErrorCode

_KIND = "scram"
_SECRET: Key = ("scram-secret",)
_SECRET_BYTES = 32
Change = tuple[str, ScramMechanism]


class Users:
    """Reads and changes them; a change counts when it is safe on the disk."""

    def __init__(self, log: SecurityLog) -> None:
        self._log = log
        self._new_secret = secrets.token_bytes(_SECRET_BYTES)

    def names(self) -> list[str]:
        return sorted({user for user, _ in self._all()})

    def mechanisms_of(self, user: str) -> dict[ScramMechanism, int]:
        """How somebody can log in, with the number of iterations."""
        found = {mechanism: self.credential(user, mechanism) for mechanism in ScramMechanism}
        return {mechanism: one.iterations for mechanism, one in found.items() if one is not None}

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        fact = self._log.get((_KIND, user, mechanism.sasl_name))
        if fact is None:
            return None
        return ScramCredential(
            _bytes(fact["salt"]), int(fact["iterations"]), _bytes(fact["stored_key"]), _bytes(fact["server_key"])
        )

    def made_up(self, user: str, mechanism: ScramMechanism) -> ScramCredential:
        """For somebody whom there is not. No password fits it: nobody knows one."""
        fact = self._log.get(_SECRET)
        secret = self._new_secret if fact is None else _bytes(fact["secret"])
        about = f"{mechanism.sasl_name} {user}".encode()
        salt = mac(ScramMechanism.SCRAM_SHA_512, secret, b"salt " + about)[:SALT_BYTES]
        return credential_of(mechanism, mac(mechanism, secret, b"password " + about), salt, USUAL_ITERATIONS)

    def keep_secret(self) -> None:
        """What made-up salts are made of outlives the broker: they must not change when those of users do not."""
        if self._log.get(_SECRET) is None:
            self._log.change({_SECRET: {"secret": _text(self._new_secret)}}, lambda _: None)

    def change(self, changes: Mapping[Change, ScramCredential | None], told: Told) -> None:
        """Keep these, forget those that are None: all or none."""
        facts: dict[Key, Fact | None] = {
            (_KIND, user, mechanism.sasl_name): _fact(one) for (user, mechanism), one in changes.items()
        }
        if facts:
            self._log.change(facts, told)
        else:
            told(ErrorCode.NONE)

    def _all(self) -> Iterator[tuple[str, str]]:
        return ((key[1], key[2]) for key, _ in self._log.of_kind(_KIND))


def _fact(credential: ScramCredential | None) -> Fact | None:
    if credential is None:
        return None
    told: dict[str, Any] = {
        "salt": _text(credential.salt),
        "iterations": credential.iterations,
        "stored_key": _text(credential.stored_key),
        "server_key": _text(credential.server_key),
    }
    return told


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
