"""Requests sent without waiting for answers: what may follow what, and in which order they are answered."""

import pytest

from kohort.errors import ErrorCode
from tests.broker.data_plane import PRODUCE, TOPIC, batch, fetch, produce, produce_request, values
from tests.broker.slow_disk import OFFSET_COMMIT, OFFSET_FETCH, commit, error_of, slow_broker, wait_for
from tests.broker.wire_client import Closed


def test_one_sync_serves_the_commits_of_one_connection() -> None:
    with slow_broker() as (broker, files, client):
        files.may_sync.clear()
        asked = [client.send(OFFSET_COMMIT, 6, **commit(offset)) for offset in range(40)]
        wait_for(broker, 41)
        assert not client.has_answer()
        before = sum(broker.broker.flusher.flush_times.counts)
        files.may_sync.set()
        answers = [client.receive_with_id() for _ in asked]
        assert [number for number, _ in answers] == asked
        assert {error_of(answer) for _, answer in answers} == {ErrorCode.NONE}
        assert sum(broker.broker.flusher.flush_times.counts) - before <= 3


def test_a_refusal_waits_for_the_answers_before_it() -> None:
    with slow_broker() as (broker, files, client):
        files.may_sync.clear()
        first = client.send(OFFSET_COMMIT, 6, **commit(1))
        refused = client.send(OFFSET_COMMIT, 6, **commit(2, member="nobody", generation=3))
        last = client.send(OFFSET_COMMIT, 6, **commit(3))
        wait_for(broker, 4)
        assert not client.has_answer()
        files.may_sync.set()
        answers = [client.receive_with_id() for _ in range(3)]
        assert [number for number, _ in answers] == [first, refused, last]
        assert [error_of(answer) for _, answer in answers] == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]


def test_another_api_waits_and_sees_what_was_committed() -> None:
    with slow_broker() as (broker, files, client):
        files.may_sync.clear()
        client.send(OFFSET_COMMIT, 6, **commit(7))
        asked = [{"name": TOPIC, "partition_indexes": [0]}]
        client.send(OFFSET_FETCH, 5, group_id="g", topics=asked)
        client.send(OFFSET_COMMIT, 6, **commit(8))
        wait_for(broker, 2)
        with broker.client() as other:
            other.ask(18, 0)  # whatever could go on has gone on
        assert broker.server.traffic.apis[OFFSET_FETCH].requests[5] == 0
        files.may_sync.set()
        assert error_of(client.receive()) == ErrorCode.NONE
        assert client.receive().topics[0].partitions[0].committed_offset == 7
        assert error_of(client.receive()) == ErrorCode.NONE


def test_who_sends_nonsense_behind_a_commit_gets_the_answer_to_the_commit() -> None:
    with slow_broker() as (broker, files, client):
        files.may_sync.clear()
        asked = client.send(OFFSET_COMMIT, 6, **commit(7))
        client.send_frame(OFFSET_COMMIT.to_bytes(2, "big") + b"\0\6nonsense")
        wait_for(broker, 2)
        assert not client.has_answer()
        files.may_sync.set()
        assert client.receive_with_id()[0] == asked
        with pytest.raises(Closed):
            client.receive_frame()


def test_no_more_than_a_few_requests_are_open_at_a_time() -> None:
    with slow_broker() as (broker, files, client):
        files.may_sync.clear()
        for offset in range(300):
            client.send(OFFSET_COMMIT, 6, **commit(offset))
        wait_for(broker, 65)
        with broker.client() as other:
            other.ask(18, 0)
        assert broker.server.traffic.apis[OFFSET_COMMIT].requests[6] == 65
        files.may_sync.set()
        assert {error_of(client.receive()) for _ in range(300)} == {ErrorCode.NONE}


def test_large_requests_are_not_kept_open_beside_each_other() -> None:
    with slow_broker() as (broker, files, client):
        produce(client, batch("first"))
        files.may_sync.clear()
        large = produce_request(batch("x" * 700_000))
        for _ in range(4):
            client.send(PRODUCE, 8, **large)
        log = broker.broker.topics.log(TOPIC, 0)
        assert log is not None
        while broker.on_loop(lambda: log.log_end_offset) < 3:
            pass
        with broker.client() as other:
            other.ask(18, 0)
        assert log.log_end_offset == 3
        files.may_sync.set()
        offsets = [client.receive().responses[0].partition_responses[0].base_offset for _ in range(4)]
        assert offsets == [1, 2, 3, 4]


def test_records_keep_the_order_in_which_they_were_sent() -> None:
    with slow_broker() as (_, files, client):
        files.may_sync.clear()
        for number in range(20):
            client.send(PRODUCE, 8, **produce_request(batch(str(number), producer=7, epoch=0, sequence=number)))
        files.may_sync.set()
        for number in range(20):
            assert client.receive().responses[0].partition_responses[0].base_offset == number
        assert values(fetch(client, 0).records) == [str(number) for number in range(20)]
