"""When committed offsets expire: each of Kafka's rules by name, and our own coordinator asked about the same groups."""

from datetime import datetime
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.clock import VirtualClock
from kohort.group.expiry import expiry_rule
from kohort.group.loading import loaded_groups
from kohort.log.names import TopicPartition
from kohort.records.consumer_protocol import Subscription, encode_subscription
from kohort.records.groups import Group, Member
from kohort.records.offsets_topic import OffsetCommitValue
from kohort.records.state import Committed, GroupTopicPartition, State
from kohort.spark.schema import columns_of
from kohort.spark.tables.expiry import expiry
from tests.spark.tables.data import Row, at, frame, rows_of

MINUTES = 10
RETENTION = MINUTES * 60
HOSTILE = "'; DROP TABLE x; --\x00<b>"


def _group(group: str, subscriptions: Any = (), **changes: Any) -> Row:
    members = [{"member_id": f"m{number}", "subscription": topics} for number, topics in enumerate(subscriptions)]
    row: Row = {
        "group": group,
        "type": "classic",
        "state": "Stable" if members else "Empty",
        "generation": 3,
        "protocol_type": "consumer",
        "partition": 0,
        "member_count": len(members),
        "members": members,
        "since": at(100),
    }
    return row | changes


def _offset(group: str, topic: str = "t", **changes: Any) -> Row:
    row: Row = {
        "group": group,
        "topic": topic,
        "topic_partition": 0,
        "committed_offset": 5,
        "commit_timestamp": at(20),
        "partition": 0,
        "offset": 7,
    }
    return row | changes


CASES: dict[str, tuple[Row, Row, str, datetime | None]] = {
    "an empty group keeps all from when it became empty": (_group("a"), {}, "group_empty", at(100 + RETENTION)),
    "or from the commit, if its record is too old to tell": (
        _group("b", since=None),
        {},
        "group_empty_commit",
        at(20 + RETENTION),
    ),
    "a commit with a retention time keeps that": (
        _group("c"),
        {"expire_timestamp": at(50)},
        "explicit",
        at(50),
    ),
    "a group that has no protocol type is a simple one": (
        _group("d", protocol_type=""),
        {},
        "simple_group",
        at(20 + RETENTION),
    ),
    "a topic that members subscribe to does not expire": (_group("e", [["u"], ["t"]]), {}, "subscribed", None),
    "not even if the commit has its own time": (
        _group("f", [["t"]]),
        {"expire_timestamp": at(50)},
        "subscribed",
        None,
    ),
    "a topic that nobody subscribes to expires": (
        _group("h", [["u"]]),
        {},
        "unsubscribed_topic",
        at(20 + RETENTION),
    ),
    "unless a subscription cannot be read": (_group("i", [["u"], None]), {}, "active_group", None),
    "workers of Kafka Connect keep all": (
        _group("j", [None], protocol_type="connect"),
        {"expire_timestamp": at(50)},
        "active_group",
        None,
    ),
    "and lose it when they are gone": (
        _group("k", protocol_type="connect"),
        {},
        "group_empty",
        at(100 + RETENTION),
    ),
    "a newer group counts from the commit, even when empty": (
        _group("l", type="consumer"),
        {},
        "group_empty_commit",
        at(20 + RETENTION),
    ),
    "and spares what it subscribes to": (_group("m", [["t"]], type="consumer"), {}, "subscribed", None),
    "and not what it does not": (
        _group("n", [["u"]], type="consumer", state="Reconciling"),
        {},
        "unsubscribed_topic",
        at(20 + RETENTION),
    ),
    "a commit whose time nobody can show has no forecast": (
        _group("o", protocol_type=None),
        {"commit_timestamp": None},
        "simple_group",
        None,
    ),
    "what would end after the year 9999 has none either": (
        _group("p", since=datetime(9999, 12, 31, 23, 59, tzinfo=at(0).tzinfo)),
        {},
        "group_empty",
        None,
    ),
    "names are data": (_group(HOSTILE, [[HOSTILE]]), {"topic": HOSTILE}, "subscribed", None),
}


