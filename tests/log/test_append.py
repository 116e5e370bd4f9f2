"""What a log does with batches, and which it refuses."""

from dataclasses import replace

import pytest

from kohort.config import FlushMode
from kohort.errors import (
    ClientError,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    RecordListTooLarge,
    RecordTooLarge,
)
from kohort.log.partition import AppendOrigin, ReadUpTo
from kohort.records.batch import RecordBatch, read_batch, read_batches
from kohort.records.compression import Codec
from tests.log.log_bench import TIME, Bench, batch, marker, read_all, read_bytes


def test_offsets_are_given_one_after_the_other() -> None:
    bench = Bench()
    first = bench.log.append(batch("a", "b", "c"))
    second = bench.log.append(batch("d"))
    assert (first.first_offset, first.last_offset) == (0, 2)
    assert (second.first_offset, second.last_offset, second.next_offset) == (3, 3, 4)
    assert [(r.offset, r.value) for r in read_all(bench.log)] == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


def test_several_batches_of_the_coordinator_go_in_one_write() -> None:
    bench = Bench()
    info = bench.log.append(batch("a", "b") + batch("c"), origin=AppendOrigin.COORDINATOR)
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert [found.header.base_offset for found in read_batches(read_bytes(bench.log))] == [0, 2]


def test_a_batch_keeps_everything_but_its_place() -> None:
    bench = Bench()
    bench.log.append(batch("a"))
    sent = batch("b", "c", codec=Codec.GZIP, producer=5, epoch=1, sequence=0)
    bench.log.append(sent, leader_epoch=4)
    stored = read_batch(bench.log.read(1, 1000, up_to=ReadUpTo.LOG_END).records)
    assert stored.header == replace(read_batch(sent).header, base_offset=1, partition_leader_epoch=4)


def test_the_leader_epoch_is_noted_where_it_begins() -> None:
    bench = Bench()
    bench.log.append(batch("a"), leader_epoch=0)
    bench.log.append(batch("b"), leader_epoch=3)
    bench.log.append(batch("c"), leader_epoch=3)
    assert bench.log.leader_epochs.entries == [(0, 0), (3, 1)]


def test_log_append_time_is_stamped_with_a_fresh_checksum() -> None:
    bench = Bench(message_timestamp_type="LogAppendTime")
    bench.clock.advance(77)
    info = bench.log.append(batch("a", "b", time=5))
    assert info.log_append_time == TIME + 77
    assert [record.timestamp for record in read_all(bench.log)] == [TIME + 77] * 2


def test_create_time_leaves_the_producers_time() -> None:
    bench = Bench()
    assert bench.log.append(batch("a", time=5)).log_append_time == -1
    assert [record.timestamp for record in read_all(bench.log)] == [5]


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"", InvalidRecord),
        (batch("a")[:-1], CorruptMessage),
        (batch("a")[:-1] + b"\xff", CorruptMessage),
        (batch("a") + b"junk", CorruptMessage),
        (batch("a") + batch("b"), InvalidRecord),
        (marker(1), InvalidRecord),
        (batch("a", producer=1, epoch=0, sequence=-1), InvalidRecord),
        (batch("a", transactional=True), InvalidRecord),
        (RecordBatch.build([]).encode(), InvalidRecord),
        (RecordBatch.build(read_batch(batch("a")).records, last_offset_delta=3).encode(), InvalidRecord),
        (RecordBatch.build(read_batch(batch("a")).records, log_append_time=True).encode(), InvalidTimestamp),
        (batch("x" * 2000), RecordTooLarge),
    ],
    ids=[
        "nothing",
        "cut off",
        "bad checksum",
        "junk behind",
        "two batches",
        "control records",
        "no sequence",
        "transaction of nobody",
        "no records",
        "more offsets than records",
        "claims to be LogAppendTime",
        "too large",
    ],
)
def test_what_is_refused_leaves_no_trace(data: bytes, refusal: type[ClientError]) -> None:
    bench = Bench(max_message_bytes=1000)
    with pytest.raises(refusal):
        bench.log.append(data)
    assert bench.log.log_end_offset == 0
    assert bench.log.size == 0
    assert not bench.log.producer_state.entries


def test_records_numbered_with_holes_are_refused() -> None:
    records = read_batch(batch("a", "b", "c")).records
    holes = [records[0], records[2]._replace(offset=4)]
    data = RecordBatch.build(holes, last_offset_delta=1).encode()
    with pytest.raises(InvalidRecord, match="numbered"):
        Bench().log.append(data)


def test_a_compacted_topic_wants_keys() -> None:
    bench = Bench(cleanup_policy=frozenset({"compact"}))
    with pytest.raises(InvalidRecord, match="key"):
        bench.log.append(batch("a", key=None))
    bench.log.append(batch("a", key=b""))


def test_an_append_larger_than_a_segment_is_refused() -> None:
    bench = Bench(segment_bytes=200)
    with pytest.raises(RecordListTooLarge):
        bench.log.append(batch("a") * 5, origin=AppendOrigin.COORDINATOR)


def test_old_formats_are_not_written() -> None:
    legacy = bytearray(batch("a"))
    legacy[16] = 1
    with pytest.raises(ClientError):
        Bench().log.append(bytes(legacy))


def test_readers_see_an_append_once_it_is_flushed() -> None:
    bench = Bench()
    bench.log.append(batch("a"))
    assert bench.log.high_watermark == 0
    assert not bench.log.read(0, 1000).records
    assert bench.log.flush() == 1
    assert bench.log.high_watermark == bench.log.recovery_point == 1
    assert bench.log.read(0, 1000).records


@pytest.mark.parametrize("mode", [FlushMode.INTERVAL, FlushMode.OS])
def test_without_waiting_for_syncs_readers_see_an_append_at_once(mode: FlushMode) -> None:
    bench = Bench(flush_mode=mode)
    bench.log.append(batch("a"))
    assert bench.log.high_watermark == 1
    assert bench.log.recovery_point == 0
