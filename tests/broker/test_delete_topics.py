"""DeleteTopics over a socket, in every version."""

import errno
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kohort.errors import ErrorCode
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.files import RealFiles
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

API = 20
METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP = 3, 8, 9, 10, 11
VERSIONS = range(1, 7)


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"offsets.topic.num.partitions": "3"}) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


def delete(client: WireClient, *names: str, version: int = 6) -> list:
    if version < 6:
        return list(client.ask(API, version, topic_names=names, timeout=10_000).responses)
    return list(client.ask(API, version, topics=[{"name": name} for name in names], timeout=10_000).responses)


def make(client: WireClient, *names: str) -> dict[str, UUID]:
    told = client.ask(METADATA, 12, topics=[{"name": name} for name in names], allow_auto_topic_creation=True)
    return {topic.name: topic.topic_id for topic in told.topics}


def exists(client: WireClient, name: str) -> bool:
    told = client.ask(METADATA, 12, topics=[{"name": name}], allow_auto_topic_creation=False)
    return bool(told.topics[0].error_code == ErrorCode.NONE)


def commit(client: WireClient, *topics: str) -> None:
    client.ask(FIND_COORDINATOR, 2, key="g")
    partitions = [{"partition_index": 0, "committed_offset": 7}]
    answer = client.ask(
        OFFSET_COMMIT,
        7,
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[{"name": name, "partitions": partitions} for name in topics],
    )
    assert {partition.error_code for topic in answer.topics for partition in topic.partitions} == {ErrorCode.NONE}


def committed(client: WireClient) -> dict[str, int]:
    answer = client.ask(OFFSET_FETCH, 5, group_id="g", topics=None)
    assert answer.error_code == ErrorCode.NONE
    return {topic.name: topic.partitions[0].committed_offset for topic in answer.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_deleted_topic_is_gone_when_the_answer_comes(client: WireClient, version: int):
    make(client, "orders", "kept")

    (answer,) = delete(client, "orders", version=version)

    assert (answer.name, answer.error_code) == ("orders", ErrorCode.NONE)
    assert not exists(client, "orders")
    assert exists(client, "kept")


def test_a_topic_can_be_deleted_by_its_id(client: WireClient):
    topic_id = make(client, "orders")["orders"]

    (answer,) = client.ask(API, 6, topics=[{"topic_id": topic_id}]).responses

    assert (answer.name, answer.topic_id, answer.error_code) == ("orders", topic_id, ErrorCode.NONE)
    assert not exists(client, "orders")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["unknown", "", "..", "a/b"])
def test_a_topic_that_is_not_there_cannot_be_deleted(client: WireClient, version: int, name: str):
    (answer,) = delete(client, name, version=version)

    assert (answer.name, answer.error_code) == (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_what_names_no_topic_or_two_is_refused(client: WireClient):
    topic_id = make(client, "orders")["orders"]
    stranger = uuid4()

    answers = client.ask(
        API, 6, topics=[{}, {"name": "orders", "topic_id": topic_id}, {"topic_id": stranger}]
    ).responses

    assert [answer.error_code for answer in answers] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert answers[2].topic_id == stranger
    assert exists(client, "orders")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_that_is_named_twice_stays(client: WireClient, version: int):
    make(client, "orders", "old")

    twice, once = delete(client, "orders", "old", "orders", version=version)

    assert (twice.error_code, once.error_code) == (ErrorCode.INVALID_REQUEST, ErrorCode.NONE)
    assert exists(client, "orders")


@pytest.mark.parametrize("version", VERSIONS)
def test_deletion_can_be_switched_off(version: int):
    with running(settings={"delete.topic.enable": "false"}) as broker, broker.client() as client:
        make(client, "orders")

        (answer,) = delete(client, "orders", version=version)

        assert answer.error_code == (ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED)
        assert exists(client, "orders")


def test_what_groups_have_committed_for_a_topic_goes_with_it(client: WireClient):
    make(client, "orders", "kept")
    commit(client, "orders", "kept")

    delete(client, "orders")

    assert committed(client) == {"kept": 7}


def test_it_stays_deleted_after_a_restart(tmp_path: Path):
    settings = {"offsets.topic.num.partitions": "1"}
    with running(tmp_path, settings) as broker, broker.client() as client:
        make(client, "orders", "kept")
        commit(client, "orders", "kept")
        delete(client, "orders")

    with running(tmp_path, settings) as broker, broker.client() as client:
        assert not exists(client, "orders")
        assert exists(client, "kept")
        assert committed(client) == {"kept": 7}


def test_the_offsets_topic_can_be_deleted_and_comes_back_empty(client: WireClient):
    make(client, "orders")
    commit(client, "orders")

    (answer,) = delete(client, "__consumer_offsets")

    assert answer.error_code == ErrorCode.NONE
    gone = client.ask(OFFSET_FETCH, 5, group_id="g", topics=None)
    assert gone.error_code == ErrorCode.NOT_COORDINATOR
    client.ask(FIND_COORDINATOR, 2, key="g")
    assert committed(client) == {}
    commit(client, "orders")
    assert committed(client) == {"orders": 7}


def test_groups_go_on_if_the_offsets_topic_cannot_be_deleted(tmp_path: Path):
    files = FaultyFiles(RealFiles())
    with running(tmp_path, {"offsets.topic.num.partitions": "1"}, files=files) as broker, broker.client() as client:
        make(client, "orders")
        commit(client, "orders")
        broker.on_loop(lambda: setattr(files, "_fault", Fault(call=files.calls, number=errno.EIO)))

        (answer,) = delete(client, "__consumer_offsets")

        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert str(tmp_path) not in answer.error_message
        assert committed(client) == {"orders": 7}


def test_who_waits_in_a_group_is_sent_away_when_the_offsets_topic_goes(broker: Running, client: WireClient):
    client.ask(FIND_COORDINATOR, 2, key="g")
    member = {
        "group_id": "g",
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    first = client.ask(JOIN_GROUP, 3, **member)
    assert first.error_code == ErrorCode.NONE
    with broker.client() as second:
        second.send(JOIN_GROUP, 3, **member)
        while client.ask(12, 2, group_id="g", generation_id=1, member_id=first.member_id).error_code == ErrorCode.NONE:
            pass  # until the group has begun to rebalance, and the second waits for the first

        delete(client, "__consumer_offsets")

        assert second.receive().error_code == ErrorCode.NOT_COORDINATOR
