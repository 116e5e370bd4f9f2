"""What a reader gets, and when."""

from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from tests.broker.data_plane import (
    FETCH,
    SOON,
    TOPIC,
    batch,
    end_transaction,
    fetch,
    fetch_all,
    fetch_request,
    make_topic,
    produce,
    produce_all,
    values,
)
from tests.broker.running import Running, running

READ_COMMITTED = 1


def waiting(broker: Running) -> int:
    """How many fetches wait."""
    return broker.on_loop(lambda: len(broker.broker.long_polls.waiting))


def wait_for_waiting(broker: Running, count: int) -> None:
    while waiting(broker) != count:
        pass


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_reads_what_was_written(version: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a", "b"))
        produce(client, batch("c"))
        found = fetch(client, 2, version=version)
        assert (found.error_code, found.high_watermark, found.last_stable_offset) == (ErrorCode.NONE, 3, 3)
        assert values(found.records) == ["c"]
        assert found.aborted_transactions is None
        assert fetch(client, 1, version=version).records[8:] != b""


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a", "b"))
        assert values(fetch(client, 1).records) == ["a", "b"]


def test_records_are_empty_and_not_null_beside_every_error() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a"))
        beyond = fetch(client, 2)
        assert (beyond.error_code, beyond.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")
        assert (beyond.high_watermark, beyond.last_stable_offset, beyond.log_start_offset) == (-1, -1, -1)
        unknown = fetch(client, 0, topic="nowhere")
        assert (unknown.error_code, unknown.records) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, b"")
        assert fetch(client, 1).records == b""


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_the_leader_epoch_of_the_reader_is_checked(epoch: int, error: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a"))
        assert fetch(client, 0, current_leader_epoch=epoch).error_code == error


def test_a_reader_that_left_our_log_hears_where() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a"))
        assert values(fetch(client, 0, version=12, last_fetched_epoch=0).records) == ["a"]
        diverging = fetch(client, 5, version=12, last_fetched_epoch=0)
        assert (diverging.error_code, diverging.records) == (ErrorCode.NONE, b"")
        assert (diverging.diverging_epoch.epoch, diverging.diverging_epoch.end_offset) == (0, 1)
        assert fetch(client, 0, version=12, last_fetched_epoch=3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_at_least_one_batch_comes_from_the_first_partition_that_has_any() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=3)
        produce_all(client, batch("a" * 500), batch("b" * 500), batch("c" * 500))
        found = fetch_all(client, 1, 0, 0, max_bytes=1, partition_max_bytes=1)
        assert [len(values(one.records)) for one in found] == [0, 1, 0]
        assert [one.high_watermark for one in found] == [1, 1, 1]


def test_all_partitions_together_give_no_more_than_is_wanted() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=3)
        produce_all(client, batch("a" * 500), batch("b" * 500), batch("c" * 500))
        size = len(fetch(client, 0).records)
        found = fetch_all(client, 0, 0, 0, max_bytes=2 * size + 10)
        assert [len(one.records) for one in found] == [size, size, 0]


def test_a_partition_gives_no_more_than_is_wanted_of_it() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        for text in "abc":
            produce(client, batch(text))
        size = len(fetch(client, 0).records) // 3
        assert values(fetch(client, 0, partition_max_bytes=2 * size + 1).records) == ["a", "b"]


def test_the_broker_s_own_limit_counts_too() -> None:
    with running(settings={"fetch.max.bytes": "1024"}) as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a" * 2000))
        produce(client, batch("b" * 2000))
        assert values(fetch(client, 0).records) == ["a" * 2000]


def test_no_wait_is_wanted_so_none_is_made() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        assert fetch(client, 0, max_wait=0).records == b""
        assert fetch(client, 0, max_wait=SOON, min_bytes=0).records == b""


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_fetch_waits_for_the_next_record(tmp_path: Path, on_disk: bool) -> None:
    with running(tmp_path if on_disk else None) as broker, broker.client() as reader, broker.client() as writer:
        make_topic(broker)
        reader.send(FETCH, 11, **fetch_request(0, session_epoch=-1, max_wait=SOON))
        wait_for_waiting(broker, 1)
        produce(writer, batch("a"))
        found = reader.receive().responses[0].partitions[0]
        assert (values(found.records), found.high_watermark) == (["a"], 1)
        assert waiting(broker) == 0


def test_a_fetch_waits_for_enough_bytes() -> None:
    with running() as broker, broker.client() as reader, broker.client() as writer:
        make_topic(broker, partitions=2)
        produce(writer, batch("a"))
        size = len(fetch(reader, 0).records)
        reader.send(FETCH, 11, **fetch_request(0, 0, session_epoch=-1, max_wait=SOON, min_bytes=3 * size))
        wait_for_waiting(broker, 1)
        produce(writer, batch("b"))
        assert waiting(broker) == 1
        produce_all(writer, None, batch("c"))
        found = reader.receive().responses[0].partitions
        assert [values(one.records) for one in found] == [["a", "b"], ["c"]]


def test_a_fetch_answers_what_there_is_when_its_time_is_over() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a"))
        assert values(fetch(client, 0, max_wait=20, min_bytes=1 << 20).records) == ["a"]


def test_no_more_can_be_waited_for_than_is_wanted_at_most() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a" * 100))
        assert values(fetch(client, 0, max_wait=SOON, min_bytes=1 << 20, max_bytes=50).records) == ["a" * 100]


def test_an_error_ends_the_wait() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        found = fetch_all(client, 0, 7, max_wait=SOON)
        assert [one.error_code for one in found] == [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE]


def test_a_partition_that_is_not_there_is_told_with_the_others() -> None:
    with running() as broker, broker.client() as reader, broker.client() as writer:
        make_topic(broker)
        assert fetch(reader, 0, topic="nowhere", max_wait=SOON).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        reader.send(FETCH, 11, **fetch_request(0, 0, session_epoch=-1, max_wait=SOON))
        wait_for_waiting(broker, 1)
        produce(writer, batch("a"))
        found = reader.receive().responses[0].partitions
        assert [one.error_code for one in found] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_reader_in_an_older_segment_does_not_wait() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, segment_bytes="200")
        produce(client, batch("a" * 100))
        produce(client, batch("b" * 100))
        assert values(fetch(client, 0, max_wait=SOON, min_bytes=1 << 20).records) == ["a" * 100]


