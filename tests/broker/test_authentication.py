"""Where nobody has to say who he is, and what will happen where somebody has to."""

import hmac
from collections.abc import Iterator, Sequence

import pytest

from kohort.broker.authentication import Reply, Told
from kohort.broker.security.principal import ANONYMOUS, USER, Principal
from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.wire_client import Closed, WireClient

METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 3, 17, 18, 36


@pytest.fixture(scope="module")
def open_broker() -> Iterator[Running]:
    with running() as broker:
        yield broker


class TestWithoutAnybodyToAsk:
    @pytest.mark.parametrize("version", [0, 1])
    def test_a_handshake_comes_at_the_wrong_time(self, open_broker: Running, version: int) -> None:
        with open_broker.client() as client:
            answer = client.ask(SASL_HANDSHAKE, version, mechanism="PLAIN")
            assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())
            assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"  # the connection goes on

    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_credentials_come_at_the_wrong_time(self, open_broker: Running, version: int) -> None:
        with open_broker.client() as client:
            answer = client.ask(SASL_AUTHENTICATE, version, auth_bytes=b"\0me\0secret")
            assert (answer.error_code, answer.auth_bytes) == (ErrorCode.ILLEGAL_SASL_STATE, b"")
            assert answer.error_message
            assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"


class Password:
    """An authenticator with one mechanism and one password, to see where such things go."""

    def __init__(self) -> None:
        self._is_chosen = False
        self._is_right = False

    @property
    def mechanisms(self) -> Sequence[str]:
        return ("PASSWORD",)

    @property
    def is_authenticated(self) -> bool:
        return self._is_right

    @property
    def is_expired(self) -> bool:
        return False

    @property
    def principal(self) -> Principal:
        return Principal(USER, "ali-baba") if self._is_right else ANONYMOUS

    def handshake(self, mechanism: str) -> ErrorCode:
        self._is_chosen = mechanism in self.mechanisms
        return ErrorCode.NONE if self._is_chosen else ErrorCode.UNSUPPORTED_SASL_MECHANISM

    def authenticate(self, data: bytes, told: Told) -> None:
        if not self._is_chosen:
            told(Reply(ErrorCode.ILLEGAL_SASL_STATE, "no mechanism was chosen"))
            return
        self._is_right = hmac.compare_digest(data, b"open sesame")
        told(Reply(ErrorCode.NONE, data=b"welcome", session_lifetime_ms=60_000) if self._is_right else _REFUSED)


_REFUSED = Reply(ErrorCode.SASL_AUTHENTICATION_FAILED, "wrong password")


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running() as broker:
        broker.on_loop(lambda: setattr(broker.server.entrances[0], "new_authenticator", Password))
        yield broker


class TestWithSomebodyToAsk:
    @pytest.fixture
    def client(self, broker: Running) -> Iterator[WireClient]:
        with broker.client() as client:
            yield client

    def log_in(self, client: WireClient, password: bytes = b"open sesame", version: int = 2) -> ErrorCode:
        assert client.ask(SASL_HANDSHAKE, 1, mechanism="PASSWORD").error_code == ErrorCode.NONE
        return client.ask(SASL_AUTHENTICATE, version, auth_bytes=password).error_code

    def test_a_stranger_hears_which_versions_there_are_and_nothing_else(self, client: WireClient) -> None:
        assert client.ask(API_VERSIONS, 0).error_code == ErrorCode.NONE
        client.send(METADATA, 9, topics=[])
        with pytest.raises(Closed):
            client.receive()

    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_who_says_the_right_word_is_served(self, client: WireClient, version: int) -> None:
        client.ask(SASL_HANDSHAKE, 1, mechanism="PASSWORD")
        answer = client.ask(SASL_AUTHENTICATE, version, auth_bytes=b"open sesame")
        assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b"welcome")
        if version >= 1:
            assert answer.session_lifetime.total_seconds() == 60
        assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"

    def test_who_says_a_wrong_word_is_told_so_and_not_served(self, client: WireClient) -> None:
        assert self.log_in(client, b"open barley") == ErrorCode.SASL_AUTHENTICATION_FAILED
        with pytest.raises(Closed):
            client.receive()

    def test_every_connection_has_to_say_it(self, broker: Running, client: WireClient) -> None:
        assert self.log_in(client) == ErrorCode.NONE
        with broker.client() as other:
            other.send(METADATA, 9, topics=[])
            with pytest.raises(Closed):
                other.receive()
        assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"

    def test_an_unknown_mechanism_is_refused_with_those_that_there_are(self, client: WireClient) -> None:
        answer = client.ask(SASL_HANDSHAKE, 1, mechanism="GSSAPI")
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ("PASSWORD",))
        with pytest.raises(Closed):
            client.receive()

    def test_who_has_chosen_no_mechanism_is_told_so_and_not_served(self, client: WireClient) -> None:
        refused = client.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"open sesame")
        assert refused.error_code == ErrorCode.ILLEGAL_SASL_STATE
        with pytest.raises(Closed):
            client.receive()

    def test_bytes_without_a_request_around_them_are_not_served(self, client: WireClient) -> None:
        assert client.ask(SASL_HANDSHAKE, 0, mechanism="PASSWORD").error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        with pytest.raises(Closed):
            client.receive()
