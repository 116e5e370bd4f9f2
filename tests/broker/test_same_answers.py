"""Answers that `python -m oracle` compares with Kafka's: those that were different once, and those that stay so."""

import time
from collections.abc import Iterator

import pytest

from kohort.errors import ErrorCode
from kohort.records.batch import read_batches
from kohort.records.offsets_topic import OffsetCommitValue, decode_key, decode_value
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

FETCH, OFFSET_COMMIT, FIND_COORDINATOR, API_VERSIONS, CREATE_TOPICS = 1, 8, 10, 18, 19
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, INCREMENTAL_ALTER_CONFIGS = 22, 24, 44


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"offsets.topic.num.partitions": "1"}) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        client.ask(CREATE_TOPICS, 4, topics=[{"name": "orders", "num_partitions": 2, "replication_factor": 1}])
        yield client


def test_whoever_looks_for_a_coordinator_finds_it(client: WireClient) -> None:
    """Repaired: the first search for a coordinator finds it (2.6.3: COORDINATOR_NOT_AVAILABLE at first)"""
    for kind in (0, 1):
        found = client.ask(FIND_COORDINATOR, 2, key="g", key_type=kind)
        assert (found.error_code, found.node_id) == (ErrorCode.NONE, 0)


def test_nobody_coordinates_an_unknown_kind_of_key(client: WireClient) -> None:
    """Chosen: 4.1.0, a search for the coordinator of an unknown kind of key is INVALID_REQUEST (2.6.3:
    UNKNOWN_SERVER_ERROR)."""
    found = client.ask(FIND_COORDINATOR, 2, key="g", key_type=7)
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.INVALID_REQUEST, -1, -1)


def commit(
    client: WireClient, version: int, *topics: tuple[str, list[int]], **more: int
) -> list[tuple[str, list[int]]]:
    client.ask(FIND_COORDINATOR, 0, key="g")
    wanted = [
        {"name": name, "partitions": [{"partition_index": index, "committed_offset": 1} for index in partitions]}
        for name, partitions in topics
    ]
    values = {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": wanted, **more}
    answer = client.ask(OFFSET_COMMIT, version, **values)
    return [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in answer.topics]


def test_one_replica_is_enough(client: WireClient) -> None:
    """Repaired: writes go on whatever min.insync.replicas says, for there is one broker (2.6.3: NOT_ENOUGH_REPLICAS,
    and COORDINATOR_NOT_AVAILABLE from coordinators)
    """
    client.ask(FIND_COORDINATOR, 0, key="g")
    wanted = {"name": "min.insync.replicas", "config_operation": 0, "value": "2"}
    resource = {"resource_type": 2, "resource_name": "__consumer_offsets", "configs": [wanted]}
    [altered] = client.ask(INCREMENTAL_ALTER_CONFIGS, 0, resources=[resource]).responses
    assert altered.error_code == ErrorCode.NONE
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    answer = client.ask(OFFSET_COMMIT, 7, group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_a_commit_is_answered_once_for_each_topic_that_has_partitions(client: WireClient) -> None:
    assert commit(client, 7, ("orders", [])) == []
    assert commit(client, 7, ("orders", [0]), ("none", []), ("orders", [1, 1])) == [("orders", [0, 1])]


def test_partitions_of_a_transaction_are_answered_once(client: WireClient) -> None:
    client.ask(FIND_COORDINATOR, 2, key="t", key_type=1)
    producer = client.ask(INIT_PRODUCER_ID, 1, transactional_id="t", transaction_timeout=1000)
    topics = [{"name": "orders", "partitions": given} for given in ([0], [], [1, 0])]
    answer = client.ask(
        ADD_PARTITIONS_TO_TXN,
        1,
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=topics,
    )
    [topic] = answer.results_by_topic_v3_and_below
    assert [partition.partition_index for partition in topic.results_by_partition] == [0, 1]


def test_an_offset_expires_when_its_time_has_passed_since_the_commit(client: WireClient) -> None:
    before = time.time_ns() // 1_000_000
    commit(client, 2, ("orders", [0]), retention_time=86_400_000)
    wanted = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": "__consumer_offsets", "partitions": [wanted]}]
    answer = client.ask(FETCH, 11, replica_id=-1, max_bytes=1 << 20, session_epoch=-1, topics=topics)
    [batch] = read_batches(answer.responses[0].partitions[0].records)
    [record] = batch.records
    value = decode_value(decode_key(record.key), record.value)
    assert isinstance(value, OffsetCommitValue)
    assert value.commit_timestamp >= before
    assert value.expire_timestamp == value.commit_timestamp + 86_400_000


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("librdkafka", "2.5.0", ErrorCode.NONE),
        ("a", "1", ErrorCode.NONE),
        ("", "1", ErrorCode.INVALID_REQUEST),
        ("two words", "1", ErrorCode.INVALID_REQUEST),
        ("a-", "1", ErrorCode.INVALID_REQUEST),
        ("a", "1?", ErrorCode.INVALID_REQUEST),
        ("a", "1\n", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_whose_software_has_no_proper_name_is_told_so(
    client: WireClient, name: str, version: str, error: ErrorCode
) -> None:
    answer = client.ask(API_VERSIONS, 3, client_software_name=name, client_software_version=version)
    assert answer.error_code == error
    assert bool(answer.api_keys) is (error is ErrorCode.NONE)
