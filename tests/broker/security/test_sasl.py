"""What holds in every mechanism: in which order things are said, how a login ends, and how it is renewed."""

import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from kohort.broker.setting_kinds import BadSetting
from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security.logins import OPEN_AND_SASL, SASL_AUTHENTICATE, SASL_HANDSHAKE, at_sasl, plain, say
from tests.broker.wire_client import Closed, WireClient

METADATA, API_VERSIONS, PRODUCE = 3, 18, 0
FAILED, ILLEGAL = ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.ILLEGAL_SASL_STATE
SETTINGS = {
    **OPEN_AND_SASL,
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'user_alice="her password" user_bob="his password"',
}
ALICE, BOB = plain("alice", "her password"), plain("bob", "his password")


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with at_sasl(broker) as client:
        yield client


def is_served(client: WireClient) -> bool:
    return client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"


def is_closed(client: WireClient) -> bool:
    try:
        client.receive()
    except Closed:
        return True
    return False


class TestTheOrderOfThings:
    def test_versions_may_be_asked_for_first(self, client: WireClient) -> None:
        assert client.ask(API_VERSIONS, 0).error_code == ErrorCode.NONE
        assert say(client, "PLAIN", ALICE).error_code == ErrorCode.NONE
        assert is_served(client)

    def test_nothing_else_may(self, client: WireClient) -> None:
        client.send(METADATA, 9, topics=[])
        assert is_closed(client)

    def test_nor_may_it_between_the_mechanism_and_what_is_said_in_it(self, client: WireClient) -> None:
        client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.send(METADATA, 9, topics=[])
        assert is_closed(client)

    def test_a_mechanism_is_chosen_once(self, client: WireClient) -> None:
        client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == ILLEGAL
        assert is_closed(client)

    def test_one_that_is_not_enabled_is_refused_with_those_that_are(self, client: WireClient) -> None:
        answer = client.ask(SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-512")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-256")
        assert is_closed(client)

    def test_nothing_is_served_behind_what_was_wrong(self, client: WireClient) -> None:
        client.send(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.send(SASL_AUTHENTICATE, 2, auth_bytes=plain("alice", "wrong"))
        client.send(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.send(SASL_AUTHENTICATE, 2, auth_bytes=ALICE)
        assert client.receive().error_code == ErrorCode.NONE
        assert client.receive().error_code == FAILED
        assert is_closed(client)

    def test_everything_is_served_behind_what_was_right(self, client: WireClient) -> None:
        client.send(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.send(SASL_AUTHENTICATE, 2, auth_bytes=ALICE)
        client.send(METADATA, 9, topics=[])
        assert client.receive().error_code == ErrorCode.NONE
        assert client.receive().error_code == ErrorCode.NONE
        assert client.receive().cluster_id == "kohort"

    def test_who_is_logged_in_for_ever_need_not_log_in_again(self, client: WireClient) -> None:
        assert say(client, "PLAIN", ALICE).session_lifetime.total_seconds() == 0
        answer = client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert answer.error_code == ILLEGAL
        assert client.ask(SASL_AUTHENTICATE, 2, auth_bytes=ALICE).error_code == ILLEGAL
        assert is_served(client)


def test_each_listener_has_its_own_mechanisms() -> None:
    settings = {
        "listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:0",
        "listener.security.protocol.map": "ONE:SASL_PLAINTEXT,TWO:SASL_PLAINTEXT",
        "listener.name.one.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.one.plain.sasl.jaas.config": 'user_alice="her password"',
    }
    with running(settings=settings) as broker:
        told = {}
        for name in ("ONE", "TWO"):
            with WireClient(broker.port_of(name)) as client:
                told[name] = client.ask(SASL_HANDSHAKE, 1, mechanism="NONE").mechanisms
        assert told == {"ONE": ("PLAIN",), "TWO": ("SCRAM-SHA-256", "SCRAM-SHA-512")}
        with WireClient(broker.port_of("ONE")) as client:
            assert say(client, "PLAIN", ALICE).error_code == ErrorCode.NONE


class TestTheDelay:
    def test_a_refusal_takes_its_time_and_holds_up_nobody(self) -> None:
        delayed = {**SETTINGS, "connection.failed.authentication.delay.ms": "1500"}
        with running(settings=delayed) as broker, at_sasl(broker) as client, at_sasl(broker) as other:
            began = monotonic()
            client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
            client.send(SASL_AUTHENTICATE, 2, auth_bytes=plain("alice", "wrong"))
            assert say(other, "PLAIN", ALICE).error_code == ErrorCode.NONE
            assert is_served(other)
            assert not client.has_answer()
            assert client.receive().error_code == FAILED
            assert monotonic() - began >= 1.5
            assert is_closed(client)

    def test_whoever_does_not_wait_for_it_leaves_nothing_behind(self) -> None:
        with running(settings=SETTINGS) as broker, at_sasl(broker) as last:
            for _ in range(20):
                with at_sasl(broker) as client:
                    client.send(SASL_HANDSHAKE, 1, mechanism="PLAIN")
                    client.send(SASL_AUTHENTICATE, 2, auth_bytes=plain("alice", "wrong"))
            assert say(last, "PLAIN", plain("alice", "wrong")).error_code == FAILED
            assert is_closed(last)
            wait_until_nobody_is_connected(broker)

    def test_it_is_shorter_than_a_connection_may_be_idle(self) -> None:
        settings = {**SETTINGS, "connection.failed.authentication.delay.ms": "500", "connections.max.idle.ms": "500"}
        with (
            pytest.raises(BadSetting, match=r"must be less than connections\.max\.idle\.ms"),
            running(settings=settings),
        ):
            pass


def wait_until_nobody_is_connected(broker: Running) -> None:
    for _ in range(500):
        if not broker.principals:
            return
        threading.Event().wait(0.02)
    raise AssertionError(broker.principals)


class TestRenewal:
    LIFETIME_MS = 60_000

    @pytest.fixture
    def clock(self) -> VirtualClock:
        return VirtualClock()

    @pytest.fixture
    def broker(self, clock: VirtualClock) -> Iterator[Running]:
        settings = {**SETTINGS, "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": str(self.LIFETIME_MS)}
        with running(settings=settings, clock=clock) as broker:
            yield broker

    @pytest.fixture
    def client(self, broker: Running) -> Iterator[WireClient]:
        with at_sasl(broker) as client:
            answer = say(client, "PLAIN", ALICE)
            assert answer.session_lifetime.total_seconds() * 1000 == self.LIFETIME_MS
            yield client

    def after(self, broker: Running, clock: VirtualClock, ms: int) -> None:
        broker.on_loop(lambda: clock.advance(ms))

    def logins(self, broker: Running) -> Any:
        return broker.server.traffic.logins

    def test_a_login_that_is_renewed_in_time_goes_on(
        self, broker: Running, client: WireClient, clock: VirtualClock
    ) -> None:
        for _ in range(3):
            self.after(broker, clock, self.LIFETIME_MS - 1)
            assert is_served(client)
            assert say(client, "PLAIN", ALICE).error_code == ErrorCode.NONE
            assert is_served(client)
        assert (self.logins(broker).succeeded, self.logins(broker).renewed) == (4, 3)

    def test_one_that_is_not_ends_the_connection_when_it_is_used(
        self, broker: Running, client: WireClient, clock: VirtualClock
    ) -> None:
        self.after(broker, clock, self.LIFETIME_MS + 1)
        assert not client.has_answer()
        client.send(METADATA, 9, topics=[])
        assert is_closed(client)
        assert self.logins(broker).expired == 1

    def test_one_that_is_over_can_still_be_renewed(
        self, broker: Running, client: WireClient, clock: VirtualClock
    ) -> None:
        self.after(broker, clock, self.LIFETIME_MS * 2)
        assert say(client, "PLAIN", ALICE).error_code == ErrorCode.NONE
        assert is_served(client)

    def test_nobody_becomes_somebody_else(self, client: WireClient) -> None:
        answer = say(client, "PLAIN", BOB)
        assert (answer.error_code, answer.error_message) == (FAILED, "a login cannot be renewed by another user")
        assert is_closed(client)

    def test_nor_in_another_mechanism(self, client: WireClient) -> None:
        answer = say(client, "SCRAM-SHA-256", b"n,,n=alice,r=x")
        assert answer.error_code == FAILED
        assert answer.error_message == "SASL mechanism SCRAM-SHA-256 cannot renew a login by PLAIN"
        assert is_closed(client)

    def test_who_fails_to_renew_is_not_served_any_more(self, client: WireClient) -> None:
        client.send(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.send(SASL_AUTHENTICATE, 2, auth_bytes=plain("alice", "wrong"))
        client.send(METADATA, 9, topics=[])
        assert client.receive().error_code == ErrorCode.NONE
        assert client.receive().error_code == FAILED
        assert is_closed(client)

    def test_nothing_else_is_served_meanwhile(self, client: WireClient) -> None:
        assert client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == ErrorCode.NONE
        client.send(METADATA, 9, topics=[])
        assert is_closed(client)

    def test_it_is_not_renewed_more_than_once_a_second(
        self, broker: Running, client: WireClient, clock: VirtualClock
    ) -> None:
        assert say(client, "PLAIN", ALICE).error_code == ErrorCode.NONE
        assert client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == ILLEGAL
        assert is_served(client)
        self.after(broker, clock, 1000)
        assert say(client, "PLAIN", ALICE).error_code == ErrorCode.NONE

    def test_what_others_asked_before_is_answered_first(self, client: WireClient) -> None:
        client.send(METADATA, 9, topics=[])
        client.send(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        client.send(SASL_AUTHENTICATE, 2, auth_bytes=ALICE)
        client.send(METADATA, 9, topics=[])
        assert client.receive().cluster_id == "kohort"
        assert client.receive().error_code == ErrorCode.NONE
        assert client.receive().error_code == ErrorCode.NONE
        assert client.receive().cluster_id == "kohort"


class TestSizes:
    def test_who_is_not_logged_in_can_say_so_much_and_no_more(self) -> None:
        with running(settings={**SETTINGS, "sasl.server.max.receive.size": "1000"}) as broker:
            with at_sasl(broker) as client:
                client.send_raw((1001).to_bytes(4, "big"))
                assert is_closed(client)
            with at_sasl(broker) as client:
                client.send_raw((1000).to_bytes(4, "big"))
                client.finish_sending()
                assert is_closed(client)

    def test_who_is_logged_in_can_say_what_anybody_can(self) -> None:
        with (
            running(settings={**SETTINGS, "sasl.server.max.receive.size": "1000"}) as broker,
            at_sasl(broker) as client,
        ):
            assert say(client, "PLAIN", ALICE).error_code == ErrorCode.NONE
            topics = [{"name": f"{number:0249}"} for number in range(100)]
            answer = client.ask(METADATA, 9, topics=topics, allow_auto_topic_creation=False)
            assert len(answer.topics) == 100


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms has none for listener SASL_PLAINTEXT"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "the keys that tokens are signed with"),
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": "what?"}, "is not org.apache.kafka"),
    ],
)
def test_a_listener_that_nobody_could_log_in_at_is_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(BadSetting) as refusal, running(settings={**SETTINGS, **settings}):
        pass
    assert reason in str(refusal.value)
