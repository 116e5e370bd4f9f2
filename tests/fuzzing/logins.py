"""Target: what somebody says who logs in, in every mechanism. The first byte chooses which, `0xff` ends a message.

Nobody guesses a password or a key, so half of the ways lead past that: the proof of SCRAM is made with the right
password, and tokens are signed with the right key, whatever else is said. A login that counts although it should not is
a failure, and so is a step that is answered never, twice, or by anything but an outcome.
"""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt

from kohort.broker.broker import Broker
from kohort.broker.security.exchange import Challenge, Exchange, Outcome, Proof, Refusal
from kohort.broker.security.jwks import Keys
from kohort.broker.security.listener_settings import ListenerConfig
from kohort.broker.security.oauthbearer import OAuthBearerExchange, TokenCheck
from kohort.broker.security.plain import PasswordChecks, PlainExchange
from kohort.broker.security.scram import ScramExchange
from kohort.broker.security.scram_credentials import ScramMechanism, credential_of, salted
from kohort.broker.settings import BrokerConfig
from kohort.clock import VirtualClock
from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.log.simulated_files import SimulatedFiles
from tests.broker.security.logins import SALT, ScramClient, plain
from tests.broker.security.tokens import AUDIENCE, ISSUER, claims, ec_key, key_set, message, public
from tests.fuzzing.target import target

_USER, _PASSWORD = "alice", "her password"
_OWN = {"bob": "his password"}
_ITERATIONS = 4096
_END = b"\xff"
_NONCE = "@"
"""Stands for the nonce in what a client says after it has heard that."""
_LEEWAY_S = 30
_SLACK_S = 5
"""Between what the broker calls now and what is called now here."""
_ALGORITHM = "ES256"


def _fail(failure: StorageFailed) -> None:
    raise failure


class _Logins:
    """A broker that knows one user, and one key."""

    def __init__(self) -> None:
        config = BrokerConfig(port=0, data="/memory", log_flush_mode=FlushMode.OS)
        self.loop = asyncio.new_event_loop()
        self._users = Broker(config, SimulatedFiles(), VirtualClock(), self.loop, on_failure=_fail).users
        kept = {
            (_USER, mechanism): credential_of(
                mechanism, salted(mechanism, _PASSWORD, SALT, _ITERATIONS), SALT, _ITERATIONS
            )
            for mechanism in ScramMechanism
        }
        self._users.change(kept, lambda _: None)
        self._checks = PasswordChecks(self._users, self.loop)
        keys = Keys()
        keys.use(key_set(public(_ALGORITHM, ec_key(), kid="k1")).encode())
        self._tokens = TokenCheck(
            ListenerConfig(
                sasl_oauthbearer_expected_audience=(AUDIENCE,),
                sasl_oauthbearer_expected_issuer=ISSUER,
                sasl_oauthbearer_clock_skew_seconds=_LEEWAY_S,
            ),
            keys,
        )

    def plain(self) -> Exchange:
        return PlainExchange(self._checks, _OWN)

    def scram(self, mechanism: ScramMechanism) -> Exchange:
        return ScramExchange(mechanism, self._users)

    def bearer(self) -> Exchange:
        return OAuthBearerExchange(self._tokens)

    def said(self, exchange: Exchange, data: bytes) -> Outcome:
        """What is told of one message."""
        told: list[Outcome] = []
        exchange.step(data, told.append)
        if not told:
            self.loop.run_until_complete(_until(told))
        (outcome,) = told
        assert isinstance(outcome, Challenge | Proof | Refusal)
        return outcome


async def _until(told: list[Outcome]) -> None:
    while not told:
        await asyncio.sleep(0)


_logins = _Logins()


def _fuzz_plain(data: bytes) -> None:
    outcome = _logins.said(_logins.plain(), data)
    if isinstance(outcome, Proof):
        right = [plain(user, word, who) for user, word in (_OWN | {_USER: _PASSWORD}).items() for who in ("", user)]
        assert data in right, "a login without the password"


def _fuzz_scram_untrue(mechanism: ScramMechanism, data: bytes) -> None:
    """Whatever is said, the nonce is another one each time: nobody proves anything."""
    exchange = _logins.scram(mechanism)
    for part in data.split(_END)[:4]:
        outcome = _logins.said(exchange, part)
        assert not isinstance(outcome, Proof), "a login without the password"


