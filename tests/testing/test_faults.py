"""Requests that fail, are dropped or wait, as ordered."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from kio.index import load_request_schema

from kohort.broker.api import all_apis
from kohort.errors import ErrorCode
from kohort.testing import Broker, NotPossible
from kohort.testing.faults import key_of
from tests.broker.data_plane import batch, fetch_request, produce_request, values
from tests.broker.wire_client import Closed, WireClient
from tests.testing.members import (
    GROUP,
    OFFSET_COMMIT,
    TOPIC,
    client,
    commit,
    commit_request,
    committed,
    heartbeat,
    member,
)

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
VERSIONS = [(api.key, version) for api in all_apis().values() for version in range(api.first, api.last + 1)]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic(TOPIC)
        yield broker


@pytest.fixture
def asking(broker: Broker) -> Iterator[WireClient]:
    with client(broker) as asking:
        yield asking


def sample(schema: type[Any]) -> dict[str, Any]:
    """A request with one entry in each of its arrays."""
    hints = get_type_hints(schema)
    found: dict[str, Any] = {}
    for field in fields(schema):
        hint = hints[field.name]
        for part in (hint, *get_args(hint)):
            if get_origin(part) is tuple:
                element = get_args(part)[0]
                plain = {"string": TOPIC, "int32": 3, "int64": 3}.get(field.metadata.get("kafka_type", ""))
                found[field.name] = [sample(element) if is_dataclass(element) else plain]
        if field.metadata.get("kafka_type") == "string":
            found.setdefault(field.name, "some name")
        if field.name in ("partition", "partition_index", "index"):
            found[field.name] = 3
    return found


def errors(answer: Any) -> list[int]:
    """Every error in an answer."""
    found = []
    for field in fields(answer):
        value = getattr(answer, field.name)
        if field.metadata.get("kafka_type") == "error_code":
            found.append(int(value))
        for one in value if isinstance(value, tuple) else [value]:
            if is_dataclass(one):
                found += errors(one)
    return found


@pytest.mark.parametrize("applied", [False, True], ids=["refused", "applied"])
def test_every_version_of_every_api_can_fail(applied: bool) -> None:
    wanted = ErrorCode.UNKNOWN_SERVER_ERROR
    with Broker() as broker:
        broker.create_topic(TOPIC)
        for key, version in VERSIONS:
            if applied and key not in (METADATA, OFFSET_COMMIT, API_VERSIONS):
                continue
            request = sample(load_request_schema(key, version))
            request |= {"acks": 1} if key == PRODUCE else {}
            broker.fail_next(key, int(wanted), applied=applied)
            with client(broker) as asking:
                told = errors(asking.ask(key, version, **request))
            assert told, (key, version)
            assert set(told) == {wanted}, (key, version)


def test_apis_go_by_their_kafka_names() -> None:
    for key, api in all_apis().items():
        name = load_request_schema(key, api.last).__name__.removesuffix("Request")
        assert key_of(name) == key_of(key) == key
    for unknown in ("OffsetComit", 999):
        with pytest.raises(NotPossible):
            key_of(unknown)


def test_an_answer_that_fails_is_about_what_was_asked(broker: Broker, asking: WireClient) -> None:
    broker.fail_next("OffsetCommit", "NOT_COORDINATOR")
    topic = asking.ask(OFFSET_COMMIT, 7, **commit_request(9, partition=4)).topics[0]
    assert topic.name == TOPIC
    assert (topic.partitions[0].partition_index, topic.partitions[0].error_code) == (4, 16)
    assert broker.groups() == {}


def test_a_commit_that_would_be_answered_without_ado_fails_too(broker: Broker, asking: WireClient) -> None:
    broker._call(lambda inner: inner.short_way.open())
    assert [commit(asking, offset) for offset in (5, 6)] == [0, 0]
    broker.fail_next("OffsetCommit", "NOT_COORDINATOR")
    assert [commit(asking, offset) for offset in (7, 8)] == [ErrorCode.NOT_COORDINATOR, 0]
    assert committed(asking) == 8


def test_only_as_many_requests_fail_as_ordered(broker: Broker, asking: WireClient) -> None:
    fault = broker.fail_next("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=2)
    assert [commit(asking, 1) for _ in range(3)] == [14, 14, 0]
    assert fault.taken == 2


def test_without_a_number_all_fail_until_the_block_ends(broker: Broker, asking: WireClient) -> None:
    with broker.fail_next("OffsetCommit", "REQUEST_TIMED_OUT", times=None):
        assert [commit(asking, 1) for _ in range(5)] == [7] * 5
    assert commit(asking, 1) == 0


def test_orders_are_served_in_their_order(broker: Broker, asking: WireClient) -> None:
    broker.fail_next("OffsetCommit", "NOT_COORDINATOR")
    broker.fail_next("OffsetCommit", "COORDINATOR_NOT_AVAILABLE")
    assert [commit(asking, 1) for _ in range(3)] == [16, 15, 0]


def test_other_apis_go_on(broker: Broker, asking: WireClient) -> None:
    broker.fail_next("Heartbeat", "REBALANCE_IN_PROGRESS")
    joined = member(asking)
    assert [heartbeat(asking, joined) for _ in range(2)] == [27, 0]


def test_a_fault_can_be_for_some_requests_only(broker: Broker, asking: WireClient) -> None:
    broker.fail_next("OffsetCommit", "NOT_COORDINATOR", when=lambda request: request.group_id == "b")
    assert [commit(asking, 1, group) for group in "abb"] == [0, 16, 0]


def test_a_fault_can_be_for_one_client_only(broker: Broker, asking: WireClient) -> None:
    with client(broker, "other") as other:
        broker.fail_next("OffsetCommit", "NOT_COORDINATOR", client_id="other")
        assert [commit(asking, 1), commit(other, 1), commit(other, 1)] == [0, 16, 0]


def test_a_request_can_be_applied_and_fail_all_the_same(broker: Broker, asking: WireClient) -> None:
    broker.fail_next("OffsetCommit", "REQUEST_TIMED_OUT", applied=True)
    assert commit(asking, 6) == 7
    assert committed(asking) == 6


@pytest.mark.parametrize("applied", [False, True])
def test_a_dropped_request_ends_its_connection_and_no_other(broker: Broker, asking: WireClient, applied: bool) -> None:
    broker.drop_next("OffsetCommit", applied=applied)
    with client(broker) as unlucky, pytest.raises(Closed):
        commit(unlucky, 8)
    assert committed(asking) == (8 if applied else -1)


def test_a_producer_that_wants_no_answer_loses_its_connection(broker: Broker, asking: WireClient) -> None:
    broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER")
    asking.send(PRODUCE, 8, **produce_request(batch("lost"), acks=0))
    with pytest.raises(Closed):
        asking.receive()


def test_a_held_request_waits_until_it_is_released(broker: Broker, asking: WireClient) -> None:
    fault = broker.hold_next("OffsetCommit")
    asking.send(OFFSET_COMMIT, 5, **commit_request(2))
    fault.wait()
    with client(broker) as other:
        assert committed(other) == -1
        assert not asking.has_answer()
        fault.release()
        assert asking.receive().topics[0].partitions[0].error_code == 0
        assert committed(other) == 2


def test_a_delayed_request_is_served_when_its_time_has_come() -> None:
    with Broker(clock="virtual") as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        fault = broker.delay_next("OffsetCommit", 5_000)
        asking.send(OFFSET_COMMIT, 5, **commit_request(2))
        fault.wait()
        broker.clock.advance(4_000)
        assert not broker.groups()
        broker.clock.advance(1_000)
        assert asking.receive().topics[0].partitions[0].error_code == 0


def test_a_delayed_request_is_served_on_the_real_clock_too(broker: Broker, asking: WireClient) -> None:
    fault = broker.delay_next("OffsetCommit", 20)
    assert commit(asking, 2) == 0
    assert fault.taken == 1


def test_a_delayed_request_can_be_released_before_its_time(broker: Broker, asking: WireClient) -> None:
    with broker.delay_next("OffsetCommit", 60_000) as fault:
        asking.send(OFFSET_COMMIT, 5, **commit_request(2))
        fault.wait()
    assert asking.receive().topics[0].partitions[0].error_code == 0


def test_waiting_for_a_request_that_does_not_come_ends(broker: Broker) -> None:
    with pytest.raises(TimeoutError, match="0 of 1"):
        broker.drop_next("Fetch").wait(timeout_s=0.01)


def test_orders_outlive_a_restart_and_held_requests_do_not(broker: Broker, asking: WireClient) -> None:
    held = broker.hold_next("OffsetCommit")
    asking.send(OFFSET_COMMIT, 5, **commit_request(2))
    held.wait()
    broker.fail_next("OffsetCommit", "NOT_COORDINATOR")
    broker.restart()
    held.release()
    with client(broker) as again:
        assert [commit(again, 1) for _ in range(2)] == [16, 0]
        assert committed(again) == 1
    broker.stop()
    broker.fail_next("OffsetCommit", "NOT_COORDINATOR")
    broker.start()
    with client(broker) as again:
        assert commit(again, 1, GROUP) == 16


def test_a_fetch_and_a_produce_can_fail(broker: Broker, asking: WireClient) -> None:
    broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS")
    for wanted in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE):
        answer = asking.ask(PRODUCE, 8, **produce_request(batch("a")))
        assert answer.responses[0].partition_responses[0].error_code == wanted
    broker.fail_next("Fetch", "NOT_LEADER_OR_FOLLOWER")
    for wanted, found in ((ErrorCode.NOT_LEADER_OR_FOLLOWER, []), (ErrorCode.NONE, ["a"])):
        answer = asking.ask(FETCH, 11, **fetch_request(0, session_id=0, session_epoch=-1))
        partition = answer.responses[0].partitions[0]
        assert (partition.error_code, values(partition.records)) == (wanted, found)


def test_what_there_is_not_cannot_be_ordered(broker: Broker) -> None:
    with pytest.raises(NotPossible, match="OffsetComit"):
        broker.drop_next("OffsetComit")
    with pytest.raises(NotPossible, match="NO_COORDINATOR"):
        broker.fail_next("OffsetCommit", "NO_COORDINATOR")
    with pytest.raises(ValueError, match="0 times"):
        broker.drop_next("OffsetCommit", times=0)