@pytest.fixture(scope="module")
def forecast(spark: SparkSession) -> dict[str, Row]:
    groups = [group for group, _, _, _ in CASES.values()]
    offsets = [_offset(group["group"]) | changes for group, changes, _, _ in CASES.values()]
    offsets += [_offset("without a record"), _offset("pending"), _offset("pending", "u")]
    groups.append(_group("pending"))
    told = expiry(
        frame(spark, "current_offsets", offsets),
        frame(spark, "current_groups", groups),
        frame(spark, "pending_offsets", [_offset("pending") | {"producer_id": p} for p in (1, 2)]),
        retention_minutes=MINUTES,
        now=at(60),
    )
    rows = rows_of(told, "group", "topic")
    assert len(rows) == len(offsets)
    return {row["group"] if row["topic"] != "u" else "u": row for row in rows}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rule(forecast: dict[str, Row], case: tuple[Row, Row, str, datetime | None]) -> None:
    group, _, reason, expires_at = case
    row = forecast[group["group"]]
    assert (row["reason"], row["expires_at"]) == (reason, expires_at)


def test_the_columns_comment_names_every_reason(forecast: dict[str, Row]) -> None:
    (comment,) = (column.comment for column in columns_of("expiry") if column.name == "reason")
    reasons = {row["reason"] for row in forecast.values()}
    assert len(reasons) == 8
    assert all(reason in comment for reason in reasons)


def test_an_offset_of_a_group_without_a_record_is_a_simple_consumers(forecast: dict[str, Row]) -> None:
    row = forecast["without a record"]
    assert (row["reason"], row["group_state"]) == ("simple_group", "Empty")


def test_a_commit_that_a_transaction_holds_stays_and_its_neighbours_do_not(forecast: dict[str, Row]) -> None:
    assert (forecast["pending"]["reason"], forecast["pending"]["expires_at"]) == ("pending_transaction", None)
    assert forecast["u"]["reason"] == "group_empty"


def test_the_time_left_is_counted_from_now_and_may_be_over(forecast: dict[str, Row]) -> None:
    assert forecast["a"]["expires_within_seconds"] == 40 + RETENTION
    assert forecast["c"]["expires_within_seconds"] == -10
    assert forecast["e"]["expires_within_seconds"] is None


def test_our_own_coordinator_forgets_each_offset_at_that_very_millisecond(spark: SparkSession) -> None:
    """Every combination of what the rules ask, loaded into a real group, which is asked before and at the time."""
    state, groups, offsets, pending = State(), [], [], []
    combinations = product(
        ("", "consumer", "connect"), ((), ("t",), ("u",), None), (True, False), (True, False), (0, 1)
    )
    for number, (protocol_type, topics, has_state, has_expiry, is_pending) in enumerate(combinations):
        name = f"g{number}"
        has_members = topics != () and protocol_type != ""
        subscription = b"?" if topics is None else encode_subscription(Subscription(topics=topics))
        member = Member("m", "c", "/h", subscription=subscription, assignment=b"")
        state.groups[name] = Group(
            state="Stable" if has_members else "Empty",
            generation=3 if protocol_type else 0,
            protocol_type=protocol_type,
            protocol="range" if has_members else None,
            state_timestamp=_millis(at(100)) if has_state else -1,
            members=(member,) if has_members else (),
        )
        readable = list(topics) if topics and protocol_type == "consumer" else None
        groups.append(
            _group(
                name,
                [readable] if has_members else [],
                protocol_type=protocol_type,
                since=at(100) if has_state else None,
            )
        )
        expires = at(300) if has_expiry else None
        offsets.append(_offset(name, expire_timestamp=expires))
        value = OffsetCommitValue(5, "", _millis(at(20)), expire_timestamp=_millis(expires) if expires else -1)
        key = GroupTopicPartition(name, "t", 0)
        state.offsets[key] = Committed(7, value)
        if is_pending:
            pending.append(_offset(name, producer_id=number))
            state.pending[number] = {key: Committed(8, value)}
    told = expiry(
        frame(spark, "current_offsets", offsets),
        frame(spark, "current_groups", groups),
        frame(spark, "pending_offsets", pending),
        retention_minutes=MINUTES,
        now=at(0),
    )
    loaded = {group.group_id: group for group in loaded_groups(state, VirtualClock(), lambda _: 0, 0)}
    rows = rows_of(told, "group")
    assert len(rows) == len(loaded) == 96
    for row in rows:
        group = loaded[row["group"]]

        def has_expired(now: int, group: Any = group) -> bool:
            rule = expiry_rule(group, now, RETENTION * 1000)
            return rule is not None and rule(TopicPartition("t", 0))

        if row["expires_at"] is None:
            assert not has_expired(_millis(at(10 * RETENTION))), row
        else:
            expires = _millis(row["expires_at"])
            assert (has_expired(expires - 1), has_expired(expires)) == (False, True), row


def _millis(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
