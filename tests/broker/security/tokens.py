"""Tokens for tests: who makes them out, and the keys that they are signed with."""

import json
import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER, AUDIENCE = "https://login.example.com", "kohort"


@cache
def rsa_key(name: str = "ours", bits: int = 2048) -> rsa.RSAPrivateKey:  # noqa: ARG001 - another name, another key
    return rsa.generate_private_key(65_537, bits)


@cache
def ec_key(curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public(algorithm: str, key: Any, **more: Any) -> dict[str, Any]:
    """A key as it is published."""
    return json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key())) | more


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys or [public("RS256", rsa_key(), kid="k1")]})


def claims(**changed: Any) -> dict[str, Any]:
    """Of a token that counts; None takes one away."""
    now = int(time.time())
    all_of_them = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 3600, **changed}
    return {name: value for name, value in all_of_them.items() if value is not None}


def token(key: Any = None, algorithm: str = "RS256", *, header: dict[str, Any] | None = None, **changed: Any) -> str:
    """A token that counts, but for what is changed of it."""
    return jwt.encode(
        claims(**changed), key or rsa_key(), algorithm, headers={"kid": "k1"} if header is None else header
    )


def message(text: str, authorization: str = "", more: str = "") -> bytes:
    head = f"n,a={authorization}," if authorization else "n,,"
    return f"{head}\x01auth=Bearer {text}\x01{more}\x01".encode()
