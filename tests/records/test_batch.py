"""Record batches: written and read back, stamped in place."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.records.batch import (
    Record,
    RecordBatch,
    increment_sequence,
    read_batch,
    read_batches,
    stamp,
    stamp_append_time,
)
from kohort.records.control import ControlType, Marker, decode_marker, marker_batch
from tests.records.strategies import batches, int32


@given(batches(base_offset=7))
@settings(max_examples=300, deadline=None)
def test_a_batch_comes_back(batch: RecordBatch) -> None:
    read = read_batch(batch.encode())
    timestamps = [batch.header.max_timestamp if batch.header.is_log_append_time else r.timestamp for r in batch.records]
    assert [record._replace(timestamp=0) for record in read.records] == [
        record._replace(timestamp=0) for record in batch.records
    ]
    assert [record.timestamp for record in read.records] == timestamps
    assert read.header.attributes == batch.header.attributes
    assert read.header.next_offset == batch.header.next_offset
    if not batch.header.is_log_append_time:
        assert RecordBatch(read.header, read.records).encode()[61:] == batch.encode()[61:] or batch.header.codec


@given(batches(), st.integers(0, (1 << 63) - 1), int32)
@settings(max_examples=100, deadline=None)
def test_a_log_stamps_a_finished_batch_without_a_new_checksum(batch: RecordBatch, offset: int, epoch: int) -> None:
    data = bytearray(batch.encode())
    crc = bytes(data[17:21])
    stamp(data, base_offset=offset, partition_leader_epoch=epoch)
    header = read_batch(bytes(data)).header
    assert (header.base_offset, header.partition_leader_epoch, bytes(data[17:21])) == (offset, epoch, crc)


def test_the_time_of_the_append_stands_for_all_records() -> None:
    data = bytearray(RecordBatch.build([Record(0, 5, b"a", b"b"), Record(1, 9, b"c", None)]).encode())
    stamp_append_time(data, 77)
    assert [record.timestamp for record in read_batch(bytes(data)).records] == [77, 77]


@given(st.sampled_from(ControlType), int32)
def test_a_marker_is_78_bytes_and_comes_back(control_type: ControlType, epoch: int) -> None:
    marker = Marker(control_type, epoch)
    data = marker_batch(marker, producer_id=3, producer_epoch=1, timestamp=5).encode()
    assert len(data) == 78
    (batch,) = read_batches(data)
    assert batch.header.is_control
    assert batch.header.is_transactional
    assert decode_marker(batch.records[0]) == marker


def test_sequences_wrap_to_zero() -> None:
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(5, 3) == 8
