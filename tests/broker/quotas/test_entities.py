"""Whom quotas are for, which of them counts, and which there cannot be."""

import math

import pytest

from kohort.broker.quotas.entities import (
    BadQuota,
    checked_quota,
    entity_of,
    entity_of_key,
    log_key,
    precedence,
)


def test_of_the_eight_levels_the_one_that_says_most_counts() -> None:
    assert [dict(entity) for entity in precedence("alice", "app")] == [
        {"user": "alice", "client-id": "app"},
        {"user": "alice", "client-id": None},
        {"user": "alice"},
        {"user": None, "client-id": "app"},
        {"user": None, "client-id": None},
        {"user": None},
        {"client-id": "app"},
        {"client-id": None},
    ]


def test_an_entity_is_the_same_in_whatever_order_it_is_said() -> None:
    assert entity_of([("user", "alice"), ("client-id", None)]) == entity_of([("client-id", None), ("user", "alice")])


@pytest.mark.parametrize(
    "parts",
    [
        [("user", "alice")],
        [("user", None)],
        [("client-id", "user-default"), ("user", None)],
        [("client-id", "<default>"), ("user", "")][:1],
        [("client-id", "\0\"'][,"), ("user", "\u202e")],
    ],
)
def test_an_entity_outlives_its_key_in_the_log(parts: list[tuple[str, str | None]]) -> None:
    entity = entity_of(parts)
    assert log_key(entity)[0] == "quota"
    assert entity_of_key(log_key(entity)) == entity


@pytest.mark.parametrize(
    "parts", [[], [("ip", "10.0.0.1")], [("user", "")], [("user", "a"), ("user", "b")], [("", "a")]]
)
def test_there_are_no_quotas_for_anything_else(parts: list[tuple[str, str | None]]) -> None:
    with pytest.raises(BadQuota):
        entity_of(parts)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer_byte_rate", 0),
        ("producer_byte_rate", -1),
        ("consumer_byte_rate", 1.5),
        ("consumer_byte_rate", math.nan),
        ("request_percentage", math.inf),
        ("producer_byte_rate", 1e19),
        ("controller_mutation_rate", 1),
        ("", 1),
    ],
)
def test_a_quota_that_cannot_be_is_refused(key: str, value: float) -> None:
    with pytest.raises(BadQuota):
        checked_quota(key, value)


def test_rates_of_bytes_are_whole_and_percentages_need_not_be() -> None:
    assert checked_quota("producer_byte_rate", 1024.0000001) == 1024
    assert checked_quota("request_percentage", 0.5) == 0.5
