"""Logging in over the wire, written from the RFCs and not from the broker's own code, and users to do it as."""

import base64
import hashlib
import hmac
from functools import cache
from typing import Any

from kohort.errors import ErrorCode
from tests.broker.running import Running
from tests.broker.wire_client import WireClient

SASL_HANDSHAKE, SASL_AUTHENTICATE, DESCRIBE_USERS, ALTER_USERS = 17, 36, 50, 51
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
NUMBERS = {SHA_256: 1, SHA_512: 2}
HASHES = {SHA_256: "sha256", SHA_512: "sha512"}
SALT = b"salt of sixteen!"

OPEN_AND_SASL = {"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"}
"""Users are added through the first listener, and log in at the second."""


def upsertion(user: str, password: str, mechanism: str = SHA_256, *, iterations: int = 4096) -> dict[str, Any]:
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), SALT, iterations)
    number = NUMBERS[mechanism]
    return {"name": user, "mechanism": number, "iterations": iterations, "salt": SALT, "salted_password": salted}


def add_users(broker: Running, passwords: dict[str, str], *mechanisms: str, iterations: int = 4096) -> None:
    wanted = [
        upsertion(user, password, mechanism, iterations=iterations)
        for user, password in passwords.items()
        for mechanism in mechanisms or HASHES
    ]
    with WireClient(broker.port_of("PLAINTEXT")) as client:
        answer = client.ask(ALTER_USERS, 0, deletions=[], upsertions=wanted)
    assert {result.error_code for result in answer.results} == {ErrorCode.NONE}


def at_sasl(broker: Running) -> WireClient:
    return WireClient(broker.port_of("SASL_PLAINTEXT"))


def plain(user: str, password: str, authorization: str = "") -> bytes:
    return "\0".join((authorization, user, password)).encode()


def say(client: WireClient, mechanism: str, *messages: bytes) -> Any:
    """Say these in a mechanism, whatever is answered; the last answer."""
    handshake = client.ask(SASL_HANDSHAKE, 1, mechanism=mechanism)
    assert handshake.error_code == ErrorCode.NONE
    answer = None
    for message in messages:
        answer = client.ask(SASL_AUTHENTICATE, 2, auth_bytes=message)
    return answer


@cache
def _salted(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


class ScramClient:
    """A client of SCRAM (RFC 5802), parts of which can be made to say something else."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str = "number-used-once") -> None:
        self.mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._password = password
        self.head = "n,,"
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signature = b""
        self.challenge: dict[str, str] = {}

    def first(self) -> bytes:
        return (self.head + self.bare).encode()

    def last(self, challenge: bytes, *, nonce: str | None = None, binding: bytes | None = None) -> bytes:
        said = challenge.decode().split(",")[0].removeprefix("r=") if nonce is None else nonce
        head = base64.b64encode(self.head.encode() if binding is None else binding).decode()
        return self.last_with(challenge, f"c={head},r={said}")

    def last_with(self, challenge: bytes, without_proof: str) -> bytes:
        """The proof of whatever is said before it."""
        self.challenge = dict(part.split("=", 1) for part in challenge.decode().split(","))
        salt, iterations = base64.b64decode(self.challenge["s"]), int(self.challenge["i"])
        salted = _salted(self._hash, self._password, salt, iterations)
        message = f"{self.bare},{challenge.decode()},{without_proof}".encode()
        client_key = self._mac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        proof = bytes(a ^ b for a, b in zip(client_key, self._mac(stored_key, message), strict=True))
        self._signature = self._mac(self._mac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def is_sure_of(self, answer: bytes) -> bool:
        return answer == b"v=" + base64.b64encode(self._signature)

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def log_in_by_scram(client: WireClient, scram: ScramClient, **changed: Any) -> Any:
    """The answer to the last message, or to the first if that is refused."""
    answer = say(client, scram.mechanism, scram.first())
    if answer.error_code != ErrorCode.NONE:
        return answer
    return client.ask(SASL_AUTHENTICATE, 2, auth_bytes=scram.last(answer.auth_bytes, **changed))
