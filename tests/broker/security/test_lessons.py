"""What went wrong in Kafka once, by the numbers of the CVEs, and does not here."""

import ast
import inspect
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.broker.security import jaas, plain, scram, scram_credentials
from kohort.broker.setting_kinds import BadSetting
from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security import tokens
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
from tests.broker.security.logins import (
    plain as plain_message,
)
from tests.broker.wire_client import Closed, WireClient

METADATA, CREATE_TOPICS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 3, 19, 32, 44
A_TOPIC, A_BROKER = 2, 4
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
SETTINGS = {**OPEN_AND_SASL, "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings=SETTINGS) as broker:
        add_users(broker, {"alice": "her password", "mallory": "his password"})
        yield broker


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
class TestCve202456128TheNumberUsedOnceMustComeBack:
    """The number in SCRAM's last message was not compared with the one that was given out."""

    @pytest.mark.parametrize(
        "change", [lambda nonce: nonce[: len("number-used-once")], lambda nonce: nonce[:-1], lambda nonce: nonce + "x"]
    )
    def test_another_number_is_refused_although_the_proof_fits_it(self, broker, mechanism, change) -> None:
        scram = ScramClient(mechanism, "alice", "her password")
        with at_sasl(broker) as client:
            challenge = say(client, mechanism, scram.first()).auth_bytes
            given = dict(part.split("=", 1) for part in challenge.decode().split(","))["r"]
            said = scram.last(challenge, nonce=change(given))
            assert client.ask(SASL_AUTHENTICATE, 2, auth_bytes=said).error_code == FAILED

    @pytest.mark.parametrize("binding", [b"y,,", b"n,a=alice,", b"p=tls-unique,,", b""])
    def test_other_words_about_binding_than_before_are_refused(self, broker, mechanism, binding) -> None:
        scram = ScramClient(mechanism, "alice", "her password")
        with at_sasl(broker) as client:
            assert log_in_by_scram(client, scram, binding=binding or b"n").error_code == FAILED


class TestCve202138153SecretsAreComparedInConstantTime:
    """Passwords were compared byte by byte, and the first that was wrong ended it."""

    def test_no_secret_is_compared_in_another_way(self) -> None:
        compared = [
            ast.unparse(node)
            for module in (plain, scram, scram_credentials)
            for node in ast.walk(ast.parse(inspect.getsource(module)))
            if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        ]
        assert sorted(compared) == [
            "_plain(first['authorization']) != user",  # who is meant, not a secret
            "len(parts) != _PARTS",
            "len(proof) != len(signature)",
        ]
        counts = [
            inspect.getsource(module).count("hmac.compare_digest(") for module in (plain, scram, scram_credentials)
        ]
        assert counts == [2, 3, 1]


class TestCve201712610NobodySpeaksForSomebodyElse:
    """A message that named one user and was proved by another was taken for the first."""

    def test_in_plain(self, broker: Running) -> None:
        with at_sasl(broker) as client:
            assert say(client, "PLAIN", plain_message("mallory", "his password", "alice")).error_code == FAILED

    @pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
    def test_in_scram(self, broker: Running, mechanism: str) -> None:
        scram = ScramClient(mechanism, "mallory", "his password")
        scram.head = "n,a=alice,"
        with at_sasl(broker) as client:
            assert log_in_by_scram(client, scram).error_code == FAILED

    def test_in_oauthbearer(self, tmp_path: Path) -> None:
        with running(settings=with_keys(tmp_path)) as broker, at_sasl(broker) as client:
            said = tokens.message(tokens.token(sub="mallory"), authorization="alice")
            assert say(client, "OAUTHBEARER", said).error_code == FAILED


def with_keys(directory: Path, **more: str) -> dict[str, str]:
    (directory / "keys.json").write_text(tokens.key_set())
    return {
        **OPEN_AND_SASL,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.location": str(directory / "keys.json"),
        "sasl.oauthbearer.expected.audience": tokens.AUDIENCE,
        "sasl.oauthbearer.expected.issuer": tokens.ISSUER,
        **more,
    }


class TestCve202234917WhoIsUnknownGetsLittleMemory:
    """Sizes that somebody named who had not logged in were set aside at once."""

    def test_a_large_size_ends_the_connection_before_anything_is_read(self, broker: Running) -> None:
        for size in (524_289, 100_000_000, 2**31 - 1, -1):
            with at_sasl(broker) as client:
                client.send_raw(size.to_bytes(4, "big", signed=True))
                with pytest.raises(Closed):
                    client.receive()

    def test_the_largest_that_is_allowed_is_not_set_aside_before_it_comes(self, broker: Running) -> None:
        with at_sasl(broker) as client:
            client.send_raw((524_288).to_bytes(4, "big") + b"\0\x24")
            with at_sasl(broker) as other:  # whose answer comes when what was sent before is read
                assert say(other, "PLAIN", plain_message("alice", "her password")).error_code == ErrorCode.NONE

            def held() -> int:
                return max(sys.getsizeof(connection._buffer) for connection in broker.server.connections)

            assert broker.on_loop(held) < 1000

    @pytest.mark.parametrize("length", [2**31 - 1, 524_289, -2])
    def test_a_length_within_a_request_is_not_set_aside_either(self, broker: Running, length: int) -> None:
        with at_sasl(broker) as client:
            client.ask(17, 1, mechanism="PLAIN")
            head = (36).to_bytes(2, "big") + bytes(2) + bytes(4) + b"\xff\xff"
            client.send_frame(head + length.to_bytes(4, "big", signed=True) + b"x")
            with pytest.raises(Closed):
                client.receive()


class TestCve202527817KeysComeFromWhereTheBrokerSaysOnly:
    """The address of keys was taken from a client's settings: any file and any server could be asked for."""

    @pytest.mark.parametrize(
        "url",
        [
            "http://login.example.com/keys",
            "file:///etc/passwd",
            "FILE:/etc/passwd",
            "ftp://login.example.com/keys",
            "//login.example.com/keys",
            "https://",
            "https://user:secret@login.example.com/keys",
            "jar:https://login.example.com/keys!/x",
            "https://[::1/keys",
        ],
    )
    def test_an_address_must_be_https(self, tmp_path: Path, url: str) -> None:
        settings = with_keys(tmp_path) | {
            "sasl.oauthbearer.jwks.location": "",
            "sasl.oauthbearer.jwks.endpoint.url": url,
        }
        with (
            pytest.raises(BadSetting, match="must be an address that begins with https://"),
            running(settings=settings),
        ):
            pass

    def test_it_cannot_be_changed_while_the_broker_runs(self, broker: Running) -> None:
        for name in ("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.jwks.location"):
            for full_name in (name, f"listener.name.sasl_plaintext.{name}"):
                assert alter(broker, A_BROKER, "0", full_name, "https://evil.example.com") == ErrorCode.INVALID_REQUEST

    def test_where_a_token_says_that_its_key_is_nobody_looks(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as evil, running(settings=with_keys(tmp_path)) as broker:
            address = f"https://127.0.0.1:{evil.getsockname()[1]}/keys"
            own = tokens.public("RS256", tokens.rsa_key("evil"))
            for header in ({"jku": address}, {"x5u": address}, {"jwk": own}, {"kid": address}):
                text = tokens.token(tokens.rsa_key("evil"), header={"kid": "k1", **header})
                with at_sasl(broker) as client:
                    assert say(client, "OAUTHBEARER", tokens.message(text)).auth_bytes == b'{"status":"invalid_token"}'
            evil.settimeout(0)
            with pytest.raises(BlockingIOError):
                evil.accept()


class TestCve202325194SettingsNameNothingThatIsRun:
    """A login module of JNDI in a client's settings ran whatever somebody else wanted."""

    @pytest.mark.parametrize(
        "text",
        [
            'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://evil";',
            'os.system required user_a="b";',
            f'{jaas._MODULE}2 required user_a="b";',
        ],
    )
    def test_another_module_is_refused(self, text: str) -> None:
        settings = {**SETTINGS, "listener.name.sasl_plaintext.plain.sasl.jaas.config": text}
        with pytest.raises(BadSetting, match=r"is not org\.apache\.kafka"), running(settings=settings):
            pass

    @pytest.mark.parametrize(
        "name",
        [
            "sasl.jaas.config",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config",
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config",
            "ssl.keystore.location",
            "ssl.engine.factory.class",
            "sasl.server.callback.handler.class",
            "principal.builder.class",
        ],
    )
    def test_nothing_of_it_can_be_changed_while_the_broker_runs(self, broker: Running, name: str) -> None:
        assert alter(broker, A_BROKER, "0", name, "java.lang.Runtime") == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize(
        "name", ["ssl.engine.factory.class", "sasl.server.callback.handler.class", "metric.reporters"]
    )
    def test_there_is_no_setting_that_names_code(self, name: str) -> None:
        with pytest.raises(BadSetting, match="there is no setting"), running(settings={name: "os.system"}):
            pass


class TestCve202431141WhatComesOverTheWireRefersToNothing:
    """`${file:…}` and `${env:…}` in settings that somebody sent told him the broker's files and environment."""

    REFERENCES = ("${env:PATH}", "${file:/etc/passwd:root}", "${dir:/etc:passwd}")

    @pytest.mark.parametrize("reference", REFERENCES)
    def test_a_setting_that_is_sent_is_what_it_says(self, broker: Running, reference: str) -> None:
        with broker.client() as client:
            wanted = {"name": "t", "num_partitions": 1, "replication_factor": 1}
            settings = [{"name": "leader.replication.throttled.replicas", "value": reference}]
            client.ask(CREATE_TOPICS, 5, topics=[wanted], timeout=30_000)
            assert alter(broker, A_TOPIC, "t", settings[0]["name"], reference) == ErrorCode.NONE
            resource = {"resource_type": A_TOPIC, "resource_name": "t", "configuration_keys": [settings[0]["name"]]}
            answer = client.ask(DESCRIBE_CONFIGS, 3, resources=[resource])
            assert answer.results[0].configs[0].value == reference

    @pytest.mark.parametrize("reference", REFERENCES)
    def test_a_number_is_not_fetched_from_elsewhere(self, broker: Running, reference: str) -> None:
        assert alter(broker, A_BROKER, "0", "log.retention.ms", reference) == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize("reference", REFERENCES)
    def test_a_password_that_is_sent_is_what_it_says(self, broker: Running, reference: str) -> None:
        add_users(broker, {"literal": reference}, SHA_256)
        with at_sasl(broker) as client:
            assert log_in_by_scram(client, ScramClient(SHA_256, "literal", reference)).error_code == ErrorCode.NONE


def alter(broker: Running, kind: int, name: str, setting: str, value: str) -> ErrorCode:
    change = {"name": setting, "config_operation": 0, "value": value}
    with WireClient(broker.port_of("PLAINTEXT")) as client:
        resource = {"resource_type": kind, "resource_name": name, "configs": [change]}
        answer = client.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    return ErrorCode(answer.responses[0].error_code)
