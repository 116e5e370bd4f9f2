"""Batches of transactions: from version 12 of Produce on they make their partitions a part of it (KIP-890)."""

from collections.abc import Iterator

import pytest

from kohort.errors import ErrorCode
from tests.broker.data_plane import (
    batch,
    fetch,
    fetch_all,
    make_topic,
    produce,
    produce_all,
    values,
)
from tests.broker.running import Running, running
from tests.broker.transactions import ID, begin, end, within
from tests.broker.wire_client import WireClient

READ_COMMITTED = 1


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"transaction.state.log.num.partitions": "1"}) as broker:
        make_topic(broker, partitions=2)
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


@pytest.mark.parametrize("version", [12, 13])
def test_what_was_produced_is_committed_although_nobody_added_its_partitions(client: WireClient, version: int) -> None:
    producer = begin(client)
    records = within(producer, "a"), within(producer, "b")
    for told in produce_all(client, *records, version=version, transactional_id=ID):
        assert (told.error_code, told.base_offset) == (ErrorCode.NONE, 0)
    assert [found.last_stable_offset for found in fetch_all(client, 0, 0)] == [0, 0]

    assert end(client, producer) == ErrorCode.NONE

    committed = fetch_all(client, 0, 0, isolation_level=READ_COMMITTED, min_bytes=1, max_wait=10_000)
    assert [values(found.records) for found in committed] == [["a"], ["b"]]
    assert [found.last_stable_offset for found in committed] == [2, 2]


def test_before_version_12_partitions_are_added_by_who_produces(client: WireClient) -> None:
    producer = begin(client)
    assert produce(client, within(producer, "a"), version=11, transactional_id=ID).error_code == ErrorCode.NONE

    assert end(client, producer) == ErrorCode.INVALID_TXN_STATE  # it never began


def test_plain_batches_and_partitions_that_are_not_there_do_not_join(client: WireClient) -> None:
    producer = begin(client)
    answers = produce_all(
        client, batch("plain"), within(producer, "a"), within(producer, "b"), version=12, transactional_id=ID
    )
    assert [told.error_code for told in answers] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert end(client, producer) == ErrorCode.NONE
    assert fetch(client, 0).high_watermark == 1  # no marker came to it


def test_a_producer_that_was_replaced_writes_nothing(client: WireClient) -> None:
    old, _ = begin(client), begin(client)
    told = produce(client, within(old, "a"), version=12, transactional_id=ID)
    assert (told.error_code, told.base_offset) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert fetch(client, 0).high_watermark == 0


def test_one_request_is_of_one_producer(client: WireClient) -> None:
    producer = begin(client)
    another = batch("b", producer=producer.producer_id + 1, epoch=0, sequence=0, transactional=True)
    answers = produce_all(client, within(producer, "a"), another, version=12, transactional_id=ID)
    assert {told.error_code for told in answers} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert [found.high_watermark for found in fetch_all(client, 0, 0)] == [0, 0]


def test_without_a_coordinator_it_is_to_be_tried_again(client: WireClient) -> None:
    """Who produces knows nothing of coordinators: the error is one that is tried again as it is."""
    records = batch("a", producer=7, epoch=0, sequence=0, transactional=True)
    told = produce(client, records, version=12, transactional_id=ID)
    assert told.error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_batch_without_a_transactional_id_refuses_the_whole_request(client: WireClient) -> None:
    records = batch("a", producer=7, epoch=0, sequence=0, transactional=True)
    for version in (8, 12, 13):
        answers = produce_all(client, records, batch("b"), version=version)
        assert {told.error_code for told in answers} == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
