"""Wrong passwords, many of them: none gets in, nobody else is held up."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.broker.running import Running, running
from tests.broker.test_authentication import Password
from tests.broker.wire_client import Closed
from tests.hostile.attacks import Address, wrong_passwords

METADATA, SASL_HANDSHAKE, SASL_AUTHENTICATE = 3, 17, 36


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"connection.setup.timeout.ms": "500"}) as broker:
        broker.on_loop(lambda: setattr(broker.server.entrances[0], "new_authenticator", Password))
        yield broker


def test_no_wrong_password_gets_in(broker: Running) -> None:
    attack = wrong_passwords(200, mechanism="PASSWORD", wrong=b"open barley")
    assert asyncio.run(attack(Address("127.0.0.1", broker.port))).told == "0 of 200 got in"
    right = wrong_passwords(3, mechanism="PASSWORD", wrong=b"open sesame")  # which shows that it would have been seen
    assert asyncio.run(right(Address("127.0.0.1", broker.port))).told == "3 of 3 got in"


def test_who_does_not_log_in_in_time_is_let_go_of_and_who_does_may_stay_silent(broker: Running) -> None:
    with broker.client() as known, broker.client() as stranger:
        known.ask(SASL_HANDSHAKE, 1, mechanism="PASSWORD")
        assert known.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"open sesame").error_code == 0
        stranger.ask(SASL_HANDSHAKE, 1, mechanism="PASSWORD")
        with pytest.raises(Closed):
            stranger.receive_frame()
        assert known.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
        assert broker.server.limits.given_up == 1