def _fuzz_scram(mechanism: ScramMechanism, data: bytes) -> None:
    """By somebody who has the password: a first message, and the last one without its proof."""
    first, _, last = data.partition(_END)
    exchange = _logins.scram(mechanism)
    challenge = _logins.said(exchange, first)
    if not isinstance(challenge, Challenge):
        assert isinstance(challenge, Refusal), "nothing was proved yet"
        return
    first_text, nonce = first.decode(), challenge.data.decode().split(",")[0].removeprefix("r=")
    without_proof = last.decode(errors="replace").replace(_NONCE, nonce)
    binding, authorization, bare = first_text.split(",", 2)
    client = ScramClient(mechanism.sasl_name, _USER, _PASSWORD)
    client.head, client.bare = f"{binding},{authorization},", bare
    outcome = _logins.said(exchange, client.last_with(challenge.data, without_proof))
    if isinstance(outcome, Proof):
        assert outcome.user == _USER, "somebody else"
        assert dict(part.split("=", 1) for part in bare.split(",")[:2])["n"] == _USER, "a name that was not said"
        assert authorization in ("", f"a={_USER}"), "in the name of somebody else"
        head = base64.b64encode(client.head.encode()).decode()
        assert without_proof.split(",")[:2] == [f"c={head}", f"r={nonce}"], "another channel, or an earlier login"
        assert client.is_sure_of(outcome.data), "a broker that nobody can be sure of"


def _fuzz_token(data: bytes) -> None:
    outcome = _logins.said(_logins.bearer(), data)
    assert not isinstance(outcome, Proof) or b"Bearer" in data, "a login without a token"


def _fuzz_signed_token(data: bytes) -> None:
    """A header and claims as they are, signed with the key that is known, and what stands around the token."""
    header, _, rest = data.partition(_END)
    payload, _, head = rest.partition(_END)
    body = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (header, payload))
    signature = jwt.get_algorithm_by_name(_ALGORITHM).sign(body, ec_key())
    token = body + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")
    outcome = _logins.said(_logins.bearer(), head + b"\x01auth=Bearer " + token + b"\x01\x01")
    if isinstance(outcome, Proof):
        _check_counts(json.loads(header), json.loads(payload), outcome)


def _check_counts(header: dict[str, Any], told: dict[str, Any], proof: Proof) -> None:
    now, audience = time.time(), told["aud"]
    assert header["alg"] == _ALGORITHM, "another algorithm than the key's"
    assert told["sub"] == proof.user, "somebody else"
    assert proof.user.strip(), "nobody"
    assert told["iss"] == ISSUER, "made out by somebody else"
    assert AUDIENCE in ([audience] if isinstance(audience, str) else audience), "made out for somebody else"
    assert int(told["exp"]) > now - _LEEWAY_S - _SLACK_S, "over"
    assert int(told.get("nbf", 0)) < now + _LEEWAY_S + _SLACK_S, "not begun"


_WAYS = (
    _fuzz_plain,
    lambda data: _fuzz_scram_untrue(ScramMechanism.SCRAM_SHA_256, data),
    lambda data: _fuzz_scram(ScramMechanism.SCRAM_SHA_256, data),
    lambda data: _fuzz_scram(ScramMechanism.SCRAM_SHA_512, data),
    _fuzz_token,
    _fuzz_signed_token,
)


def _seeds() -> Iterator[bytes]:
    for user, password in (_OWN | {_USER: _PASSWORD, "nobody": "x", "": ""}).items():
        yield b"\0" + plain(user, password)
        yield b"\0" + plain(user, password, user)
    for head in ("n,,", "y,,", f"n,a={_USER},", "p=tls-unique,,"):
        binding = base64.b64encode(head.encode()).decode()
        for bare in (f"n={_USER},r=abc", "n=nobody,r=abc", f"n={_USER},r=abc,tokenauth=true", "m=x,n=a=2Cb,r=abc"):
            for way in (1, 2, 3):
                yield bytes([way]) + f"{head}{bare}".encode() + _END + f"c={binding},r={_NONCE}".encode()
    yield b"\4" + message("eyJhbGciOiJub25lIn0.e30.e30")
    for header in (
        {"alg": _ALGORITHM, "kid": "k1"},
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": _ALGORITHM, "crit": []},
    ):
        for changed in ({}, {"aud": [AUDIENCE]}, {"exp": 1}, {"sub": " "}, {"nbf": 1 << 40}, {"scope": "a a"}):
            payload = json.dumps(claims(iat=1, **({"exp": 1 << 35} | changed)))
            yield b"\5" + json.dumps(header).encode() + _END + payload.encode() + _END + b"n,,"


@target("logins", _seeds)
def fuzz_login(data: bytes) -> None:
    if data:
        _WAYS[data[0] % len(_WAYS)](data[1:])
