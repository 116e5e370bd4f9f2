"""SCRAM: a login that shows the password to nobody."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.broker.security.scram_credentials import ScramCredential, ScramMechanism, credential_of, salted
from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security.logins import (
    OPEN_AND_SASL,
    SASL_AUTHENTICATE,
    SHA_256,
    SHA_512,
    ScramClient,
    add_users,
    at_sasl,
    log_in_by_scram,
    say,
)
from tests.broker.wire_client import Closed

METADATA = 3
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
PASSWORDS = {"alice": "her pässword", "a,b=c": "x", "李": "y"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings=OPEN_AND_SASL) as broker:
        add_users(broker, PASSWORDS)
        yield broker


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize("user", PASSWORDS)
def test_who_has_the_password_is_known_and_sure_of_the_broker(broker: Running, mechanism: str, user: str) -> None:
    scram = ScramClient(mechanism, user, PASSWORDS[user])
    with at_sasl(broker) as client:
        answer = log_in_by_scram(client, scram)
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
        assert scram.is_sure_of(answer.auth_bytes)
        assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
        assert broker.principals == [f"User:{user}"]


@pytest.mark.parametrize("head", ["y,,", "n,a=alice,"])
def test_it_may_be_said_whether_channels_could_be_bound_and_who_is_meant(broker: Running, head: str) -> None:
    scram = ScramClient(SHA_256, "alice", PASSWORDS["alice"])
    scram.head = head
    with at_sasl(broker) as client:
        assert log_in_by_scram(client, scram).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("user", "password"), [("alice", "his password"), ("bob", "his password"), ("alice", "")])
def test_who_has_not_is_told_no_more_than_that(broker: Running, user: str, password: str) -> None:
    with at_sasl(broker) as client:
        answer = log_in_by_scram(client, ScramClient(SHA_256, user, password))
        assert answer.error_code == FAILED
        assert answer.error_message == (
            "Authentication failed due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        )
        assert answer.auth_bytes == b""
        with pytest.raises(Closed):
            client.receive()


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"", "invalid credentials"),
        (b"\xff", "invalid credentials"),
        (b"n,,", "invalid credentials"),
        (b"n,,n=,r=x", "invalid credentials"),
        (b"n,,n=alice,r=", "invalid credentials"),
        (b"n,,n=al=ice,r=x", "invalid credentials"),
        (b"n,,n=alice,r=\x01", "invalid credentials"),
        (b"n,,n=alice,r=x y", "invalid credentials"),
        (b"n,,m=more,n=alice,r=x", "invalid credentials"),
        (b"n,,n=alice,r=" + b"x" * 1025, "invalid credentials"),
        (b"n,,n=alice,r=" + b"x" * 500_000, "invalid credentials"),
        (b"p=tls-unique,,n=alice,r=x", "channel binding is not served"),
        (b"n,,n=alice,r=x,tokenauth=true", "delegation tokens are not served"),
        (b"n,a=bob,n=alice,r=x", "the authorization id is not that of the user"),
    ],
)
def test_a_first_message_that_is_not_right_is_refused(broker: Running, first: bytes, reason: str) -> None:
    with at_sasl(broker) as client:
        answer = say(client, SHA_256, first)
        assert answer.error_code == FAILED
        assert reason in answer.error_message
        with pytest.raises(Closed):
            client.receive()


@pytest.mark.parametrize(
    "last",
    [
        b"",
        b"\xff",
        b"c=biws,r=NONCE",
        b"c=biws,r=NONCE,p=",
        b"c=biws,r=NONCE,p=!",
        b"c=biws,r=NONCE,p=AAAA",
        b"c=biws,r=NONCE,p=" + base64.b64encode(bytes(32)),
        b"c=biws,r=NONCE,p=" + base64.b64encode(bytes(64)),
    ],
)
def test_a_last_message_that_is_not_right_is_refused(broker: Running, last: bytes) -> None:
    with at_sasl(broker) as client:
        challenge = say(client, SHA_256, b"n,,n=alice,r=x")
        nonce = re.match(rb"r=([^,]+)", challenge.auth_bytes)[1]
        answer = client.ask(SASL_AUTHENTICATE, 2, auth_bytes=last.replace(b"NONCE", nonce))
        assert (answer.error_code, answer.auth_bytes) == (FAILED, b"")


def test_every_login_has_another_number_and_what_was_heard_is_of_no_use(broker: Running) -> None:
    with at_sasl(broker) as client, at_sasl(broker) as other:
        scram = ScramClient(SHA_256, "alice", PASSWORDS["alice"])
        first, second = (say(one, SHA_256, scram.first()).auth_bytes for one in (client, other))
        assert first != second
        last = scram.last(first)
        assert client.ask(SASL_AUTHENTICATE, 2, auth_bytes=last).error_code == ErrorCode.NONE
        assert other.ask(SASL_AUTHENTICATE, 2, auth_bytes=last).error_code == FAILED


class TestNobodyFindsOutWhoIsThere:
    def challenge(self, broker: Running, user: str) -> dict[str, str]:
        with at_sasl(broker) as client:
            answer = say(client, SHA_512, f"n,,n={user},r=x".encode())
        assert answer.error_code == ErrorCode.NONE
        return dict(part.split("=", 1) for part in answer.auth_bytes.decode().split(","))

    def test_who_is_not_there_has_a_salt_like_who_is_and_always_the_same(self, broker: Running) -> None:
        known, unknown, again, other = (self.challenge(broker, user) for user in ("alice", "bob", "bob", "eve"))
        assert unknown["s"] == again["s"] != other["s"]
        assert unknown["s"] != known["s"]
        assert unknown["i"] == known["i"] == "4096"
        assert len(base64.b64decode(unknown["s"])) == 32

    def test_the_salt_of_who_is_not_there_outlives_the_broker(self, tmp_path: Path) -> None:
        salts = set()
        for _ in range(2):
            with running(tmp_path, OPEN_AND_SASL) as broker:
                salts.add(self.challenge(broker, "bob")["s"])
        assert len(salts) == 1
        with running(settings=OPEN_AND_SASL) as another:
            assert self.challenge(another, "bob")["s"] not in salts


def test_what_is_kept_is_that_of_the_rfc() -> None:
    """The example of RFC 7677: user `user`, password `pencil`."""
    salt, mechanism = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), ScramMechanism.SCRAM_SHA_256
    credential = credential_of(mechanism, salted(mechanism, "pencil", salt, 4096), salt, 4096)
    assert base64.b64encode(credential.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(credential.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_nothing_secret_is_in_what_is_printed_of_it() -> None:
    assert repr(ScramCredential(b"salt", 4096, b"stored", b"server")) == "ScramCredential(iterations=4096)"
