"""Real clients at every kind of listener, in every mechanism: who gets in, and who does not.

The broker runs on the event loop that `kohort serve` has.
"""

import asyncio
import gc
import logging
import time
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError, KafkaError
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens

from kohort.admin.certificates import Issued
from tests.broker.running import Running, running
from tests.broker.security import certificates, tokens
from tests.broker.security.logins import add_users

PATIENCE_S = 30.0
TRUST = {"ssl.truststore.location": certificates.authority_file()}
SETTINGS = {
    "listeners": ",".join(
        f"{name}://127.0.0.1:0" for name in ("PLAINTEXT", "SSL", "MUTUAL", "SASL_PLAINTEXT", "SASL_SSL")
    )
    + ",ELSEWHERE://127.0.0.2:0",
    "listener.security.protocol.map": "MUTUAL:SSL,ELSEWHERE:SSL",
    "advertised.listeners": "SSL://localhost:0,MUTUAL://localhost:0,SASL_SSL://localhost:0",
    "ssl.keystore.location": certificates.file_of(certificates.server()),
    "listener.name.mutual.ssl.client.auth": "required",
    "listener.name.mutual.ssl.truststore.location": certificates.authority_file(),
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "sasl.oauthbearer.expected.audience": tokens.AUDIENCE,
    "sasl.oauthbearer.expected.issuer": tokens.ISSUER,
    "connection.failed.authentication.delay.ms": "10",
}


class Login(NamedTuple):
    """How a client gets in, or tries to."""

    listener: str
    mechanism: str | None = None
    user: str = "alice"
    password: str = "her password"
    token: str | None = None
    trusted: str = "ours"
    shown: Issued | None = None
    host: str = "localhost"

    @property
    def protocol(self) -> str:
        return "SSL" if self.listener in ("MUTUAL", "ELSEWHERE") else self.listener

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_text(tokens.key_set())
    settings = {**SETTINGS, "sasl.oauthbearer.jwks.location": str(keys)}
    with running(settings=settings, new_loop=uvloop.new_event_loop) as broker:
        add_users(broker, {"alice": "her password"})
        yield broker


class Librdkafka:
    def settings(self, broker: Running, login: Login) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap.servers": f"{login.host}:{broker.port_of(login.listener)}",
            "security.protocol": login.protocol,
            "broker.address.family": "v4",
            "socket.timeout.ms": 10_000,
        }
        if login.has_tls:
            found["ssl.ca.location"] = certificates.authority_file(login.trusted)
        if login.shown is not None:
            file = certificates.file_of(login.shown)
            found |= {"ssl.certificate.location": file, "ssl.key.location": file}
        if login.mechanism is not None:
            found["sasl.mechanism"] = login.mechanism
        if login.token is not None:
            found["oauth_cb"] = lambda _: (login.token, time.time() + 3600)
        elif login.mechanism is not None:
            found |= {"sasl.username": login.user, "sasl.password": login.password}
        return found

    def use(self, broker: Running, login: Login, topic: str) -> str:
        settings = self.settings(broker, login)
        producer = Producer(settings)
        producer.poll(0)
        producer.produce(topic, b"a record")
        assert producer.flush(PATIENCE_S) == 0
        consumer = Consumer({**settings, "group.id": f"{topic}-group", "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        try:
            for _ in range(int(PATIENCE_S * 10)):
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    return message.value().decode()
            raise AssertionError("nothing came")
        finally:
            consumer.close()

    def is_refused(self, broker: Running, login: Login) -> bool:
        heard: list[str] = []
        settings = self.settings(broker, login) | {"error_cb": lambda error: heard.append(error.name())}
        client = Producer(settings)
        wait_s = 0.5
        for _ in range(int(PATIENCE_S / wait_s)):
            try:
                client.list_topics(timeout=wait_s)
            except KafkaException:
                client.poll(0)
            else:
                return False
            # In TLS 1.3 a client whose certificate is not good hears of nothing but the end of the connection.
            expected = {"_ALL_BROKERS_DOWN"} if login.listener == "MUTUAL" else {"_AUTHENTICATION", "_SSL"}
            if expected & set(heard):
                return True
        raise AssertionError(heard)


class _Tokens(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


class Aiokafka:
    def settings(self, broker: Running, login: Login) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap_servers": f"{login.host}:{broker.port_of(login.listener)}",
            "security_protocol": login.protocol,
        }
        if login.has_tls:
            found["ssl_context"] = certificates.trusting(login.trusted, shown=login.shown)
        if login.mechanism is not None:
            found["sasl_mechanism"] = login.mechanism
        if login.token is not None:
            found["sasl_oauth_token_provider"] = _Tokens(login.token)
        elif login.mechanism is not None:
            found |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
        return found

    def use(self, broker: Running, login: Login, topic: str) -> str:
        async def story() -> str:
            settings = self.settings(broker, login)
            async with AIOKafkaProducer(**settings) as producer:
                await producer.send_and_wait(topic, b"a record")
            async with AIOKafkaConsumer(
                topic, group_id=f"{topic}-group", auto_offset_reset="earliest", **settings
            ) as consumer:
                return (await consumer.getone()).value.decode()

        return asyncio.run(asyncio.wait_for(story(), PATIENCE_S))

    def is_refused(self, broker: Running, login: Login) -> bool:
        async def story() -> bool:
            producer = AIOKafkaProducer(**self.settings(broker, login))
            try:
                await producer.start()
            except (KafkaConnectionError, KafkaError):
                return True
            finally:
                await producer.stop()
            return False

        return asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


class _OwnTokens(KafkaPythonTokens):
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token

    def extensions(self) -> dict[str, str]:
        return {}


class KafkaPython:
    def settings(self, broker: Running, login: Login) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap_servers": f"{login.host}:{broker.port_of(login.listener)}",
            "security_protocol": login.protocol,
        }
        if login.has_tls:
            found["ssl_cafile"] = certificates.authority_file(login.trusted)
        if login.shown is not None:
            found["ssl_certfile"] = found["ssl_keyfile"] = certificates.file_of(login.shown)
        if login.mechanism is not None:
            found["sasl_mechanism"] = login.mechanism
        if login.token is not None:
            found["sasl_oauth_token_provider"] = _OwnTokens(login.token)
        elif login.mechanism is not None:
            found |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
        return found

    def use(self, broker: Running, login: Login, topic: str) -> str:
        settings = self.settings(broker, login)
        producer = KafkaProducer(**settings)
        producer.send(topic, b"a record").get(PATIENCE_S)
        producer.close()
        consumer = KafkaConsumer(
            topic,
            group_id=f"{topic}-group",
            auto_offset_reset="earliest",
            consumer_timeout_ms=int(PATIENCE_S * 1000),
            **settings,
        )
        try:
            value: str = next(consumer).value.decode()
            return value
        finally:
            consumer.close()

    def is_refused(self, broker: Running, login: Login) -> bool:
        made: list[Any] = []

        def make(**settings: Any) -> Any:
            made.append(KafkaProducer.DEFAULT_CONFIG["kafka_client"](**settings))
            return made[-1]

        logging.disable()  # what is logged keeps sockets that the client has forgotten
        try:
            KafkaProducer(**self.settings(broker, login), bootstrap_timeout_ms=1000, kafka_client=make).close()
        except KafkaPythonError:
            return True
        finally:
            made[0].close()  # the producer forgets it when it cannot connect
            logging.disable(logging.NOTSET)
        return False


@pytest.fixture(scope="module")
def forgetful() -> Iterator[None]:
    """Sockets that kafka-python forgets to close when TLS has failed are lost here, and not in another test."""
    yield
    gc.collect()


CLIENTS = [Librdkafka(), Aiokafka(), KafkaPython()]
with_each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: type(client).__name__)

