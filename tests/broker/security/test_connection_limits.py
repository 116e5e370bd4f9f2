"""How many connections there may be, how fast they may come, and what becomes of those that say nothing."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from kohort.broker.security.connection_limits import Admission, ConnectionLimits
from kohort.broker.setting_kinds import BadSetting
from kohort.broker.settings import BrokerConfig, with_settings
from tests.broker.running import running
from tests.broker.wire_client import Closed, WireClient

API_VERSIONS, METADATA = 18, 3
PATIENCE_S = 30.0


class Hand:
    """A clock for whoever counts connections."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def limits_of(**settings: object) -> tuple[ConnectionLimits, Hand]:
    config, hand = replace(BrokerConfig(), **settings), Hand()
    return ConnectionLimits(lambda: config, hand), hand


def admitted(limits: ConnectionLimits, address: str = "10.0.0.1") -> Admission:
    admission = limits.admit(address)
    assert admission is not None
    return admission


def is_served(client: WireClient) -> bool:
    return client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until


class TestCounting:
    def test_when_there_are_as_many_as_there_may_be_the_next_waits_until_one_ends(self) -> None:
        limits, _ = limits_of(max_connections=2)
        first, _ = admitted(limits), admitted(limits, "10.0.0.2")
        assert limits.wait_s() == math.inf
        woken: list[int] = []
        limits.on_room.append(lambda: woken.append(limits.total))
        first.release()
        first.release()  # whoever says it twice frees one place
        assert (woken, limits.wait_s()) == ([1], 0)

    def test_an_address_may_have_as_many_as_it_may(self) -> None:
        limits, _ = limits_of(max_connections_per_ip=1, max_connections_per_ip_overrides="10.0.0.2:2, ::1:0")
        first = admitted(limits)
        assert limits.admit("10.0.0.1") is None
        admitted(limits, "10.0.0.2")
        admitted(limits, "::ffff:10.0.0.2")  # the same, as a socket of both kinds tells it
        assert limits.admit("10.0.0.2") is None
        assert limits.admit("::1") is None
        first.release()
        admitted(limits)
        assert limits.refused == 3

    def test_who_comes_too_fast_is_accepted_later(self) -> None:
        limits, hand = limits_of(max_connection_creation_rate=10, quota_window_num=11)
        accepted = 0
        for _ in range(200):  # 10 a second over 10 s come at once, and then each waits its tenth
            while wait_s := limits.wait_s():
                hand.s += wait_s
            admitted(limits).settle()
            accepted += 1
        assert accepted == 200
        assert 9 < hand.s < 12

    def test_one_that_is_half_open_makes_room_when_others_wait(self) -> None:
        limits, hand = limits_of(max_connections_half_open=2)
        gone: list[str] = []
        first, second = admitted(limits), admitted(limits)
        first.give_up = lambda reason: bool(gone.append("first") or reason)
        second.settle()
        assert limits.wait_s() == 0
        admitted(limits)
        assert limits.wait_s() == 1.0
        hand.s = 0.75
        assert limits.wait_s() == 0.25
        hand.s = 1.0
        assert (limits.wait_s(), gone, limits.given_up) == (0, ["first"], 1)

    def test_nobody_is_half_open_for_ever(self) -> None:
        limits, hand = limits_of(connection_setup_timeout_ms=30_000)
        reasons: list[str] = []
        admitted(limits).give_up = lambda reason: bool(reasons.append(reason)) or True
        admitted(limits).settle()
        hand.s = 30
        limits.end_half_open()
        assert not reasons
        hand.s = 30.1
        limits.end_half_open()
        assert reasons == ["it has not said what it wants for 30 s"]
        assert not limits.half_open


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:x", ":5", "10.0.0.1:-1", "a:99999999999"])
def test_overrides_that_nobody_understands_are_refused(text: str) -> None:
    with pytest.raises(BadSetting, match=r"max\.connections\.per\.ip\.overrides"):
        with_settings(BrokerConfig(), {"max.connections.per.ip.overrides": text})


class TestOnSockets:
    def test_beyond_max_connections_the_next_is_served_when_one_has_ended(self) -> None:
        with running(settings={"max.connections": "2"}) as broker, broker.client() as first, broker.client() as second:
            assert is_served(first)
            assert is_served(second)
            with broker.client() as third:
                third.send(METADATA, 9, topics=[])
                assert is_served(first)
                assert not third.has_answer()
                second.close()
                assert third.receive().cluster_id == "kohort"

    def test_an_address_with_too_many_loses_the_new_one(self) -> None:
        with running(settings={"max.connections.per.ip": "1"}) as broker, broker.client() as first:
            assert is_served(first)
            with broker.client() as second, pytest.raises((Closed, ConnectionError)):
                is_served(second)
            assert is_served(first)
            assert broker.server.limits.refused == 1

    def test_a_host_may_have_more_than_the_others(self) -> None:
        settings = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "localhost:1"}
        with running(settings=settings) as broker, broker.client() as first:
            assert is_served(first)
            with broker.client() as second, pytest.raises((Closed, ConnectionError)):
                is_served(second)

    def test_a_limit_that_is_lifted_while_it_runs_lets_the_next_in(self) -> None:
        with running(settings={"max.connections": "1"}) as broker, broker.client() as first:
            assert is_served(first)
            resource = {
                "resource_type": 4,
                "resource_name": "0",
                "configs": [{"name": "max.connections", "config_operation": 0, "value": "2"}],
            }
            (answer,) = first.ask(44, 1, resources=[resource], validate_only=False).responses
            assert answer.error_code == 0
            with broker.client() as second:
                assert is_served(second)

    def test_who_comes_too_fast_waits_and_is_served(self) -> None:
        settings = {"max.connection.creation.rate": "20", "quota.window.num": "2"}
        with running(settings=settings) as broker:
            began = time.monotonic()
            for _ in range(30):
                with broker.client() as client:
                    assert is_served(client)
            assert time.monotonic() - began > 0.25
            assert broker.server.limits.refused == 0

    def test_who_says_nothing_is_let_go_of(self) -> None:
        with running(settings={"connection.setup.timeout.ms": "200"}) as broker, broker.client() as speaking:
            assert is_served(speaking)
            with broker.client() as silent, pytest.raises(Closed):
                silent.receive_frame()
            assert is_served(speaking)  # silent since, but known
            assert broker.server.limits.given_up == 1

    def test_a_flood_of_silent_connections_keeps_nobody_out(self) -> None:
        with running(settings={"max.connections.half.open": "20"}) as broker:
            silent = [broker.client() for _ in range(50)]
            with broker.client() as client:
                assert is_served(client)
            assert broker.on_loop(lambda: len(broker.server.limits.half_open)) <= 20
            for one in silent:
                one.close()
            wait_until(lambda: broker.on_loop(lambda: broker.server.limits.total) == 0)

    def test_places_are_free_again_when_connections_have_gone(self) -> None:
        with running(settings={"max.connections": "5"}) as broker:
            for _ in range(50):
                with broker.client() as client:
                    assert client.ask(API_VERSIONS, 0).error_code == 0
            wait_until(lambda: broker.on_loop(lambda: broker.server.limits.total) == 0)
            assert broker.on_loop(lambda: len(broker.server.limits.half_open)) == 0
