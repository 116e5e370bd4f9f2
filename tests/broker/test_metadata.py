"""Metadata over a socket, in every version."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

API = 3
VERSIONS = range(14)
NOT_ASKED = -(1 << 31)
ALL_ON_TOPICS, ALL_ON_CLUSTER = 3576, 8096


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"num.partitions": "2", "offsets.topic.num.partitions": "3"}) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


def ask(client: WireClient, version: int, *names: str, create: bool | None = None):
    more = {} if create is None else {"allow_auto_topic_creation": create}
    return client.ask(API, version, topics=[{"name": name} for name in names], **more)


def everything(client: WireClient, version: int):
    return client.ask(API, version, topics=[] if version == 0 else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_it_tells_of_the_broker_and_its_topics(broker: Running, client: WireClient, version: int):
    ask(client, 4, "orders", create=True)

    answer = ask(client, version, "orders")

    (node,) = answer.brokers
    assert (node.node_id, node.host, node.port) == (0, "127.0.0.1", broker.port)
    (topic,) = answer.topics
    assert (topic.name, topic.error_code) == ("orders", ErrorCode.NONE)
    assert [(p.error_code, p.partition_index, p.leader_id) for p in topic.partitions] == [
        (ErrorCode.NONE, 0, 0),
        (ErrorCode.NONE, 1, 0),
    ]
    assert {(p.replica_nodes, p.isr_nodes) for p in topic.partitions} == {((0,), (0,))}
    if version >= 1:
        assert (answer.controller_id, node.rack, topic.is_internal) == (0, None, False)
    if version >= 2:
        assert answer.cluster_id == "kohort"
    if version >= 5:
        assert {p.offline_replicas for p in topic.partitions} == {()}
    if version >= 7:
        assert {p.leader_epoch for p in topic.partitions} == {0}
    if version >= 8:
        assert topic.topic_authorized_operations == NOT_ASKED
    if version >= 10:
        assert isinstance(topic.topic_id, UUID)
    if version >= 13:
        assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_told_to_those_who_ask_for_all(client: WireClient, version: int):
    ask(client, 4, "orders", "clicks", create=True)

    assert {topic.name for topic in everything(client, version).topics} == {"orders", "clicks"}


@pytest.mark.parametrize("version", range(1, 14))
def test_no_topics_are_told_to_those_who_ask_for_none(client: WireClient, version: int):
    ask(client, 4, "orders", create=True)

    answer = client.ask(API, version, topics=[])

    assert answer.topics == ()
    assert len(answer.brokers) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_told_once_however_often_it_is_named(client: WireClient, version: int):
    answer = ask(client, version, "orders", "orders", "clicks", "orders")

    assert [topic.name for topic in answer.topics] == ["orders", "clicks"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_made_by_who_asks_for_it(client: WireClient, version: int):
    (topic,) = ask(client, version, "new", create=None if version < 4 else True).topics

    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize("version", range(4, 14))
def test_no_topic_is_made_for_who_does_not_want_one(client: WireClient, version: int):
    (topic,) = ask(client, version, "new", create=False).topics

    assert (topic.error_code, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
    assert not everything(client, version).topics


@pytest.mark.parametrize("version", VERSIONS)
def test_no_topic_is_made_where_that_is_switched_off(version: int):
    with running(settings={"auto.create.topics.enable": "false"}) as broker, broker.client() as client:
        (topic,) = ask(client, version, "new").topics

        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x" * 250])
def test_a_name_that_is_none_is_refused(client: WireClient, version: int, name: str):
    (topic,) = ask(client, version, name).topics

    assert (topic.name, topic.error_code) == (name, ErrorCode.INVALID_TOPIC)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_name_that_collides_is_refused(client: WireClient, version: int):
    ask(client, 4, "a.b", create=True)

    (topic,) = ask(client, version, "a_b", create=None if version < 4 else True).topics

    assert topic.error_code == ErrorCode.INVALID_TOPIC


@pytest.mark.parametrize("version", VERSIONS)
def test_the_offsets_topic_is_made_with_its_own_number_of_partitions(client: WireClient, version: int):
    (topic,) = ask(client, version, "__consumer_offsets", create=None if version < 4 else True).topics

    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 3)
    if version >= 1:
        assert topic.is_internal


@pytest.mark.parametrize("version", range(8, 14))
def test_everybody_may_do_everything(client: WireClient, version: int):
    asked = {"include_topic_authorized_operations": True}
    if version <= 10:
        asked["include_cluster_authorized_operations"] = True

    answer = client.ask(API, version, topics=[{"name": "orders"}], allow_auto_topic_creation=True, **asked)

    assert answer.topics[0].topic_authorized_operations == ALL_ON_TOPICS
    if version <= 10:
        assert answer.cluster_authorized_operations == ALL_ON_CLUSTER


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_can_be_asked_for_by_its_id(client: WireClient, version: int):
    known = ask(client, version, "orders", create=True).topics[0].topic_id
    stranger = uuid4()

    found, unknown = client.ask(API, version, topics=[{"topic_id": known}, {"topic_id": stranger}]).topics

    assert (found.name, found.topic_id, found.error_code) == ("orders", known, ErrorCode.NONE)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, stranger, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_not_asked_for_before_version_12(client: WireClient, version: int):
    known = ask(client, version, "orders", create=True).topics[0].topic_id

    for wanted in ({"topic_id": known, "name": None}, {"topic_id": known, "name": "orders"}, {"name": None}):
        (topic,) = client.ask(API, version, topics=[wanted]).topics

        assert topic.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_that_cannot_be_opened_has_no_leader(tmp_path: Path, version: int):
    with running(tmp_path, {"num.partitions": "2"}) as broker, broker.client() as client:
        ask(client, 4, "orders", create=True)
    for file in (tmp_path / "orders-1").iterdir():
        file.unlink()
    (tmp_path / "orders-1").rmdir()

    with running(tmp_path) as broker, broker.client() as client:
        here, gone = ask(client, version, "orders").topics[0].partitions

    assert (here.error_code, here.leader_id, here.isr_nodes) == (ErrorCode.NONE, 0, (0,))
    assert (gone.error_code, gone.leader_id, gone.isr_nodes) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, ())
    if version >= 5:
        assert gone.offline_replicas == (0,)
