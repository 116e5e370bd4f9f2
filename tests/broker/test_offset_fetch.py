"""OffsetFetch over a socket, in every version: by names, by groups, by ids."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from kohort.errors import ErrorCode
from tests.broker.data_plane import make_topic, topic_id
from tests.broker.group_clients import FIND_COORDINATOR, OFFSET_COMMIT
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

OFFSET_FETCH, DELETE_TOPICS = 9, 20
GROUP = "readers"


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"offsets.topic.num.partitions": "1"}) as broker:
        for name in ("orders", "payments"):
            make_topic(broker, name, partitions=2)
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        client.ask(FIND_COORDINATOR, 0, key=GROUP)
        for name, offset in (("orders", 5), ("payments", 7)):
            partitions = [{"partition_index": 1, "committed_offset": offset, "committed_metadata": "m"}]
            topics = [{"name": name, "partitions": partitions}]
            answer = client.ask(OFFSET_COMMIT, 8, group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        yield client


def offsets(topics: Any, called: str = "name") -> dict[tuple[Any, int], tuple[int, ErrorCode]]:
    return {
        (getattr(topic, called), told.partition_index): (told.committed_offset, told.error_code)
        for topic in topics
        for told in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 8))
def test_a_group_is_told_what_it_asks_for(client: WireClient, version: int) -> None:
    topics = [{"name": "orders", "partition_indexes": [0, 1]}, {"name": "none", "partition_indexes": [0]}]
    answer = client.ask(OFFSET_FETCH, version, group_id=GROUP, topics=topics)
    assert offsets(answer.topics) == {("orders", 0): (-1, 0), ("orders", 1): (5, 0), ("none", 0): (-1, 0)}


@pytest.mark.parametrize("version", range(2, 8))
def test_a_group_that_names_nothing_is_told_everything(client: WireClient, version: int) -> None:
    answer = client.ask(OFFSET_FETCH, version, group_id=GROUP, topics=None)
    assert offsets(answer.topics) == {("orders", 1): (5, 0), ("payments", 1): (7, 0)}


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups_are_told_in_one_answer(client: WireClient, version: int) -> None:
    groups = [{"group_id": GROUP, "topics": None}, {"group_id": "others", "topics": None}]
    mine, others = client.ask(OFFSET_FETCH, version, groups=groups).groups
    assert (mine.group_id, offsets(mine.topics)) == (GROUP, {("orders", 1): (5, 0), ("payments", 1): (7, 0)})
    assert (others.group_id, others.topics) == ("others", ())


class TestByIds:
    def test_topics_are_called_by_their_ids(self, client: WireClient) -> None:
        orders = topic_id(client, "orders")
        topics = [{"topic_id": orders, "partition_indexes": [0, 1]}]
        (group,) = client.ask(OFFSET_FETCH, 10, groups=[{"group_id": GROUP, "topics": topics}]).groups
        assert group.error_code == ErrorCode.NONE
        assert offsets(group.topics, "topic_id") == {(orders, 0): (-1, 0), (orders, 1): (5, 0)}

    @pytest.mark.parametrize("unknown", [uuid4(), None])
    def test_an_id_that_no_topic_has_is_told_beside_the_others(self, client: WireClient, unknown: Any) -> None:
        orders = topic_id(client, "orders")
        topics = [
            {"topic_id": unknown, "partition_indexes": [0]},
            {"topic_id": orders, "partition_indexes": [1]},
        ]
        (group,) = client.ask(OFFSET_FETCH, 10, groups=[{"group_id": GROUP, "topics": topics}]).groups
        assert group.error_code == ErrorCode.NONE
        assert offsets(group.topics, "topic_id") == {
            (orders, 1): (5, ErrorCode.NONE),
            (unknown, 0): (-1, ErrorCode.UNKNOWN_TOPIC_ID),
        }

    def test_everything_is_told_of_topics_that_there_are(self, client: WireClient) -> None:
        everything = {(topic_id(client, "orders"), 1): (5, 0), (topic_id(client, "payments"), 1): (7, 0)}
        (group,) = client.ask(OFFSET_FETCH, 10, groups=[{"group_id": GROUP, "topics": None}]).groups
        assert offsets(group.topics, "topic_id") == everything

    def test_where_nobody_coordinates_only_that_is_told(self) -> None:
        with running() as broker, broker.client() as client:
            topics = [{"topic_id": uuid4(), "partition_indexes": [0]}]
            (group,) = client.ask(OFFSET_FETCH, 10, groups=[{"group_id": GROUP, "topics": topics}]).groups
            assert (group.error_code, group.topics) == (ErrorCode.NOT_COORDINATOR, ())
