"""OAUTHBEARER: which tokens count, and where the keys come from that they are signed with."""

import base64
import json
import logging
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kohort.broker.security.jwks import BadKeys, parse_keys
from kohort.broker.setting_kinds import BadSetting
from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security import certificates, tokens
from tests.broker.security.logins import OPEN_AND_SASL, SASL_AUTHENTICATE, at_sasl, say
from tests.broker.wire_client import Closed

METADATA = 3
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
INVALID = b'{"status":"invalid_token"}'
EXPECTED = {
    **OPEN_AND_SASL,
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.expected.audience": f"somebody else, {tokens.AUDIENCE}",
    "sasl.oauthbearer.expected.issuer": tokens.ISSUER,
}
P_384 = ec.SECP384R1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_text(
        tokens.key_set(
            tokens.public("RS256", tokens.rsa_key(), kid="k1"),
            tokens.public("PS512", tokens.rsa_key(), kid="only-ps512", alg="PS512"),
            tokens.public("ES256", tokens.ec_key(), kid="ec"),
            tokens.public("ES384", tokens.ec_key(P_384), kid="ec-384"),
            tokens.public("EdDSA", tokens.ed_key(), kid="ed"),
            tokens.public("RS256", tokens.rsa_key("for-encryption"), kid="enc", use="enc"),
            {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"s" * 64).decode()},
        )
    )
    with running(settings={**EXPECTED, "sasl.oauthbearer.jwks.location": str(keys)}) as broker:
        yield broker


def refused(broker: Running, text: str) -> str:
    """Why a token does not count; an empty text if it does."""
    with at_sasl(broker) as client:
        answer = say(client, "OAUTHBEARER", tokens.message(text))
        assert answer.error_code == ErrorCode.NONE
        if answer.auth_bytes == b"":
            assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
            return ""
        assert answer.auth_bytes == INVALID
        last = client.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"\x01")
        assert last.error_code == FAILED
        assert text[20:] not in last.error_message
        with pytest.raises(Closed):
            client.receive()
        return last.error_message


Text = str | Callable[[], str]
"""A token; one whose time matters is made when it is needed, for tests may have to wait for their turn."""


def as_text(text: Text) -> str:
    return text if isinstance(text, str) else text()


def now() -> int:
    seconds: int = tokens.claims()["iat"]
    return seconds


@pytest.mark.parametrize(
    "text",
    [
        tokens.token(),
        tokens.token(algorithm="RS512"),
        tokens.token(algorithm="PS256"),
        tokens.token(algorithm="PS512", header={"kid": "only-ps512"}),
        tokens.token(tokens.ec_key(), "ES256", header={"kid": "ec"}),
        tokens.token(tokens.ec_key(), "ES256", header={}),  # one key could be meant
        tokens.token(tokens.ec_key(P_384), "ES384", header={"kid": "ec-384"}),
        tokens.token(tokens.ed_key(), "EdDSA", header={"kid": "ed"}),
        tokens.token(aud=["others", tokens.AUDIENCE]),
        tokens.token(aud="somebody else"),
        lambda: tokens.token(nbf=now()),
        lambda: tokens.token(exp=now() - 20),  # clocks differ
        tokens.token(scope="read write"),
        tokens.token(scope=["read", "write"]),
    ],
)
def test_a_token_that_is_signed_and_meant_for_us_and_in_time_counts(broker: Running, text: Text) -> None:
    assert refused(broker, as_text(text)) == ""


PUBLIC = tokens.rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def forged(header: dict[str, Any], secret: bytes = b"") -> str:
    """Signed by nobody, or with something that everybody knows."""
    import hashlib
    import hmac

    parts = [json.dumps(part).encode() for part in (header, tokens.claims())]
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = hmac.digest(secret, text, hashlib.sha256) if secret else b"x"
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (tokens.token(tokens.rsa_key("others")), "Signature verification failed"),
        (tokens.token(tokens.rsa_key("for-encryption"), header={"kid": "enc"}), "no key 'enc'"),
        (tokens.token(header={"kid": "k2"}), "no key 'k2'"),
        (tokens.token(algorithm="PS512", header={}), "no key None"),  # several could be meant
        (tokens.token(header={"kid": "only-ps512"}), "no key 'only-ps512' for 'RS256'"),
        (forged({"alg": "none"}), "no key None for 'none'"),
        (forged({"alg": "none", "kid": "k1"}), "no key 'k1' for 'none'"),
        (forged({"alg": "HS256", "kid": "k1"}, PUBLIC), "no key 'k1' for 'HS256'"),
        (forged({"alg": "HS256", "kid": "shared"}, b"s" * 64), "no key 'shared' for 'HS256'"),
        (forged({"alg": "RS256", "kid": 7}), "Key ID header parameter must be a string"),
        (forged({"kid": "k1"}), "a header that is not understood"),
        (tokens.token(header={"kid": "k1", "crit": ["x"], "x": 1}), "critical extension"),
        (tokens.token()[:-8] + "AAAAAAAA", "Signature verification failed"),
        (lambda: tokens.token(exp=now() - 31), "Signature has expired"),
        (tokens.token(exp=None), 'missing the "exp" claim'),
        (tokens.token(exp="soon"), "Expiration Time claim (exp) must be an integer"),
        (lambda: tokens.token(nbf=now() + 60), "not yet valid"),
        (lambda: tokens.token(iat=now() + 60), "not yet valid"),
        (tokens.token(iat=None), 'missing the "iat" claim'),
        (tokens.token(iss="https://login.example.org"), "Invalid issuer"),
        (tokens.token(iss=None), 'missing the "iss" claim'),
        (tokens.token(aud="others"), "Audience doesn't match"),
        (tokens.token(aud=None), 'missing the "aud" claim'),
        (tokens.token(sub=None), 'missing the "sub" claim'),
        (tokens.token(sub=" "), "sub is no name"),
        (tokens.token(scope=[1]), "scopes that are no names"),
        (tokens.token(scope={"read": True}), "scopes that are no names"),
        (tokens.token(scope="read read"), "a scope that is there twice"),
    ],
)
def test_any_other_does_not(broker: Running, text: Text, reason: str) -> None:
    assert reason in refused(broker, as_text(text))


