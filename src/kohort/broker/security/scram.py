"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): a login that shows the password to nobody.

The client's first message names the user and a number used once, ours adds to that number and tells the salt; the
client's last must repeat the whole number and what it has said of channel binding, and prove that it has the password.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets

from kohort.broker.security.exchange import Challenge, Proof, Refusal, ToldOutcome
from kohort.broker.security.scram_credentials import ScramCredential, ScramMechanism, mac
from kohort.broker.security.users import Users

_FIRST = re.compile(
    r"(?P<head>(?P<binding>n|y|p=[A-Za-z0-9.-]+),(?:a=(?P<authorization>[^,]+))?,)"
    r"(?P<bare>(?P<mandatory>m=[^,]*,)?n=(?P<user>[^,]+),r=(?P<nonce>[!-+\--~]{1,1024})(?P<extensions>(?:,[A-Za-z]+=[^,]*)*))"
)
_LAST = re.compile(
    r"(?P<bare>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>[!-+\--~]+)(?:,[A-Za-z]+=[^,]*)*),p=(?P<proof>[A-Za-z0-9/+=]+)"
)
_NAME = re.compile(r"(?:[^=,]|=2C|=3D)+")
_NONCE_BYTES = 24


class ScramExchange:
    """One login."""

    def __init__(self, mechanism: ScramMechanism, users: Users) -> None:
        self._mechanism = mechanism
        self._users = users
        self._begun: _Begun | None = None

    def step(self, data: bytes, told: ToldOutcome) -> None:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            told(self._refusal)
            return
        begun, self._begun = self._begun, None
        if begun is None:
            told(self._begin(text))
        else:
            told(Proof(begun.user, begun.signature(text)) if begun.is_proved_by(text) else self._refusal)

    @property
    def _refusal(self) -> Refusal:
        return Refusal(
            f"Authentication failed due to invalid credentials with SASL mechanism {self._mechanism.sasl_name}"
        )

    def _begin(self, text: str) -> Challenge | Refusal:
        first = _FIRST.fullmatch(text)
        if first is None or first["mandatory"] or not _NAME.fullmatch(first["user"]):
            return self._refusal
        if first["binding"].startswith("p"):
            return Refusal("Authentication failed: channel binding is not served")
        if ",tokenauth=" in f",{first['extensions'].lower()}":
            return Refusal("Authentication failed: delegation tokens are not served")
        user = _plain(first["user"])
        if first["authorization"] is not None and _plain(first["authorization"]) != user:
            return Refusal("Authentication failed: the authorization id is not that of the user")
        made_up, kept = self._users.made_up(user, self._mechanism), self._users.credential(user, self._mechanism)
        is_known, credential = kept is not None, kept or made_up
        nonce = first["nonce"] + secrets.token_urlsafe(_NONCE_BYTES)
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={nonce},s={salt},i={credential.iterations}"
        self._begun = _Begun(
            self._mechanism, user, is_known, credential, first["head"], nonce, f"{first['bare']},{answer}"
        )
        return Challenge(answer.encode())


class _Begun:
    """What is known after the client's first message."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        is_known: bool,
        credential: ScramCredential,
        head: str,
        nonce: str,
        said: str,
    ) -> None:
        self._mechanism = mechanism
        self.user = user
        self._is_known = is_known
        self._credential = credential
        self._binding = base64.b64encode(head.encode())
        self._nonce = nonce.encode()
        self._said = said

    def is_proved_by(self, text: str) -> bool:
        """Everything is looked at whatever is wrong: how long that takes says nothing."""
        last = _LAST.fullmatch(text)
        if last is None:
            return False
        same_nonce = hmac.compare_digest(last["nonce"].encode(), self._nonce)
        same_binding = hmac.compare_digest(last["binding"].encode(), self._binding)
        return self._has_password(last) & same_nonce & same_binding & self._is_known

    def _has_password(self, last: re.Match[str]) -> bool:
        stored_key = self._credential.stored_key
        signature = mac(self._mechanism, stored_key, self._message(last))
        try:
            proof = base64.b64decode(last["proof"], validate=True)
        except binascii.Error:
            return False
        if len(proof) != len(signature):
            return False
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        return hmac.compare_digest(hashlib.new(self._mechanism.hash_name, client_key).digest(), stored_key)

    def signature(self, text: str) -> bytes:
        """What proves to the client that we know of its password too."""
        last = _LAST.fullmatch(text)
        assert last is not None
        signature = mac(self._mechanism, self._credential.server_key, self._message(last))
        return b"v=" + base64.b64encode(signature)

    def _message(self, last: re.Match[str]) -> bytes:
        return f"{self._said},{last['bare']}".encode()


def _plain(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
