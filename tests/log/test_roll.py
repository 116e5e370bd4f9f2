"""When a new segment begins, and what is written then."""

import pytest

from kohort.log.files import join, read_whole, write_whole
from kohort.log.index import OffsetIndex, TimeIndex
from kohort.records.batch import read_header
from tests.log.log_bench import TIME, Bench, batch, marker

SIZE = len(batch("a"))


def test_a_segment_that_would_grow_too_large_is_followed_by_a_new_one() -> None:
    bench = Bench(segment_bytes=2 * SIZE)
    bench.append(*[batch("a")] * 5)
    assert bench.bases() == [0, 2, 4]


def test_a_segment_rolls_when_its_first_batch_is_too_old_by_the_times_of_the_batches() -> None:
    bench = Bench(segment_ms=1000)
    bench.append(batch("a", time=TIME), batch("b", time=TIME + 1000))
    assert bench.bases() == [0]
    bench.append(batch("c", time=TIME + 1001))
    assert bench.bases() == [0, 2]


def test_a_segment_without_times_rolls_by_the_clock() -> None:
    bench = Bench(segment_ms=1000)
    bench.append(batch("a", time=-1))
    bench.clock.advance(1001)
    bench.append(batch("b", time=-1))
    assert bench.bases() == [0, 1]


def test_a_segment_rolls_when_its_index_is_full() -> None:
    bench = Bench(segment_index_bytes=24, index_interval_bytes=0)
    bench.append(*[batch("a")] * 5)
    assert bench.bases() == [0, 4]


def test_a_segment_rolls_before_an_offset_that_its_index_could_not_hold() -> None:
    bench = Bench()
    bench.append(batch("a"))
    bench.log._end = bench.log._end._replace(offset=(1 << 31) - 1)
    bench.append(batch("b"))
    assert bench.bases() == [0]
    bench.append(batch("c"))
    assert bench.bases() == [0, 1 << 31]


def test_an_empty_segment_is_not_followed_by_another() -> None:
    bench = Bench()
    bench.log.roll()
    assert bench.bases() == [0]


def test_a_sealed_segment_is_on_the_disk_with_its_indexes_and_the_producers() -> None:
    bench = Bench(index_interval_bytes=0)
    bench.append(batch("a"), batch("b", time=TIME + 5), batch("c"), flush=False)
    bench.log.roll()
    assert bench.log.recovery_point == 3
    index = OffsetIndex.decode(read_whole(bench.files, join(bench.path, f"{0:020d}.index")), 0, 3 * SIZE)
    times = TimeIndex.decode(read_whole(bench.files, join(bench.path, f"{0:020d}.timeindex")), 0)
    assert index.entries() == [(1, SIZE), (2, 2 * SIZE)]
    assert times.entries() == [(TIME + 5, 1)]
    assert f"{3:020d}.snapshot" in bench.names()
    assert f"{0:020d}.txnindex" not in bench.names()


def test_an_index_entry_is_made_when_enough_bytes_have_passed() -> None:
    bench = Bench(index_interval_bytes=3 * SIZE)
    bench.append(*[batch("a")] * 9)
    assert bench.log.active_segment.offset_index.entries() == [(4, 4 * SIZE), (8, 8 * SIZE)]


def test_aborted_transactions_are_written_with_the_segment_that_holds_their_marker() -> None:
    bench = Bench()
    bench.segment(batch("a", producer=1, epoch=0, sequence=0, transactional=True))
    bench.segment(marker(1, commit=False))
    assert [len(segment.txn_index) for segment in bench.log.segments] == [0, 1, 0]
    assert f"{1:020d}.txnindex" in bench.names()


@pytest.mark.parametrize("damage", [b"\x00" * 9, b"\xff" * 24])
def test_an_index_that_is_bad_is_made_again_from_the_batches(damage: bytes) -> None:
    bench = Bench(index_interval_bytes=0)
    bench.segment(*[batch("a")] * 9)
    bench.log.close()
    for kind in ("index", "timeindex"):
        file = bench.files.open(join(bench.path, f"{0:020d}.{kind}"))
        file.truncate(0)
        file.append(damage)
        file.close()
    log = bench.open(clean=True)
    assert log.read(5, 1).next_offset == 6
    assert log.segments[0].max_timestamp == TIME


def test_a_flipped_bit_in_an_index_misleads_nobody() -> None:
    """Kafka's indexes have no checksum: what an entry leads to is looked at before it is believed."""
    bench = Bench(index_interval_bytes=0)
    bench.segment(*(batch("a", "b", time=TIME + 10 * n) for n in range(6)))
    bench.append(batch("z", time=TIME + 1000))
    bench.log.close()
    for kind in ("index", "timeindex"):
        path = join(bench.path, f"{0:020d}.{kind}")
        whole = read_whole(bench.files, path)
        for position in range(len(whole)):
            for bit in range(8):
                spoiled = bytearray(whole)
                spoiled[position] ^= 1 << bit
                write_whole(bench.files, path, bytes(spoiled))
                log = bench.open(clean=True)
                assert [read_header(log.read(n, 1).records).base_offset for n in range(12)] == [
                    n // 2 * 2 for n in range(12)
                ]
                assert log.read(0, 3 * SIZE).next_offset == 4
                found = [log.offset_for_timestamp(TIME + 10 * n - 5) for n in range(6)]
                assert [place.offset if place else None for place in found] == [0, 2, 4, 6, 8, 10]
                assert log.segments[0].max_timestamp == TIME + 50
                log.abandon()
        write_whole(bench.files, path, whole)