def test_who_it_is_may_stand_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(tokens.key_set())
    settings = {
        **EXPECTED,
        "sasl.oauthbearer.jwks.location": str(tmp_path / "keys.json"),
        "sasl.oauthbearer.sub.claim.name": "client_id",
        "sasl.oauthbearer.scope.claim.name": "scp",
    }
    with running(settings=settings) as broker, at_sasl(broker) as client:
        text = tokens.token(sub="17", client_id="billing", scope=[1], scp="read")
        assert say(client, "OAUTHBEARER", tokens.message(text)).error_code == ErrorCode.NONE
        assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
        assert broker.principals == ["User:billing"]


@pytest.mark.parametrize(
    ("said", "is_right"),
    [
        (tokens.message(tokens.token(), authorization="alice"), True),
        (tokens.message(tokens.token(), more="traceId=123\x01"), True),
        (tokens.message(tokens.token(), authorization="bob"), False),
        (b"", False),
        (b"\xff", False),
        (tokens.token().encode(), False),
        (b"n,,\x01auth=Bearer \x01\x01", False),
        (b"n,,\x01auth=Basic YTpi\x01\x01", False),
        (b"n,,\x01\x01", False),
        (b"p=tls-unique,,\x01auth=Bearer a.b.c\x01\x01", False),
    ],
)
def test_a_message_has_its_form(broker: Running, said: bytes, is_right: bool) -> None:
    with at_sasl(broker) as client:
        answer = say(client, "OAUTHBEARER", said)
        assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE if is_right else FAILED, b"")


def test_a_login_counts_no_longer_than_its_token(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(tokens.key_set())
    settings = {
        **EXPECTED,
        "sasl.oauthbearer.jwks.location": str(tmp_path / "keys.json"),
        "connections.max.reauth.ms": "3600000",
    }
    with running(settings=settings) as broker, at_sasl(broker) as client, at_sasl(broker) as other:
        answer = say(client, "OAUTHBEARER", tokens.message(tokens.token(exp=now() + 600)))
        assert 500 < answer.session_lifetime.total_seconds() <= 600
        answer = say(other, "OAUTHBEARER", tokens.message(tokens.token(exp=now() + 36_000)))
        assert answer.session_lifetime.total_seconds() == 3600


def test_keys_in_a_file_change_while_the_broker_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys.json"
    file.write_text(tokens.key_set())
    newer = tokens.token(tokens.rsa_key("newer"), header={"kid": "k2"})
    with running(settings={**EXPECTED, "sasl.oauthbearer.jwks.location": str(file)}) as broker:
        refresh: Callable[[], None] = broker.server.entrances[1].refresh
        assert (refused(broker, tokens.token()) == "", refused(broker, newer) == "") == (True, False)
        file.write_text(tokens.key_set(tokens.public("RS256", tokens.rsa_key("newer"), kid="k2")))
        broker.on_loop(refresh)
        assert (refused(broker, tokens.token()) == "", refused(broker, newer) == "") == (False, True)
        file.write_text("no keys")
        with caplog.at_level(logging.ERROR):
            broker.on_loop(refresh)
            broker.on_loop(refresh)
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
            "the keys of tokens stay as they were"
        ]
        assert refused(broker, newer) == ""


class Publisher(BaseHTTPRequestHandler):
    """Where keys are published."""

    keys: ClassVar[str] = ""
    status: ClassVar[int] = 200
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(self.keys.encode())

    def log_message(self, *_: object) -> None:
        """Nobody wants to read it."""


