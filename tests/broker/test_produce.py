"""What becomes of records that are sent."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kohort.errors import ErrorCode
from kohort.log.faulty_files import FaultyFiles
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import Record, RecordBatch
from kohort.records.compression import Codec
from tests.broker.data_plane import (
    PRODUCE,
    TOPIC,
    batch,
    end_transaction,
    fetch,
    make_topic,
    now_ms,
    produce,
    produce_all,
    produce_request,
    values,
)
from tests.broker.running import running
from tests.broker.slow_disk import SlowDisk
from tests.broker.wire_client import Closed
from tests.log.log_bench import marker


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_tells_the_offset(version: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        assert produce(client, batch("a", "b"), version=version).base_offset == 0
        second = produce(client, batch("c"), version=version)
        assert (second.error_code, second.base_offset, second.log_append_time) == (0, 2, None)
        assert values(fetch(client, 0).records) == ["a", "b", "c"]


def test_versions_below_3_are_told_of_but_not_served() -> None:
    with running() as broker, broker.client() as client:
        told = {api.api_key: (api.min_version, api.max_version) for api in client.ask(18, 0).api_keys}
        assert told[PRODUCE] == (0, 13)
        client.send_frame(b"\0\0\0\2\0\0\0\1\0\0" + b"\0\1\0\0\0\0\0\0\0\0")
        with pytest.raises(Closed):
            client.receive_frame()


@pytest.mark.parametrize("acks", [1, -1])
def test_an_answer_waits_until_the_records_are_on_the_disk(acks: int) -> None:
    files = SlowDisk()
    with running(files=files, settings={"log.flush.mode": "always"}) as broker, broker.client() as client:
        make_topic(broker)
        log = broker.broker.topics.log(TOPIC, 0)
        assert log is not None
        produce(client, batch("a"))
        with broker.client() as other:
            files.may_sync.clear()
            client.send(PRODUCE, 8, **produce_request(batch("b", "c"), acks=acks))
            while broker.on_loop(lambda: log.log_end_offset) != 3:
                pass
            unseen = fetch(other, 0)
            assert (unseen.high_watermark, values(unseen.records)) == (1, ["a"])
            assert not client.has_answer()
            files.may_sync.set()
            assert client.receive().responses[0].partition_responses[0].base_offset == 1
            assert fetch(other, 0).high_watermark == 3


def test_acks_0_is_not_answered() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        client.send(PRODUCE, 8, **produce_request(batch("a"), acks=0))
        assert produce(client, batch("b")).base_offset == 1


def test_acks_0_that_fails_ends_the_connection() -> None:
    with running() as broker, broker.client() as client:
        client.send(PRODUCE, 8, **produce_request(batch("a"), topic="nowhere", acks=0))
        with pytest.raises(Closed):
            client.receive_frame()


def test_other_acks_are_refused() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        refused = produce(client, batch("a"), acks=2)
        assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
        assert produce(client, batch("b")).base_offset == 0


def test_a_partition_that_is_refused_does_not_keep_the_others_back() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        broken = bytearray(batch("a"))
        broken[-1] ^= 1
        answers = produce_all(client, bytes(broken), batch("b"), batch("c"), b"")
        assert [answer.error_code for answer in answers] == [
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert [answer.base_offset for answer in answers] == [-1, 0, -1, -1]


@pytest.mark.parametrize("records", [None, b""])
def test_no_batch_at_all_is_refused_with_a_reason(records: bytes | None) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        refused = produce(client, records)
        assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
        assert refused.error_message


def test_a_batch_that_is_too_large_is_refused() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, max_message_bytes="100")
        assert produce(client, batch("x" * 200)).error_code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
@pytest.mark.parametrize("client_id", ["app", "__admin_client", None])
def test_internal_topics_are_not_for_clients(topic: str, client_id: str | None) -> None:
    """Repaired: nobody produces to the coordinators' topics (2.6.3: whoever has the client id `__admin_client` does)"""
    with running() as broker, broker.client(client_id=client_id) as client:
        make_topic(broker, topic)
        assert produce(client, batch("a"), topic=topic).error_code == ErrorCode.INVALID_TOPIC
        log = broker.broker.topics.log(topic, 0)
        assert log is not None
        assert log.log_end_offset == 0


