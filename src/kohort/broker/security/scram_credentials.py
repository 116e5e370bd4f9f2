"""What SCRAM is made of (RFC 5802), and what a broker keeps of a password: enough to check it, not to use it."""

import hashlib
import hmac
import secrets
from enum import IntEnum
from typing import NamedTuple

from kohort.broker.security.listener_settings import SCRAM_SHA_256, SCRAM_SHA_512

LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16_384
USUAL_ITERATIONS = LEAST_ITERATIONS
SALT_BYTES = 32


class ScramMechanism(IntEnum):
    """The two that there are, by the numbers that requests have for them."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return SCRAM_SHA_256 if self is ScramMechanism.SCRAM_SHA_256 else SCRAM_SHA_512

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"


class ScramCredential(NamedTuple):
    """What a password is checked against."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


def new_salt() -> bytes:
    return secrets.token_bytes(SALT_BYTES)


def salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """What a client makes of its password. It takes milliseconds, and lets other threads run meanwhile."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What is kept of it."""
    stored_key = hashlib.new(mechanism.hash_name, mac(mechanism, salted_password, b"Client Key")).digest()
    return ScramCredential(salt, iterations, stored_key, mac(mechanism, salted_password, b"Server Key"))


def mac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)


def is_password(mechanism: ScramMechanism, credential: ScramCredential, password: str) -> bool:
    """Whether a password is the one of the credential. It takes milliseconds."""
    salted_password = salted(mechanism, password, credential.salt, credential.iterations)
    made = credential_of(mechanism, salted_password, credential.salt, credential.iterations)
    return hmac.compare_digest(made.stored_key, credential.stored_key)
