"""Where logs begin and end: ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from typing import Any

import pytest

from kohort.errors import ErrorCode
from tests.broker.data_plane import (
    DELETE_RECORDS,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    TOPIC,
    batch,
    end_transaction,
    fetch,
    make_topic,
    now_ms,
    produce,
)
from tests.broker.running import running
from tests.broker.wire_client import WireClient

LATEST, EARLIEST, YOUNGEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
NOTHING = (ErrorCode.NONE, -1, None)


def list_offsets(client: WireClient, timestamp: int, version: int = 5, *, topic: str = TOPIC, **more: Any) -> Any:
    of_partition = {name: more.pop(name) for name in ("current_leader_epoch",) if name in more}
    partitions = [{"partition_index": 0, "timestamp": timestamp, **of_partition}]
    wanted = [{"name": topic, "partitions": partitions}]
    return client.ask(LIST_OFFSETS, version, replica_id=-1, topics=wanted, **more).topics[0].partitions[0]


def delete_records(client: WireClient, offset: int, version: int = 2, *, topic: str = TOPIC) -> tuple[int, int]:
    wanted = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
    (found,) = client.ask(DELETE_RECORDS, version, topics=wanted, timeout=1000).topics[0].partitions
    return found.error_code, found.low_watermark


def end_of_epoch(client: WireClient, epoch: int, version: int = 4, *, current: int = -1, topic: str = TOPIC) -> Any:
    partitions = [{"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}]
    wanted = [{"topic": topic, "partitions": partitions}]
    (found,) = client.ask(OFFSET_FOR_LEADER_EPOCH, version, topics=wanted).topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_tells_the_begin_and_the_end(version: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a", "b", "c"))
        latest, earliest = (list_offsets(client, time, version) for time in (LATEST, EARLIEST))
        assert (latest.error_code, latest.offset, latest.timestamp) == (ErrorCode.NONE, 3, -1)
        assert (earliest.error_code, earliest.offset, earliest.timestamp) == (ErrorCode.NONE, 0, -1)
        if version >= 4:
            assert (latest.leader_epoch, earliest.leader_epoch) == (0, 0)


def test_the_first_record_from_some_time_on() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        then = now_ms()
        for number in range(3):
            produce(client, batch("a", "b", time=then + 10 * number))
        for timestamp, offset in [(0, 0), (then, 0), (then + 1, 2), (then + 10, 2), (then + 20, 4)]:
            found = list_offsets(client, timestamp)
            assert (found.offset, found.leader_epoch) == (offset, 0)
            assert found.timestamp == then + 10 * (offset // 2)
        none = list_offsets(client, then + 21)
        assert (none.error_code, none.offset, none.timestamp, none.leader_epoch) == (ErrorCode.NONE, -1, -1, -1)


def test_the_youngest_record_need_not_be_the_last() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        assert list_offsets(client, YOUNGEST, 7).offset == -1
        then = now_ms()
        for late in (5, 9, 7):
            produce(client, batch("a", time=then + late))
        found = list_offsets(client, YOUNGEST, 7)
        assert (found.offset, found.timestamp) == (1, then + 9)


def test_nothing_is_kept_elsewhere() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a"))
        assert list_offsets(client, EARLIEST_LOCAL, 8).offset == 0
        assert list_offsets(client, LATEST_TIERED, 9).offset == -1
        assert list_offsets(client, EARLIEST_PENDING, 11).offset == -1


def test_an_empty_log_begins_and_ends_in_the_epoch_of_its_leader() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        for time in (LATEST, EARLIEST, EARLIEST_LOCAL):
            found = list_offsets(client, time, 8)
            assert (found.offset, found.leader_epoch) == (0, 0)


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(YOUNGEST, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (EARLIEST_PENDING, 10), (-7, 11)],
)
def test_a_question_that_the_version_does_not_know_is_refused(timestamp: int, version: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        assert list_offsets(client, timestamp, version).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_committed_readers_see_a_nearer_end() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        then = now_ms()
        produce(client, batch("a", time=then))
        within = batch("b", time=then + 5, producer=7, epoch=0, sequence=0, transactional=True)
        produce(client, within, transactional_id="t")
        assert list_offsets(client, LATEST).offset == 2
        assert list_offsets(client, LATEST, isolation_level=1).offset == 1
        assert list_offsets(client, then + 5).offset == 1
        assert list_offsets(client, then + 5, isolation_level=1).offset == -1
        end_transaction(broker, 7, commit=True)
        assert list_offsets(client, LATEST, isolation_level=1).offset == 3


def test_what_cannot_be_listed_has_its_error() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        unknown = list_offsets(client, LATEST, topic="nowhere")
        assert (unknown.error_code, unknown.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert list_offsets(client, LATEST, current_leader_epoch=0).error_code == ErrorCode.NONE
        assert list_offsets(client, LATEST, current_leader_epoch=4).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        twice = [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": time} for time in (-1, -2)]}]
        (only,) = client.ask(LIST_OFFSETS, 5, replica_id=-1, topics=twice).topics[0].partitions
        assert only.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_are_deleted_up_to_an_offset(version: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        for text in "abc":
            produce(client, batch(text))
        assert delete_records(client, 2, version) == (ErrorCode.NONE, 2)
        assert delete_records(client, 1, version) == (ErrorCode.NONE, 2)
        assert list_offsets(client, EARLIEST).offset == 2
        assert fetch(client, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert delete_records(client, -1, version) == (ErrorCode.NONE, 3)
        assert delete_records(client, 4, version) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert delete_records(client, -2, version) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_not_every_topic_gives_its_records_up() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, cleanup_policy="compact")
        make_topic(broker, "__consumer_offsets")
        assert delete_records(client, 0) == (ErrorCode.POLICY_VIOLATION, -1)
        assert delete_records(client, 0, topic="__consumer_offsets") == (ErrorCode.INVALID_TOPIC, -1)
        assert delete_records(client, 0, topic="nowhere") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_current_epoch_ends_at_the_log_end(version: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        assert end_of_epoch(client, 0, version) == (ErrorCode.NONE, 0, 0)
        produce(client, batch("a", "b"))
        assert end_of_epoch(client, 0, version, current=0) == (ErrorCode.NONE, 0, 2)
        assert end_of_epoch(client, 1, version) == (ErrorCode.NONE, -1, -1)
        assert end_of_epoch(client, 0, version, current=1) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
        assert end_of_epoch(client, 0, version, topic="nowhere") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_epochs_of_leaders_before_us_are_known() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        log = broker.broker.topics.log(TOPIC, 0)
        assert log is not None
        for epoch, text in [(2, "a"), (2, "b"), (5, "c")]:
            broker.on_loop(lambda epoch=epoch, text=text: log.append(batch(text), leader_epoch=epoch))
        produce(client, batch("d"))
        assert list_offsets(client, LATEST).leader_epoch == 5
        assert list_offsets(client, EARLIEST).leader_epoch == 2
        ends = {epoch: end_of_epoch(client, epoch)[1:] for epoch in (1, 2, 3, 5, 6)}
        assert ends == {1: (1, 0), 2: (2, 2), 3: (2, 2), 5: (5, 4), 6: (-1, -1)}
        assert end_of_epoch(client, 2, current=2)[0] == ErrorCode.FENCED_LEADER_EPOCH
        metadata = client.ask(3, 9, topics=[{"name": TOPIC}])
        assert metadata.topics[0].partitions[0].leader_epoch == 5
