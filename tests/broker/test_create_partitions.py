"""CreatePartitions over a socket, in every version."""

from collections.abc import Iterator

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

API = 37
CREATE_TOPICS, METADATA, FIND_COORDINATOR = 19, 3, 10
VERSIONS = range(4)


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings={"offsets.topic.num.partitions": "2"}) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        client.ask(20, 5, topic_names=["orders"])
        client.ask(
            CREATE_TOPICS, 4, topics=[{"name": "orders", "num_partitions": 2, "replication_factor": 1}], timeout=1_000
        )
        yield client


def grow(client: WireClient, *topics: dict, version: int = 3, validate_only: bool = False) -> list:
    return list(client.ask(API, version, topics=topics, timeout=10_000, validate_only=validate_only).results)


def to(count: int, *brokers: list[int], name: str = "orders") -> dict:
    return {"name": name, "count": count, "assignments": [{"broker_ids": ids} for ids in brokers] if brokers else None}


def leaders(client: WireClient) -> list[int]:
    told = client.ask(METADATA, 12, topics=[{"name": "orders"}], allow_auto_topic_creation=False)
    return [partition.leader_id for partition in told.topics[0].partitions]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_has_grown_when_the_answer_comes(client: WireClient, version: int):
    (answer,) = grow(client, to(5), version=version)

    assert (answer.name, answer.error_code, answer.error_message) == ("orders", ErrorCode.NONE, None)
    assert leaders(client) == [0] * 5


@pytest.mark.parametrize("version", VERSIONS)
def test_new_partitions_can_be_laid_out_by_hand(client: WireClient, version: int):
    (answer,) = grow(client, to(4, [0], [0]), version=version)

    assert answer.error_code == ErrorCode.NONE
    assert leaders(client) == [0] * 4


@pytest.mark.parametrize("version", VERSIONS)
def test_validate_only_makes_nothing(client: WireClient, version: int):
    (good,) = grow(client, to(5), version=version, validate_only=True)
    (bad,) = grow(client, to(1), version=version, validate_only=True)

    assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS)
    assert leaders(client) == [0] * 2


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (to(5, name="unknown"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (to(5, name=""), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (to(2), ErrorCode.INVALID_PARTITIONS),
        (to(1), ErrorCode.INVALID_PARTITIONS),
        (to(0), ErrorCode.INVALID_PARTITIONS),
        (to(-1), ErrorCode.INVALID_PARTITIONS),
        (to(2_147_483_647), ErrorCode.POLICY_VIOLATION),
        (to(4, [0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (to(3, [0], [0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (to(3, [1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (to(3, [0, 0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (to(3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "orders", "count": 3, "assignments": []}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_kafka_refuses_is_refused(client: WireClient, wanted: dict, error: ErrorCode):
    (answer,) = grow(client, wanted)

    assert answer.error_code == error
    assert answer.error_message
    assert leaders(client) == [0] * 2


def test_a_topic_that_is_named_twice_does_not_grow(client: WireClient):
    (answer,) = grow(client, to(3), to(4))

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert leaders(client) == [0] * 2


def test_the_topic_that_groups_live_in_does_not_grow(client: WireClient):
    client.ask(FIND_COORDINATOR, 2, key="g")

    (answer,) = grow(client, to(3, name="__consumer_offsets"))

    assert answer.error_code == ErrorCode.INVALID_PARTITIONS