GOOD = tokens.token()
RIGHT = [
    Login("SSL"),
    Login("MUTUAL", shown=certificates.client("alice")),
    *(
        Login(listener, mechanism, token=GOOD if mechanism == "OAUTHBEARER" else None)
        for listener in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
    ),
]
WRONG = [
    Login("SSL", trusted="others"),
    Login("ELSEWHERE", host="127.0.0.2"),
    Login("MUTUAL"),
    Login("MUTUAL", shown=certificates.client("alice", by="others")),
    Login("SASL_SSL", "SCRAM-SHA-256", trusted="others"),
    *(
        Login(listener, mechanism, password="his password")
        for listener in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    ),
    Login("SASL_SSL", "SCRAM-SHA-512", user="nobody"),
    Login("SASL_PLAINTEXT", "OAUTHBEARER", token=tokens.token(tokens.rsa_key("others"))),
    Login("SASL_SSL", "OAUTHBEARER", token=tokens.token(exp=1)),
]


def name_of(login: Login) -> str:
    changed = [
        field for field in ("user", "trusted", "host", "shown") if getattr(login, field) != Login("")._asdict()[field]
    ]
    return "-".join([login.listener, login.mechanism or "none", *changed])


@with_each_client
@pytest.mark.parametrize("login", RIGHT, ids=name_of)
def test_who_may_come_in_writes_and_reads_in_a_group(broker: Running, client: Any, login: Login) -> None:
    assert client.use(broker, login, f"orders-{uuid.uuid4().hex[:8]}") == "a record"


@pytest.mark.usefixtures("forgetful")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@with_each_client
@pytest.mark.parametrize("login", WRONG, ids=name_of)
def test_who_may_not_is_refused(broker: Running, client: Any, login: Login) -> None:
    assert client.is_refused(broker, login)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@with_each_client
def test_a_broker_whose_certificate_does_not_count_any_more_is_refused(client: Any) -> None:
    own = {"ssl.keystore.location": certificates.file_of(certificates.server(days=-1))}
    with running(settings={**SETTINGS, **own, "sasl.enabled.mechanisms": "PLAIN"}) as broker:
        assert client.is_refused(broker, Login("SSL"))
