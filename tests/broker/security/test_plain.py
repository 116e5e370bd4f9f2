"""PLAIN: names and passwords of the settings, and of the users that the broker keeps."""

from collections.abc import Iterator

import pytest

from kohort.broker.security.jaas import users_in
from kohort.broker.setting_kinds import BadSetting
from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security.logins import OPEN_AND_SASL, SHA_256, SHA_512, add_users, at_sasl, plain, say
from tests.broker.wire_client import Closed

METADATA = 3
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    **OPEN_AND_SASL,
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{MODULE} username="broker" password="broker-secret" user_alice="her password" user_both="of the settings";'
    ),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings=SETTINGS) as broker:
        add_users(broker, {"kept-256": "kept password"}, SHA_256)
        add_users(broker, {"kept-512": "kept password"}, SHA_512)
        add_users(broker, {"both": "of the broker"})
        yield broker


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("alice", "her password"),
        ("kept-256", "kept password"),
        ("kept-512", "kept password"),
        ("both", "of the settings"),
    ],
)
@pytest.mark.parametrize("authorization", [False, True])
def test_who_has_the_password_is_known(broker: Running, user: str, password: str, authorization: bool) -> None:
    with at_sasl(broker) as client:
        answer = say(client, "PLAIN", plain(user, password, user if authorization else ""))
        assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b"")
        assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
        assert broker.principals == [f"User:{user}"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (plain("alice", "his password"), "Invalid username or password"),
        (plain("alice", "her password "), "Invalid username or password"),
        (plain("kept-256", "his password"), "Invalid username or password"),
        (plain("bob", "her password"), "Invalid username or password"),
        (plain("both", "of the broker"), "Invalid username or password"),
        (plain("broker", "broker-secret"), "Invalid username or password"),
        (plain("user_alice", "her password"), "Invalid username or password"),
        (plain("", "her password"), "username not specified"),
        (plain("alice", ""), "password not specified"),
        (plain("alice", "her password", "bob"), "the authorization id is not that of the user"),
        (b"", "expected 3 tokens, got 1"),
        (b"alice\0her password", "expected 3 tokens, got 2"),
        (b"\0alice\0her password\0", "expected 3 tokens, got 4"),
        (b"\0alice\0\xff", "not UTF-8"),
    ],
)
def test_who_has_not_is_told_so_and_not_served(broker: Running, said: bytes, reason: str) -> None:
    with at_sasl(broker) as client:
        answer = say(client, "PLAIN", said)
        assert answer.error_code == FAILED
        assert reason in answer.error_message
        assert "her password" not in answer.error_message
        with pytest.raises(Closed):
            client.receive()


def test_logins_at_the_same_time_do_not_wait_for_each_other(broker: Running) -> None:
    clients = [at_sasl(broker) for _ in range(20)]
    for client in clients:
        client.send(17, 1, mechanism="PLAIN")
        client.send(36, 2, auth_bytes=plain("kept-512", "kept password"))
    for client in clients:
        client.receive()
        assert client.receive().error_code == ErrorCode.NONE
        client.close()


class TestTheLineOfJaas:
    @pytest.mark.parametrize(
        ("text", "users"),
        [
            ("", {}),
            (f"{MODULE};", {}),
            (f'{MODULE} user_a="b";', {"a": "b"}),
            (f"{MODULE}\n  user_a='b'\n  user_c=d ;", {"a": "'b'", "c": "d"}),
            ('user_a="b"', {"a": "b"}),
            (f'{MODULE} user_a="q\\"u\\\\o;te" user_user_b="=x";', {"a": 'q"u\\o;te', "user_b": "=x"}),
            (f'{MODULE} username="x" password="y" user_a.b-c@d="z";', {"a.b-c@d": "z"}),
        ],
    )
    def test_users_stand_in_it(self, text: str, users: dict[str, str]) -> None:
        assert users_in("x", text) == users

    @pytest.mark.parametrize(
        "text",
        [
            f'{MODULE} user_a="hush',
            f'{MODULE} user_="hush";',
            f'{MODULE} user_a="";',
            "user_a",
            f'{MODULE} user_a="hush"; {MODULE} user_b="hush";',
            f'{MODULE} user_a="hush" and more;',
        ],
    )
    def test_what_cannot_be_read_is_refused_and_not_repeated(self, text: str) -> None:
        with pytest.raises(BadSetting) as refusal:
            users_in("x", text)
        assert "hush" not in str(refusal.value)
