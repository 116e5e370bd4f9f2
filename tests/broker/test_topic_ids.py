"""Topics that are called by their ids (KIP-516): Produce and Fetch from version 13 on, and the sessions in between."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from kohort.broker.fetch_sessions import FetchSessions, Found, TopicIdPartition, Wanted
from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.log.partition import AppendOrigin
from tests.broker.data_plane import (
    FETCH,
    METADATA,
    PRODUCE,
    SOON,
    TOPIC,
    ask_to_fetch,
    batch,
    fetch,
    fetch_request,
    make_topic,
    produce,
    produce_all,
    topic_id,
    values,
)
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

DELETE_TOPICS = 20
NOBODY = UUID(int=0)


def wanted(topic: UUID | None, *offsets: int) -> dict[str, Any]:
    partitions = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        for index, offset in enumerate(offsets)
    ]
    return {"topic_id": topic, "partitions": partitions}


def ask(client: WireClient, *topics: dict[str, Any], max_wait: int = 0, **session: Any) -> Any:
    """A fetch of version 17 with just these topics."""
    session = {"session_id": 0, "session_epoch": -1, **session}
    return client.ask(FETCH, 17, max_wait=max_wait, min_bytes=1, max_bytes=1 << 26, topics=topics, **session)


def errors(answer: Any) -> list[ErrorCode]:
    return [found.error_code for topic in answer.responses for found in topic.partitions]


def delete(client: WireClient, topic: str = TOPIC) -> None:
    (told,) = client.ask(DELETE_TOPICS, 5, topic_names=[topic]).responses
    assert told.error_code == ErrorCode.NONE


class TestProduce:
    @pytest.mark.parametrize("unknown", [uuid4(), None])
    def test_an_id_that_no_topic_has_is_told_for_each_partition(self, unknown: UUID | None) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            known = topic_id(client)
            data = [{"index": 0, "records": batch("a")}]
            topics = [{"topic_id": unknown, "partition_data": data}, {"topic_id": known, "partition_data": data}]
            answer = client.ask(PRODUCE, 13, acks=-1, timeout=1_000, transactional_id=None, topic_data=topics)
            told = {topic.topic_id: topic.partition_responses[0] for topic in answer.responses}
            assert told[known].error_code == ErrorCode.NONE
            assert (told[unknown].error_code, told[unknown].base_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)

    def test_a_partition_that_the_topic_does_not_have_is_unknown_all_the_same(self) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            here, nowhere = produce_all(client, batch("a"), batch("b"), version=13)
            assert (here.error_code, nowhere.error_code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def test_the_id_of_a_topic_that_was_made_anew_is_another_one(self) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            before = topic_id(client)
            delete(client)
            make_topic(broker)
            data = [{"topic_id": before, "partition_data": [{"index": 0, "records": batch("a")}]}]
            answer = client.ask(PRODUCE, 13, acks=-1, timeout=1_000, transactional_id=None, topic_data=data)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
            assert produce(client, batch("b"), version=13).base_offset == 0


class TestFetch:
    @pytest.mark.parametrize("unknown", [uuid4(), None])
    def test_an_id_that_no_topic_has_is_told_at_once_if_there_is_nothing_else(self, unknown: UUID | None) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            answer = ask(client, wanted(unknown, 0, 0), max_wait=SOON)
            assert answer.error_code == ErrorCode.NONE
            assert answer.responses[0].topic_id == unknown
            assert errors(answer) == [ErrorCode.UNKNOWN_TOPIC_ID] * 2

    def test_an_id_that_no_topic_has_waits_with_the_others(self) -> None:
        with running() as broker, broker.client() as client, broker.client() as producer:
            make_topic(broker)
            topics = [wanted(topic_id(client), 0), wanted(uuid4(), 0)]
            client.send(
                FETCH, 17, max_wait=SOON, min_bytes=1, max_bytes=1 << 20, topics=topics, session_id=0, session_epoch=-1
            )
            while not broker.on_loop(lambda: broker.broker.long_polls.waiting):
                assert not client.has_answer()
            produce(producer, batch("a"))
            assert sorted(errors(client.receive())) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]

    def test_a_reader_that_believes_in_an_earlier_leader_hears_who_leads(self) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            broker.on_loop(lambda: _append_in_epoch(broker, 4))
            for version in (15, 16, 18):
                answer = ask_to_fetch(client, version, fetch_request(0, current_leader_epoch=3, session_epoch=-1))
                (found,) = answer.responses[0].partitions
                assert found.error_code == ErrorCode.FENCED_LEADER_EPOCH
                assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (0, 4)
                if version >= 16:
                    assert [(node.node_id, node.port) for node in answer.node_endpoints] == [(0, broker.port)]

    def test_nobody_is_named_where_nothing_is_wrong(self) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            answer = ask(client, wanted(topic_id(client), 0))
            assert answer.node_endpoints == ()
            assert answer.responses[0].partitions[0].current_leader.leader_id == -1


def _append_in_epoch(broker: Running, epoch: int) -> None:
    log = broker.broker.topics.log(TOPIC, 0)
    assert log is not None
    log.append(batch("a"), leader_epoch=epoch, origin=AppendOrigin.CLIENT)


class TestSessions:
    def test_a_session_goes_on_by_ids(self) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker, partitions=2)
            topic = topic_id(client)
            produce_all(client, batch("a"), batch("b"))
            full = ask(client, wanted(topic, 0, 0), session_epoch=0)
            assert [values(found.records) for found in full.responses[0].partitions] == [["a"], ["b"]]
            session = {"session_id": full.session_id}
            moved = ask(client, wanted(topic, 1), session_epoch=1, **session)
            assert [found.partition_index for found in moved.responses[0].partitions] == [1]
            forgotten = [{"topic_id": topic, "partitions": [1]}]
            rest = ask(client, session_epoch=2, forgotten_topics_data=forgotten, **session)
            assert rest.responses == ()
            produce_all(client, batch("c"), batch("d"))
            more = ask(client, session_epoch=3, **session)
            assert [values(found.records) for found in more.responses[0].partitions] == [["c"]]

    @pytest.mark.parametrize(("first", "second"), [(12, 13), (17, 12)])
    def test_a_session_does_not_change_between_names_and_ids(self, first: int, second: int) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            full = ask_to_fetch(client, first, fetch_request(0, session_id=0, session_epoch=0))
            assert full.session_id > 0
            request = fetch_request(session_id=full.session_id, session_epoch=1, max_wait=SOON)
            refused = ask_to_fetch(client, second, request)
            assert (refused.error_code, refused.session_id) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0)
            same = ask_to_fetch(client, first, fetch_request(session_id=full.session_id, session_epoch=1))
            assert (same.error_code, same.session_id) == (ErrorCode.NONE, full.session_id)

    def test_an_id_that_was_unknown_gets_its_name_as_soon_as_there_is_such_a_topic_and_keeps_it(self) -> None:
        sessions = FetchSessions(10, VirtualClock(0))
        key = TopicIdPartition(uuid4(), 0)
        full = sessions.open(0, 0, {key: Wanted(0, 1)}, name_of=lambda _: None)
        session = full.answer({key: Found(ErrorCode.UNKNOWN_TOPIC_ID)}).session_id
        for epoch, name, known in ((1, None, None), (2, TOPIC, TOPIC), (3, None, TOPIC)):
            context = sessions.open(session, epoch, {}, name_of=lambda _, name=name: name)
            assert context.wanted[key].topic == known

    def test_a_topic_that_was_deleted_is_not_there_any_more(self) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            full = ask(client, wanted(topic_id(client), 0), session_epoch=0)
            delete(client)
            gone = ask(client, session_id=full.session_id, session_epoch=1, max_wait=SOON)
            assert errors(gone) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    def test_a_topic_that_was_made_anew_is_another_one(self) -> None:
        with running() as broker, broker.client() as client:
            make_topic(broker)
            before = topic_id(client)
            full = ask(client, wanted(before, 0), session_epoch=0)
            delete(client)
            make_topic(broker)
            produce(client, batch("new"))
            session = {"session_id": full.session_id}
            other = ask(client, session_epoch=1, max_wait=SOON, **session)
            assert errors(other) == [ErrorCode.INCONSISTENT_TOPIC_ID]
            both = ask(client, wanted(topic_id(client), 0), wanted(before, 0), session_epoch=2, **session)
            told = {topic.topic_id: topic.partitions[0] for topic in both.responses}
            assert told[before].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
            assert values(told[topic_id(client)].records) == ["new"]

    def test_who_waits_for_a_topic_that_is_made_anew_hears_of_it(self) -> None:
        with running() as broker, broker.client() as client, broker.client() as other:
            make_topic(broker)
            topics = [wanted(topic_id(client), 0)]
            client.send(
                FETCH, 17, max_wait=SOON, min_bytes=1, max_bytes=1 << 20, topics=topics, session_id=0, session_epoch=-1
            )
            while not broker.on_loop(lambda: broker.broker.long_polls.waiting):
                assert not client.has_answer()
            delete(other)
            assert errors(client.receive()) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_metadata_tells_ids_and_finds_topics_by_them() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        topic = topic_id(client)
        (known, unknown) = client.ask(
            METADATA, 13, topics=[{"topic_id": topic, "name": None}, {"topic_id": uuid4(), "name": None}]
        ).topics
        assert (known.name, known.topic_id, known.error_code) == (TOPIC, topic, ErrorCode.NONE)
        assert (unknown.name, unknown.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_an_id_stays_what_it_is_when_the_broker_starts_again(tmp_path: Any) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        make_topic(broker)
        before = topic_id(client)
        produce(client, batch("a"))
    with running(tmp_path) as broker, broker.client() as client:
        assert topic_id(client) == before
        assert values(fetch(client, 0, version=17).records) == ["a"]
