"""OAUTHBEARER (RFC 7628): a login with a token that somebody else has signed (RFC 7519).

A token counts if its signature is one of the known keys', if it was made out by the expected issuer and for us, and if
its time has come and is not over. Unsigned tokens, which Kafka takes by default for trying things out, are refused.
"""

import re
from typing import Any

from kohort.broker.security.exchange import Challenge, Proof, Refusal, ToldOutcome
from kohort.broker.security.jwks import Keys
from kohort.broker.security.listener_settings import ListenerConfig
from kohort.broker.setting_kinds import BadSetting

_FIRST = re.compile(r"[ny],(?:a=(?P<authorization>[^,]*))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)*)\x01")
_BEARER = re.compile(r"[Bb]earer (?P<token>[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)")
_INVALID = b'{"status":"invalid_token"}'


class _BadToken(Exception):
    """A token that does not count, and why."""


class TokenCheck:
    """What one listener expects of tokens."""

    def __init__(self, config: ListenerConfig, keys: Keys) -> None:
        audiences, issuer = config.sasl_oauthbearer_expected_audience, config.sasl_oauthbearer_expected_issuer
        if not audiences or not issuer:
            raise BadSetting(
                "OAUTHBEARER needs sasl.oauthbearer.expected.audience and sasl.oauthbearer.expected.issuer: "
                "for whom and by whom tokens are made out"
            )
        self._audiences = list(audiences)
        self._issuer = issuer
        self._keys = keys
        self._user_claim = config.sasl_oauthbearer_sub_claim_name
        self._scope_claim = config.sasl_oauthbearer_scope_claim_name
        self._leeway_s = config.sasl_oauthbearer_clock_skew_seconds

    def proof_of(self, token: str) -> Proof:
        """Whose token it is and until when; `_BadToken` if it does not count."""
        import jwt  # not needed without tokens, and large

        try:
            header = jwt.get_unverified_header(token)
            algorithm, key_id = header.get("alg"), header.get("kid")
            if not isinstance(algorithm, str) or not isinstance(key_id, str | None) or "crit" in header:
                raise _BadToken("a header that is not understood")
            key = self._keys.find(key_id, algorithm)
            if key is None:
                raise _BadToken(f"no key {key_id!r} for {algorithm!r}")
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audiences,
                issuer=self._issuer,
                leeway=self._leeway_s,
                options={"require": ["exp", "iat", "iss", "aud", self._user_claim]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise _BadToken(f"{type(error).__name__}: {error}") from None
        user = claims[self._user_claim]
        if not isinstance(user, str) or not user.strip():
            raise _BadToken(f"{self._user_claim} is no name")
        _check_scope(claims.get(self._scope_claim))
        return Proof(user, expires_at_ms=int(claims["exp"]) * 1000)


def _check_scope(scope: Any) -> None:
    """None, names with spaces between them, or a list of names; no name twice."""
    names = scope.split(" ") if isinstance(scope, str) else scope
    if names is None:
        return
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise _BadToken("scopes that are no names")
    if len(set(names)) < len(names):
        raise _BadToken("a scope that is there twice")


class OAuthBearerExchange:
    """One login."""

    def __init__(self, check: TokenCheck) -> None:
        self._check = check
        self._reason: str | None = None

    def step(self, data: bytes, told: ToldOutcome) -> None:
        """Who has failed is told how, and has to say that he has heard it, before it is over."""
        if self._reason is not None:
            told(Refusal(f"Authentication failed: {self._reason}"))
            return
        try:
            first = _FIRST.fullmatch(data.decode())
        except UnicodeDecodeError:
            first = None
        pairs = dict(pair.split("=", 1) for pair in first["pairs"].split("\x01")[:-1]) if first else {}
        bearer = _BEARER.fullmatch(pairs.get("auth", ""))
        if first is None or bearer is None:
            told(Refusal("Authentication failed: not a message of OAUTHBEARER"))
            return
        try:
            proof = self._check.proof_of(bearer["token"])
        except _BadToken as error:
            self._reason = f"the token does not count ({error})"
            told(Challenge(_INVALID))
            return
        if first["authorization"] and _plain(first["authorization"]) != proof.user:
            told(Refusal("Authentication failed: the authorization id is not that of the token"))
        else:
            told(proof)


def _plain(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
