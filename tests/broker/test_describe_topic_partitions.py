"""DescribeTopicPartitions (KIP-966): topics page by page."""

from collections.abc import Iterator
from typing import Any

import pytest

from kohort.errors import ErrorCode
from tests.broker.data_plane import make_topic, topic_id
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

DESCRIBE_TOPIC_PARTITIONS = 75
ALL_OPERATIONS = 3576


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running() as broker:
        for name, partitions in (("c", 1), ("a", 3), ("b", 2)):
            make_topic(broker, name, partitions=partitions)
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


def ask(client: WireClient, *names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None) -> Any:
    at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}
    topics = [{"name": name} for name in names]
    return client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, topics=topics, response_partition_limit=limit, cursor=at)


def told(answer: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in answer.topics]


def test_everything_is_told_in_the_order_of_names(client: WireClient) -> None:
    answer = ask(client)
    assert told(answer) == [("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0])]
    assert answer.next_cursor is None
    first = answer.topics[0]
    assert (first.topic_id, first.topic_authorized_operations) == (topic_id(client, "a"), ALL_OPERATIONS)
    assert [(one.leader_id, one.leader_epoch, one.isr_nodes) for one in first.partitions] == [(0, 0, (0,))] * 3
    assert {(one.eligible_leader_replicas, one.last_known_elr) for one in first.partitions} == {((), ())}


@pytest.mark.parametrize("limit", range(8))
def test_page_by_page_everything_is_told_once(client: WireClient, limit: int) -> None:
    pages, cursor, size = [], None, max(1, limit)
    while True:
        answer = ask(client, limit=limit, cursor=cursor)
        page = [(name, number) for name, numbers in told(answer) for number in numbers]
        assert len(page) <= size
        pages += page
        if answer.next_cursor is None:
            break
        assert len(page) == size
        cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert pages == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0)]


def test_topics_are_found_by_their_names_and_the_others_are_told_too(client: WireClient) -> None:
    answer = ask(client, "b", "nowhere", "..", "b")
    assert told(answer) == [("..", []), ("b", [0, 1]), ("nowhere", [])]
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.INVALID_TOPIC,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_cursor_behind_the_last_partition_finds_nothing(client: WireClient) -> None:
    answer = ask(client, "c", cursor=("c", 7))
    assert (told(answer), answer.next_cursor) == ([("c", [])], None)


@pytest.mark.parametrize("cursor", [("other", 0), ("c", -1)])
def test_a_cursor_that_cannot_be_is_refused(client: WireClient, cursor: tuple[str, int]) -> None:
    answer = ask(client, "c", cursor=cursor)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
