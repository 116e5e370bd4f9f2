"""Listeners: what the settings may say of them, and what clients are told."""

import pytest

from kohort.broker.security.listener_settings import ListenerConfig, config_of
from kohort.broker.security.listeners import Address, listeners_of, parse_address
from kohort.broker.setting_kinds import BadSetting
from kohort.broker.settings import BrokerConfig, with_settings
from tests.broker.running import Running, running

METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, DESCRIBE_CONFIGS = 3, 10, 60, 32
DEFAULT = Address("127.0.0.1", 9092)
A_BROKER, ALL = 4, None


def parsed(given: dict[str, str]) -> list[str]:
    config = with_settings(BrokerConfig(), given)
    listeners = listeners_of(config.listener, DEFAULT, config.given)
    return [f"{one} {one.protocol} {one.told}" for one in listeners]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ["PLAINTEXT://127.0.0.1:9092 PLAINTEXT 127.0.0.1:9092"]),
        ({"listeners": "PLAINTEXT://localhost:1"}, ["PLAINTEXT://localhost:1 PLAINTEXT localhost:1"]),
        ({"listeners": "plaintext://[::1]:1"}, ["PLAINTEXT://[::1]:1 PLAINTEXT [::1]:1"]),
        ({"listeners": "PLAINTEXT://:9092"}, ["PLAINTEXT://:9092 PLAINTEXT None"]),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, ["PLAINTEXT://0.0.0.0:9092 PLAINTEXT None"]),
        ({"listeners": "PLAINTEXT://[::]:9092"}, ["PLAINTEXT://[::]:9092 PLAINTEXT None"]),
        (
            {
                "listeners": "IN-SIDE://a:1, OUT_SIDE://0.0.0.0:2",
                "listener.security.protocol.map": "IN-SIDE:plaintext,OUT_SIDE:SASL_SSL",
                "advertised.listeners": "OUT_SIDE://broker.example.com:443",
            },
            ["IN-SIDE://a:1 PLAINTEXT a:1", "OUT_SIDE://0.0.0.0:2 SASL_SSL broker.example.com:443"],
        ),
    ],
)
def test_listeners_are_written_as_kafka_has_them(given: dict[str, str], told: list[str]) -> None:
    assert parsed(given) == told


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"listeners": "127.0.0.1:9092"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://127.0.0.1"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://127.0.0.1:65536"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://[::1:9092"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://[1:2:3]:9092"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://a b:9092"}, "is not NAME://HOST:PORT"),
        ({"listeners": "://a:9092"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "names PLAINTEXT twice"),
        ({"listeners": "PLAINTEXT://a:1,SSL://a:1"}, "PLAINTEXT and SSL cannot both be at a:1"),
        ({"listeners": "INSIDE://a:1"}, "does not say which protocol INSIDE has"),
        ({"listeners": "SSL://a:1", "listener.security.protocol.map": "SSL:TLS"}, "'SSL:TLS'"),
        ({"advertised.listeners": "SSL://a:1"}, "tells of SSL, which is none of the listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "nobody can connect to that"),
        ({"listener.name.inside.ssl.client.auth": "none"}, "there is no listener of that name; there are PLAINTEXT"),
        ({"listener.name.plaintext.ssl.client.auth": "maybe"}, "must be none or requested or required"),
        ({"listener.name.plaintext.num.partitions": "1"}, "there is no setting"),
        ({"listener.name.plaintext.listeners": "SSL://a:1"}, "there is no setting"),
        ({"listener.name.plaintext.sasl.jaas.config": "x"}, "there is no setting"),
        ({"listener.name.plaintext.scram-sha-256.sasl.jaas.config": "x"}, "there is no setting"),
        ({"sasl.jaas.config": "x"}, "is of one listener"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "must be PLAIN or SCRAM-SHA-256"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(given: dict[str, str], reason: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        parsed(given)
    assert reason in str(refusal.value)


@pytest.mark.parametrize("text", ["", ":", "a:", "a", "a:-1", "a:1:2", "[]:1", "a:１"])
def test_an_address_is_a_host_and_a_port(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        parse_address(text)


def test_what_is_said_more_precisely_counts_first() -> None:
    given = {
        "connections.max.reauth.ms": "1",
        "listener.name.inside.connections.max.reauth.ms": "2",
        "listener.name.inside.plain.connections.max.reauth.ms": "3",
    }
    config = with_settings(BrokerConfig(), given)

    def found(listener: str, mechanism: str | None = None) -> int:
        return config_of(config.listener, config.given, listener, mechanism).connections_max_reauth_ms

    assert [found("OUTSIDE"), found("INSIDE"), found("INSIDE", "PLAIN"), found("INSIDE", "SCRAM-SHA-256")] == [
        1,
        2,
        3,
        2,
    ]


@pytest.mark.parametrize(
    ("host", "is_so"), [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)]
)
def test_loopback_is_known(host: str, is_so: bool) -> None:
    assert Address(host, 1).is_loopback is is_so
    assert not any(Address(other, 1).is_loopback for other in ("", "0.0.0.0", "::", "10.0.0.1", "broker.example.com"))


def test_no_secret_is_in_what_is_printed_of_settings() -> None:
    secrets = {
        "ssl.key.password": "hush 1",
        "ssl.keystore.key": "hush 2",
        "listener.name.plaintext.plain.sasl.jaas.config": "hush 3",
    }
    config = with_settings(BrokerConfig(), secrets)
    assert "hush" not in repr(config)
    assert ListenerConfig(ssl_key_password="hush") == ListenerConfig(
        ssl_key_password="hush"
    )  # it is there all the same
    assert config.listener.ssl_key_password == "hush 1"


TWO = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://0.0.0.0:0,ELSEWHERE://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,ELSEWHERE:PLAINTEXT",
    "advertised.listeners": "ELSEWHERE://broker.example.com:4711",
}


def addresses_told(broker: Running, listener: str, host: str) -> set[tuple[str, int]]:
    """By every API that tells one."""
    from tests.broker.wire_client import WireClient

    with WireClient(broker.port_of(listener), host) as client:
        (node,) = client.ask(METADATA, 9, topics=[]).brokers
        found = client.ask(FIND_COORDINATOR, 3, key="g", key_type=0)
        (of_cluster,) = client.ask(DESCRIBE_CLUSTER, 0).brokers
    return {(one.host, one.port) for one in (node, found, of_cluster)}


class TestSeveralListeners:
    def test_each_client_is_told_the_address_of_the_listener_that_it_has_come_through(self) -> None:
        with running(settings=TWO) as broker:
            inside, outside = broker.port_of("INSIDE"), broker.port_of("OUTSIDE")
            assert addresses_told(broker, "INSIDE", "127.0.0.1") == {("127.0.0.1", inside)}
            assert addresses_told(broker, "ELSEWHERE", "127.0.0.1") == {("broker.example.com", 4711)}
            # Where it listens on all addresses, the one that this client has used.
            assert addresses_told(broker, "OUTSIDE", "127.0.0.1") == {("127.0.0.1", outside)}
            assert addresses_told(broker, "OUTSIDE", "127.0.0.2") == {("127.0.0.2", outside)}

    def test_ipv6_addresses_work(self) -> None:
        with running(settings={"listeners": "PLAINTEXT://[::1]:0"}) as broker:
            assert addresses_told(broker, "PLAINTEXT", "::1") == {("::1", broker.port)}

    def test_the_port_of_an_advertised_listener_may_be_its_own(self) -> None:
        given = {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": "PLAINTEXT://localhost:0"}
        with running(settings=given) as broker:
            assert addresses_told(broker, "PLAINTEXT", "127.0.0.1") == {("localhost", broker.port)}

    def test_secrets_are_told_nobody_and_said_to_be_there(self) -> None:
        given = {"ssl.key.password": "hush", "listener.name.plaintext.plain.sasl.jaas.config": 'user_a="hush"'}
        with running(settings=given) as broker, broker.client() as client:
            resources = [{"resource_type": A_BROKER, "resource_name": "0", "configuration_keys": ALL}]
            answer = client.ask(
                DESCRIBE_CONFIGS, 3, resources=resources, include_synonyms=True, include_documentation=True
            )
        configs = {config.name: config for config in answer.results[0].configs}
        for name in given:
            config = configs[name]
            assert (config.value, config.is_sensitive, config.config_type, config.read_only) == (None, True, 9, True)
            assert [synonym.value for synonym in config.synonyms] == [None]
            assert config.documentation
        assert "hush" not in repr(answer)
        assert configs["listeners"].value == ""