def test_the_broker_s_time_is_told_where_it_counts() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, message_timestamp_type="LogAppendTime")
        before = now_ms()
        told = produce(client, batch("a", time=1)).log_append_time
        assert before <= told.timestamp() * 1000 <= now_ms()


def test_zstd_needs_version_7() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        packed = batch("a" * 100, codec=Codec.ZSTD)
        assert produce(client, packed, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert produce(client, packed, version=7).error_code == ErrorCode.NONE


def test_an_idempotent_producer_is_answered_twice_but_written_once() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        first = batch("a", "b", producer=7, epoch=0, sequence=0)
        assert produce(client, first).base_offset == 0
        assert produce(client, batch("c", producer=7, epoch=0, sequence=2)).base_offset == 2
        again = produce(client, first)
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
        gap = produce(client, batch("e", producer=7, epoch=0, sequence=4))
        assert (gap.error_code, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
        assert produce(client, batch("d", producer=7, epoch=1, sequence=0)).base_offset == 3
        fenced = produce(client, batch("e", producer=7, epoch=0, sequence=3))
        assert fenced.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert values(fetch(client, 0).records) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("commit", [True, False])
def test_clients_write_no_control_records(commit: bool) -> None:
    """A marker would end somebody else's transaction."""
    with running() as broker, broker.client() as client:
        make_topic(broker)
        open_one = batch("a", producer=7, epoch=0, sequence=0, transactional=True)
        assert produce(client, open_one, transactional_id="t").error_code == ErrorCode.NONE
        forged = marker(7, commit=commit, time=now_ms())
        for transactional_id in ("t", None):
            refused = produce(client, forged, transactional_id=transactional_id)
            assert refused.error_code in (ErrorCode.INVALID_RECORD, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        assert produce(client, forged, transactional_id="t").error_code == ErrorCode.INVALID_RECORD
        assert fetch(client, 0).last_stable_offset == 0


def test_a_transactional_batch_needs_a_transactional_id() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        within = batch("a", producer=7, epoch=0, sequence=0, transactional=True)
        refused = produce_all(client, batch("b"), within)
        assert {answer.error_code for answer in refused} == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        assert produce(client, within, transactional_id="t").error_code == ErrorCode.NONE
        end_transaction(broker, 7, commit=True)
        assert fetch(client, 0).last_stable_offset == 2


def test_who_wants_all_acknowledgements_waits_no_longer_than_he_said() -> None:
    """What was written stays: it is read when it is safe, and sent again it is known."""
    files = SlowDisk()
    with running(files=files, settings={"log.flush.mode": "always"}) as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        produce(client, batch("a"))
        files.may_sync.clear()
        sent = batch("b", producer=7, epoch=0, sequence=0)
        refused = produce(client, sent, timeout=20)
        assert (refused.error_code, refused.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 1)
        assert values(fetch(client, 0).records) == ["a"]
        client.send(PRODUCE, 8, **produce_request(sent))
        files.may_sync.set()
        again = client.receive().responses[0].partition_responses[0]
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 1)
        assert values(fetch(client, 0).records) == ["a", "b"]


def test_only_partitions_that_are_not_safe_in_time_are_told_so() -> None:
    files = SlowDisk()
    with running(files=files, settings={"log.flush.mode": "always"}) as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        known = batch("a", producer=7, epoch=0, sequence=0)
        produce_all(client, known, batch("first"))
        files.may_sync.clear()
        answers = produce_all(client, known, batch("b"), timeout=20)
        assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
        files.may_sync.set()


def test_one_acknowledgement_has_no_timeout() -> None:
    """As in Kafka, where the leader alone is asked and there is nothing to wait for."""
    files = SlowDisk()
    with running(files=files, settings={"log.flush.mode": "always"}) as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("first"))
        files.may_sync.clear()
        client.send(PRODUCE, 8, **produce_request(batch("a"), acks=1, timeout=0))
        with broker.client() as other:
            other.ask(18, 0)  # whatever was due at once has happened
        assert not client.has_answer()
        files.may_sync.set()
        assert client.receive().responses[0].partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [8, 13])
