"""Looking at transactions (KIP-664): DescribeProducers, DescribeTransactions, ListTransactions."""

from collections.abc import Iterator
from typing import Any

import pytest
from kio.index import load_response_schema

from kohort.broker.request_reader import reader_of
from kohort.errors import ErrorCode
from tests.broker.data_plane import TOPIC, batch, make_topic, produce
from tests.broker.running import Running, running
from tests.broker.transactions import ID, begin, end, within
from tests.broker.wire_client import WireClient

DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
_HEAD_BYTES = 5


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"transaction.state.log.num.partitions": "1"}) as broker:
        make_topic(broker, partitions=2)
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


def describe(client: WireClient, *transactional_ids: str) -> list[Any]:
    """kio cannot read that a transaction has not begun (a time of -1): this answer is read as requests are."""
    client.send(DESCRIBE_TRANSACTIONS, 0, transactional_ids=transactional_ids)
    frame = client.receive_frame()
    answer, end = reader_of(load_response_schema(DESCRIBE_TRANSACTIONS, 0))(frame, _HEAD_BYTES)
    assert end == len(frame)
    return answer.transaction_states


def listed(client: WireClient, version: int = 0, **filters: Any) -> dict[str, str]:
    answer = client.ask(LIST_TRANSACTIONS, version, **filters)
    assert answer.error_code == ErrorCode.NONE
    return {told.transactional_id: told.transaction_state for told in answer.transaction_states}


def producers(client: WireClient, topic: str, *partitions: int) -> list[Any]:
    answer = client.ask(DESCRIBE_PRODUCERS, 0, topics=[{"name": topic, "partition_indexes": partitions}])
    return answer.topics[0].partitions


def test_a_transaction_is_described_from_its_begin_to_its_end(client: WireClient) -> None:
    producer = begin(client)
    (idle,) = describe(client, ID)
    assert (idle.error_code, idle.transaction_state, idle.transaction_start_time) == (ErrorCode.NONE, "Empty", -1)
    assert (idle.producer_id, idle.producer_epoch) == (producer.producer_id, producer.producer_epoch)

    produce(client, within(producer, "a"), version=12, transactional_id=ID)
    (open_,) = describe(client, ID)
    assert (open_.transaction_state, open_.transaction_timeout) == ("Ongoing", 60_000)
    assert open_.transaction_start_time > 0
    assert [(topic.topic, topic.partitions) for topic in open_.topics] == [(TOPIC, [0])]

    end(client, producer)
    (over,) = describe(client, ID)
    assert (over.transaction_state, over.topics) == ("CompleteCommit", [])


def test_ids_of_which_nothing_is_known_are_told_apart(client: WireClient) -> None:
    begin(client)
    states = describe(client, "nobody", "", "x" * 32_767)
    assert [told.error_code for told in states] == [
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ]


def test_who_does_not_coordinate_says_so(client: WireClient) -> None:
    assert [told.error_code for told in describe(client, ID)] == [ErrorCode.NOT_COORDINATOR]
    assert listed(client) == {}


def test_transactions_are_listed_by_state_producer_and_age(client: WireClient) -> None:
    producer = begin(client)
    assert listed(client) == {ID: "Empty"}
    assert listed(client, state_filters=["Ongoing"]) == {}
    produce(client, within(producer, "a"), version=12, transactional_id=ID)
    assert listed(client, state_filters=["Ongoing"]) == {ID: "Ongoing"}
    assert listed(client, producer_id_filters=[producer.producer_id]) == {ID: "Ongoing"}
    assert listed(client, producer_id_filters=[producer.producer_id + 1]) == {}
    assert listed(client, 1, duration_filter=-1) == {ID: "Ongoing"}
    assert listed(client, 1, duration_filter=3_600_000) == {}


def test_states_that_there_are_not_are_told(client: WireClient) -> None:
    begin(client)
    answer = client.ask(LIST_TRANSACTIONS, 0, state_filters=["Empty", "Bogus", "Bogus"])
    assert answer.unknown_state_filters == ("Bogus",)
    assert len(answer.transaction_states) == 1
    assert client.ask(LIST_TRANSACTIONS, 0, state_filters=["Bogus"]).transaction_states == ()


def test_partitions_tell_their_producers(client: WireClient) -> None:
    producer = begin(client)
    produce(client, batch("x"))
    produce(client, within(producer, "a"), version=12, transactional_id=ID)
    first, second, nowhere = producers(client, TOPIC, 0, 1, 2)
    (known,) = first.active_producers
    assert (known.producer_id, known.producer_epoch) == (producer.producer_id, producer.producer_epoch)
    assert (known.last_sequence, known.coordinator_epoch, known.current_txn_start_offset) == (0, -1, 1)
    assert known.last_timestamp > 0
    assert (second.error_code, second.active_producers) == (ErrorCode.NONE, ())
    assert nowhere.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    end(client, producer)
    (known,) = producers(client, TOPIC, 0)[0].active_producers
    assert (known.coordinator_epoch, known.current_txn_start_offset) == (0, -1)


def test_producers_of_topics_that_cannot_be_are_refused_with_a_reason(client: WireClient) -> None:
    for topic, error in (("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("..", ErrorCode.INVALID_TOPIC)):
        (told,) = producers(client, topic, 0)
        assert told.error_code == error
        assert told.error_message
