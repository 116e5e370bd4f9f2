"""Snapshots of the producers."""

import pytest

from kohort.errors import CorruptLog
from kohort.log.files import join, read_whole
from kohort.log.producer_entry import BatchMetadata, ProducerEntry
from kohort.log.producer_snapshot import (
    decode_snapshot,
    delete_snapshots,
    encode_snapshot,
    newest_snapshot,
    snapshot_offsets,
    write_snapshot,
)
from kohort.log.simulated_files import SimulatedFiles
from tests.log.log_bench import TIME, Bench, batch, marker

SNAPSHOT = bytes.fromhex(
    "0001 f2500777 00000001"
    "0000000000000007 0003 00000009 0000000000000064 00000004 00000174876e8000 00000002 0000000000000060"
)


def producer(producer_id: int = 7, **fields: int) -> ProducerEntry:
    entry = ProducerEntry(producer_id, 3, 2, TIME, **fields)
    entry.batches.append(BatchMetadata(9, 100, 4, TIME))
    return entry


def test_a_snapshot_is_kafkas_version_1_with_a_checksum_behind_the_version() -> None:
    assert encode_snapshot([producer(current_txn_first_offset=96)]) == SNAPSHOT


def test_producers_come_back_with_their_last_batch() -> None:
    entries = [producer(current_txn_first_offset=96), producer(8), ProducerEntry(9, 1, 0, TIME)]
    assert decode_snapshot(encode_snapshot(entries)) == entries
    assert decode_snapshot(encode_snapshot([])) == []


@pytest.mark.parametrize(
    "data",
    [b"", SNAPSHOT[:-1], SNAPSHOT + b"\x00", b"\x00\x02" + SNAPSHOT[2:], SNAPSHOT[:20] + b"\xff" + SNAPSHOT[21:]],
    ids=["empty", "cut off", "too long", "unknown version", "flipped"],
)
def test_what_is_not_whole_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptLog):
        decode_snapshot(data)


def test_the_newest_whole_snapshot_within_the_limit_is_taken() -> None:
    files = SimulatedFiles({"/d": None})
    for offset in (10, 20, 30):
        write_snapshot(files, "/d", offset, [producer(offset)])
    file = files.open(f"/d/{20:020d}.snapshot")
    file.write_at(15, b"\xff")
    file.close()
    assert newest_snapshot(files, "/d", 35) == (30, [producer(30)])
    assert newest_snapshot(files, "/d", 29) == (10, [producer(10)])
    assert newest_snapshot(files, "/d", 9) is None
    delete_snapshots(files, "/d", before=20, behind=25)
    assert snapshot_offsets(files, "/d") == [20]


def test_a_log_keeps_the_snapshots_that_a_recovery_would_need() -> None:
    bench = Bench()
    for n in range(4):
        bench.segment(batch("v", producer=7, epoch=0, sequence=n))
    assert snapshot_offsets(bench.files, bench.path) == [1, 2, 3, 4]
    bench.log.delete_old_snapshots(3)
    assert snapshot_offsets(bench.files, bench.path) == [3, 4]


def test_a_recovery_from_any_point_gives_the_same_producers() -> None:
    bench = Bench()
    bench.segment(
        batch("v", producer=7, epoch=0, sequence=0), batch("v", producer=8, epoch=0, sequence=0, transactional=True)
    )
    bench.segment(batch("v", producer=7, epoch=0, sequence=1), marker(8, commit=False))
    bench.append(batch("v", producer=7, epoch=0, sequence=2))
    expected = {number: entry.last_sequence for number, entry in bench.log.producer_state.entries.items()}
    for recovery_point in range(6):
        log = bench.open(recovery_point=recovery_point)
        assert {number: entry.last_sequence for number, entry in log.producer_state.entries.items()} == expected
        assert [txn.producer_id for txn in log.aborted_transactions(0, 10)] == [8]
        log.abandon()


def test_a_damaged_snapshot_is_passed_over_when_a_log_is_opened() -> None:
    bench = Bench()
    bench.segment(batch("v", producer=7, epoch=0, sequence=0))
    bench.append(batch("v", producer=7, epoch=0, sequence=1))
    bench.log.close()
    for offset in snapshot_offsets(bench.files, bench.path):
        file = bench.files.open(join(bench.path, f"{offset:020d}.snapshot"))
        file.truncate(5)
        file.close()
    assert bench.open(clean=True).producer_state.entries[7].last_sequence == 1
    assert read_whole(bench.files, bench.log.segments[0].path)