@contextmanager
def publishing(keys: str, status: int = 200) -> Iterator[tuple[str, type[Publisher]]]:
    """An address where keys are, and how to change what is there."""
    publisher = type("OnePublisher", (Publisher,), {"keys": keys, "status": status, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), publisher)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.file_of(certificates.server()))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"https://localhost:{server.server_address[1]}/keys", publisher
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class TestKeysAtAnAddress:
    @pytest.fixture(autouse=True)
    def trust(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", certificates.authority_file())

    def settings(self, url: str, **more: str) -> dict[str, str]:
        return {
            **EXPECTED,
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "10",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "20",
            **more,
        }

    def test_they_are_fetched_and_again_when_a_key_is_not_known(self) -> None:
        newer = tokens.token(tokens.rsa_key("newer"), header={"kid": "k2"})
        with publishing(tokens.key_set()) as (url, publisher), running(settings=self.settings(url)) as broker:
            wait_for(lambda: refused(broker, tokens.token()) == "")
            assert refused(broker, newer)
            publisher.keys = tokens.key_set(tokens.public("RS256", tokens.rsa_key("newer"), kid="k2"))
            wait_for(lambda: refused(broker, newer) == "")

    def test_they_are_fetched_again_after_a_while(self) -> None:
        often = {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "50"}
        with publishing(tokens.key_set()) as (url, publisher), running(settings=self.settings(url, **often)):
            wait_for(lambda: len(publisher.asked) >= 3)

    def test_what_cannot_be_fetched_changes_nothing_and_is_tried_again(self, caplog: pytest.LogCaptureFixture) -> None:
        with (
            caplog.at_level(logging.ERROR),
            publishing("no keys") as (url, publisher),
            running(settings=self.settings(url)) as broker,
        ):
            wait_for(lambda: len(publisher.asked) >= 2)
            assert refused(broker, tokens.token())
            publisher.keys = tokens.key_set()
            wait_for(lambda: refused(broker, tokens.token()) == "")
        assert any("it is not JSON" in record.getMessage() for record in caplog.records)

    def test_nobody_is_sent_elsewhere(self) -> None:
        with (
            publishing(tokens.key_set(), status=302) as (url, publisher),
            running(settings=self.settings(url)) as broker,
        ):
            wait_for(lambda: len(publisher.asked) >= 3)
            assert set(publisher.asked) == {"/keys"}
            assert refused(broker, tokens.token())

    def test_an_answer_that_is_too_large_is_not_read_to_its_end(self, caplog: pytest.LogCaptureFixture) -> None:
        with (
            caplog.at_level(logging.ERROR),
            publishing(" " * (2 << 20) + tokens.key_set()) as (url, _),
            running(settings=self.settings(url)) as broker,
        ):
            wait_for(lambda: any("more than 1048576 bytes" in record.getMessage() for record in caplog.records))
            assert refused(broker, tokens.token())

    def test_an_address_that_nobody_vouches_for_is_not_believed(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", certificates.authority_file("others"))
        with (
            caplog.at_level(logging.ERROR),
            publishing(tokens.key_set()) as (url, publisher),
            running(settings=self.settings(url)) as broker,
        ):
            wait_for(lambda: any("certificate verify failed" in record.getMessage() for record in caplog.records))
            assert publisher.asked == []
            assert refused(broker, tokens.token())


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it was never so")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it has no list of keys"),
        ('{"keys": {}}', "it has no list of keys"),
        ('{"keys": []}', "no key that signatures can be checked with"),
        ('{"keys": [1, null, {}, {"kty": "RSA"}, {"kty": ["RSA"]}]}', "no key that"),
        (tokens.key_set({"kty": "oct", "k": "c2VjcmV0"}), "no key that"),
        (tokens.key_set(tokens.public("RS256", tokens.rsa_key("small", 1024))), "no key that"),
        (tokens.key_set(tokens.public("RS256", tokens.rsa_key(), alg="HS256")), "no key that"),
        (tokens.key_set(tokens.public("RS256", tokens.rsa_key(), kid=7)), "no key that"),
    ],
)
def test_what_is_no_set_of_keys_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadKeys) as refusal:
        parse_keys(text.encode())
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"sasl.oauthbearer.expected.issuer": ""}, "expected.issuer"),
        ({"sasl.oauthbearer.expected.audience": ""}, "expected.audience"),
        ({"sasl.oauthbearer.jwks.location": "/no/such/file"}, "/no/such/file: No such file"),
        ({"sasl.oauthbearer.jwks.location": ""}, "the keys that tokens are signed with"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "https://x/"}, "the keys that tokens are signed with"),
    ],
)
def test_nothing_is_left_open(tmp_path: Path, settings: dict[str, str], reason: str) -> None:
    (tmp_path / "keys.json").write_text(tokens.key_set())
    both = {**EXPECTED, "sasl.oauthbearer.jwks.location": str(tmp_path / "keys.json"), **settings}
    with pytest.raises(BadSetting) as refusal, running(settings=both):
        pass
    assert reason in str(refusal.value)