def test_records_that_a_topic_does_not_take_are_named(version: int) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, cleanup_policy="compact")
        records = [Record(number, now_ms(), key, b"v") for number, key in enumerate((b"k", None, b"k", None))]
        refused = produce(client, RecordBatch.build(records).encode(), version=version)
        assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_RECORD, -1)
        assert [error.batch_index for error in refused.record_errors] == [1, 3]
        assert {error.batch_index_error_message for error in refused.record_errors} == {
            "a compacted topic takes no record without a key"
        }
        assert refused.error_message.startswith("2 of 4 records")
        assert fetch(client, 0).high_watermark == 0


@pytest.mark.parametrize(
    ("setting", "age", "is_taken"),
    [
        ("message_timestamp_difference_max_ms", -100_000, False),
        ("message_timestamp_difference_max_ms", 100_000, False),
        ("message_timestamp_before_max_ms", 100_000, False),
        ("message_timestamp_before_max_ms", -100_000, True),
        ("message_timestamp_after_max_ms", 100_000, True),
        ("message_timestamp_after_max_ms", -100_000, False),
    ],
)
def test_times_that_are_too_far_from_ours_are_refused(setting: str, age: int, is_taken: bool) -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, **{setting: "60000"})
        times = [now_ms(), now_ms() - age, -1]
        records = [Record(number, time, b"k", b"v") for number, time in enumerate(times)]
        told = produce(client, RecordBatch.build(records).encode())
        if is_taken:
            assert told.error_code == ErrorCode.NONE
        else:
            assert told.error_code == ErrorCode.INVALID_TIMESTAMP
            assert [error.batch_index for error in told.record_errors] == [1]


def test_times_do_not_matter_where_the_broker_s_own_counts() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, message_timestamp_difference_max_ms="1000", message_timestamp_type="LogAppendTime")
        assert produce(client, batch("a", time=5)).error_code == ErrorCode.NONE


class FullDisk(FaultyFiles):
    """Files that have no room for one call of some kind."""

    def __init__(self) -> None:
        super().__init__(SimulatedFiles())
        self.refuses: str | None = None

    @contextmanager
    def call(self, name: str, path: str) -> Iterator[None]:
        if name == self.refuses:
            self.refuses = None
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        with super().call(name, path):
            yield


@pytest.mark.parametrize(
    ("version", "error"), [(3, ErrorCode.NOT_LEADER_OR_FOLLOWER), (4, ErrorCode.KAFKA_STORAGE_ERROR)]
)
def test_a_full_disk_is_told_and_forgotten_when_there_is_room_again(version: int, error: ErrorCode) -> None:
    files = FullDisk()
    with running(files=files) as broker, broker.client() as client:
        make_topic(broker)
        assert produce(client, batch("a")).error_code == ErrorCode.NONE
        files.refuses = "append"
        refused = produce(client, batch("b"), version=version)
        assert (refused.error_code, refused.base_offset) == (error, -1)
        assert produce(client, batch("b")).base_offset == 1


def test_what_could_not_be_synced_is_not_acknowledged() -> None:
    files = FullDisk()
    with running(files=files, settings={"log.flush.mode": "always"}) as broker, broker.client() as client:
        make_topic(broker)
        assert produce(client, batch("a")).error_code == ErrorCode.NONE
        files.refuses = "sync"
        refused = produce(client, batch("b"))
        assert (refused.error_code, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert produce(client, batch("c")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch(client, 0).high_watermark == 1
    assert len(broker.failures) == 1