def test_a_topic_that_is_deleted_is_told_to_who_waits_for_it() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        topic = broker.broker.topics.get(TOPIC)
        assert topic is not None
        client.send(FETCH, 11, **fetch_request(0, 0, session_epoch=-1, max_wait=SOON))
        wait_for_waiting(broker, 1)
        broker.on_loop(lambda: broker.broker.delete_topic(topic))
        found = client.receive().responses[0].partitions
        assert [one.error_code for one in found] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2


def test_who_waits_is_answered_when_the_broker_stops() -> None:
    with running() as broker:
        make_topic(broker)
        client = broker.client()
        client.send(FETCH, 11, **fetch_request(0, session_epoch=-1, max_wait=SOON))
        wait_for_waiting(broker, 1)
    with client:
        assert client.receive().responses[0].partitions[0].records == b""


def test_a_client_that_went_away_leaves_nobody_waiting_for_ever() -> None:
    with running() as broker, broker.client() as writer:
        make_topic(broker)
        with broker.client() as reader:
            reader.send(FETCH, 11, **fetch_request(0, session_epoch=-1, max_wait=SOON))
            wait_for_waiting(broker, 1)
        produce(writer, batch("a"))
        assert waiting(broker) == 0


def test_committed_readers_see_up_to_the_oldest_open_transaction() -> None:
    with running() as broker, broker.client() as client, broker.client() as reader:
        make_topic(broker)
        produce(client, batch("a"))
        produce(client, batch("b", producer=7, epoch=0, sequence=0, transactional=True), transactional_id="t")
        produce(client, batch("c"))
        open_ = fetch(client, 0, isolation_level=READ_COMMITTED)
        assert (values(open_.records), open_.last_stable_offset, open_.high_watermark) == (["a"], 1, 3)
        assert open_.aborted_transactions == ()
        assert values(fetch(client, 0).records) == ["a", "b", "c"]
        request = fetch_request(1, session_epoch=-1, max_wait=SOON, isolation_level=READ_COMMITTED)
        reader.send(FETCH, 11, **request)
        wait_for_waiting(broker, 1)
        produce(client, batch("d"))
        assert waiting(broker) == 1
        end_transaction(broker, 7, commit=True)
        found = reader.receive().responses[0].partitions[0]
        assert (values(found.records), found.last_stable_offset) == (["b", "c", "d"], 5)


def test_committed_readers_are_told_what_was_aborted() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a", producer=7, epoch=0, sequence=0, transactional=True), transactional_id="t")
        produce(client, batch("b", producer=8, epoch=0, sequence=0, transactional=True), transactional_id="u")
        end_transaction(broker, 7, commit=False)
        end_transaction(broker, 8, commit=True)
        found = fetch(client, 0, isolation_level=READ_COMMITTED)
        assert [(one.producer_id, one.first_offset) for one in found.aborted_transactions] == [(7, 0)]
        assert values(found.records) == ["a", "b"]
        assert fetch(client, 3, isolation_level=READ_COMMITTED).aborted_transactions == ()
