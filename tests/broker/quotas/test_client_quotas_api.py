"""Quotas are set, described and removed with Kafka's requests, and outlive the broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from tests.broker.quotas.quota_requests import (
    ANY,
    DEFAULT,
    EXACT,
    alter,
    alter_all,
    component,
    describe,
    described,
    entity,
    op,
)
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

RATE = "producer_byte_rate"


@pytest.fixture
def broker() -> Iterator[Running]:
    with running() as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


@pytest.mark.parametrize("version", [0, 1])
def test_what_is_set_is_described(client: WireClient, version: int) -> None:
    ops = [op(RATE, 1024), op("request_percentage", 12.5)]
    assert alter_all(client, (entity(user="alice"), ops), version=version) == [0]
    alter(client, entity(user="alice"), request_percentage=None, consumer_byte_rate=99)
    assert described(client, version=version) == [({"user": "alice"}, {RATE: 1024.0, "consumer_byte_rate": 99.0})]


def test_whoever_has_no_quota_left_is_not_described(client: WireClient) -> None:
    alter(client, entity(user="alice"), producer_byte_rate=1)
    alter(client, entity(user="alice"), producer_byte_rate=None)
    alter(client, entity(user="bob"), producer_byte_rate=None)  # never had any
    assert described(client) == []


def test_quotas_are_there_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        alter(client, entity(user="alice", client_id=None), producer_byte_rate=7)
        alter(client, entity(client_id="a\0b"), producer_byte_rate=8)
        alter(client, entity(client_id="gone"), producer_byte_rate=9)
        alter(client, entity(client_id="gone"), producer_byte_rate=None)
    with running(tmp_path) as broker, broker.client() as client:
        assert described(client) == [
            ({"client-id": None, "user": "alice"}, {RATE: 7.0}),
            ({"client-id": "a\0b"}, {RATE: 8.0}),
        ]
        assert broker.on_loop(lambda: broker.broker.quotas.is_active)


class TestFilters:
    @pytest.fixture(autouse=True)
    def some(self, client: WireClient) -> None:
        for number, whom in enumerate(
            (
                entity(user="alice"),
                entity(user=None),
                entity(user="alice", client_id="app"),
                entity(user="alice", client_id=None),
                entity(client_id="app"),
            ),
            1,
        ):
            alter(client, whom, producer_byte_rate=number)

    @pytest.mark.parametrize(
        ("components", "strict", "found"),
        [
            ([], False, [1, 2, 3, 4, 5]),
            ([], True, []),
            ([("user", EXACT, "alice")], False, [1, 3, 4]),
            ([("user", EXACT, "alice")], True, [1]),
            ([("user", DEFAULT)], True, [2]),
            ([("user", ANY)], True, [1, 2]),
            ([("user", ANY)], False, [1, 2, 3, 4]),
            ([("user", ANY), ("client-id", ANY)], True, [3, 4]),
            ([("client-id", EXACT, "app")], False, [3, 5]),
            ([("client-id", DEFAULT), ("user", EXACT, "alice")], True, [4]),
            ([("user", EXACT, "nobody")], False, []),
        ],
    )
    def test_a_filter_finds_what_fits(
        self, client: WireClient, components: list[tuple[str, int]], strict: bool, found: list[int]
    ) -> None:
        told = described(client, *(component(*one) for one in components), strict=strict)
        assert sorted(int(quotas[RATE]) for _, quotas in told) == found

    @pytest.mark.parametrize(
        ("components", "error"),
        [
            ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
            ([("user", DEFAULT, "alice")], ErrorCode.INVALID_REQUEST),
            ([("user", 3, "alice")], ErrorCode.INVALID_REQUEST),
            ([("user", ANY), ("user", ANY)], ErrorCode.INVALID_REQUEST),
            ([("", ANY)], ErrorCode.INVALID_REQUEST),
            ([("ip", ANY)], ErrorCode.UNSUPPORTED_VERSION),
        ],
    )
    def test_a_filter_that_makes_no_sense_is_refused(
        self, client: WireClient, components: list[tuple[str, int]], error: ErrorCode
    ) -> None:
        answer = describe(client, *(component(*one) for one in components))
        assert (answer.error_code, answer.entries) == (error, None)
        assert answer.error_message


def test_what_cannot_be_is_refused_and_the_rest_is_done(client: WireClient) -> None:
    good = (entity(user="alice"), [op(RATE, 5)])
    refused = [
        ([], [op(RATE, 5)]),
        (entity(user=""), [op(RATE, 5)]),
        (entity(ip="10.0.0.1"), [op(RATE, 5)]),
        (entity(user="bob"), [op("no_such_rate", 5)]),
        (entity(user="bob"), [op("no_such_rate", None)]),
        (entity(user="bob"), [op(RATE, -5)]),
        (entity(user="bob"), [op(RATE, 5.5)]),
        ([*entity(user="a"), *entity(user="b")], [op(RATE, 5)]),
    ]
    assert alter_all(client, *refused, good) == [42] * len(refused) + [0]
    assert described(client) == [({"user": "alice"}, {RATE: 5.0})]


def test_entries_for_the_same_entity_follow_on_each_other(client: WireClient) -> None:
    alice = entity(user="alice")
    assert alter_all(client, (alice, [op(RATE, 5)]), (alice, [op("consumer_byte_rate", 6)])) == [0, 0]
    assert described(client) == [({"user": "alice"}, {RATE: 5.0, "consumer_byte_rate": 6.0})]


def test_what_is_only_validated_is_not_done(client: WireClient) -> None:
    whom = entity(user="alice")
    assert alter_all(client, (whom, [op(RATE, 5)]), (whom, [op(RATE, 0.5)]), validate_only=True) == [0, 42]
    assert described(client) == []
