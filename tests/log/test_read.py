"""Reading by offset and by time, within limits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import OffsetOutOfRange
from kohort.log.partition import ReadUpTo
from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.compression import Codec
from tests.log.log_bench import TIME, Bench, batch, read_bytes

SIZE = len(batch("a"))


def filled(**settings: object) -> Bench:
    """Three segments of ten batches with two records each."""
    bench = Bench(**settings)
    for first in (0, 10, 20):
        bench.append(*(batch(f"{n}a", f"{n}b", time=TIME + n) for n in range(first, first + 10)))
        if first < 20:
            bench.log.roll()
    return bench


def offsets(data: bytes) -> list[int]:
    return [found.header.base_offset for found in read_batches(data)]


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    assert offsets(filled().log.read(5, 10_000).records)[0] == 4


def test_a_read_stays_in_one_segment_and_says_where_to_go_on() -> None:
    fetched = filled().log.read(4, 100_000)
    assert offsets(fetched.records) == list(range(4, 20, 2))
    assert fetched.next_offset == 20


def test_only_whole_batches_are_given() -> None:
    log = filled().log
    size = len(log.read(0, 1).records)
    for max_bytes in range(size, 5 * size):
        fetched = log.read(0, max_bytes)
        assert len(fetched.records) == max_bytes // size * size
        assert fetched.next_offset == 2 * (max_bytes // size)


def test_the_first_batch_is_given_whatever_its_size_if_one_is_wanted() -> None:
    log = filled().log
    assert offsets(log.read(3, 1).records) == [2]
    empty = log.read(3, 1, min_one=False)
    assert (empty.records, empty.next_offset) == (b"", 3)


def test_reading_at_the_end_gives_nothing_and_beyond_it_is_refused() -> None:
    log = filled().log
    assert log.read(60, 1000).records == b""
    for offset in (61, -1):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 1000)


def test_reading_below_the_log_start_is_refused() -> None:
    bench = filled()
    bench.log.delete_records_before(7)
    with pytest.raises(OffsetOutOfRange):
        bench.log.read(6, 1000)
    assert offsets(bench.log.read(7, 1).records) == [6]


def test_readers_stop_at_the_high_watermark() -> None:
    bench = filled()
    bench.append(batch("c"), batch("d"), flush=False)
    assert offsets(bench.log.read(58, 10_000).records) == [58]
    assert bench.log.read(60, 10_000).records == b""
    assert offsets(bench.log.read(58, 10_000, up_to=ReadUpTo.LOG_END).records) == [58, 60, 61]


def test_offsets_that_were_compacted_away_are_passed_over() -> None:
    """`Log.read` goes on to the next segment when nothing is left behind the offset in this one."""
    bench = filled()
    first = bench.log.segments[0]
    cleaned = bench.files.open(first.path + ".cleaned", create=True)
    cleaned.append(b"".join(data for header, data in first.batches() if header.base_offset < 8))
    cleaned.sync()
    cleaned.close()
    bench.log.replace_segments(first.path + ".cleaned", [first])
    assert offsets(bench.log.read(9, 1).records) == [20]
    assert bench.log.read(7, 10_000).next_offset == 8


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_limits_give_the_same_bytes_in_the_end(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=30))
    interval = data.draw(st.sampled_from([0, 100, 1000]))
    bench = Bench(segment_bytes=3000, index_interval_bytes=interval)
    bench.append(*(batch("x" * size, "y") for size in sizes))
    whole = b"".join(found for segment in bench.log.segments for _, found in segment.batches())
    assert read_bytes(bench.log, max_bytes=data.draw(st.integers(1, 2000))) == whole
    wanted = data.draw(st.integers(0, 2 * len(sizes) - 1))
    assert offsets(bench.log.read(wanted, 1).records) == [wanted // 2 * 2]


def test_a_time_leads_to_the_first_record_that_is_as_young() -> None:
    log = filled(index_interval_bytes=100).log
    assert log.offset_for_timestamp(TIME - 5) == (0, TIME, 0)
    assert log.offset_for_timestamp(TIME + 13) == (26, TIME + 13, 0)
    assert log.offset_for_timestamp(TIME + 29) == (58, TIME + 29, 0)
    assert log.offset_for_timestamp(TIME + 30) is None


def test_a_time_is_found_inside_a_batch_and_whatever_the_order() -> None:
    bench = Bench(index_interval_bytes=0)
    for times in ([50, 10, 90], [20, 95, 30], [40, 99, 100]):
        records = [Record(n, TIME + time, b"k", b"v") for n, time in enumerate(times)]
        bench.append(RecordBatch.build(records, codec=Codec.GZIP).encode())
    found = {time: bench.log.offset_for_timestamp(TIME + time) for time in (0, 11, 60, 91, 96, 100)}
    assert {time: place.offset if place else None for time, place in found.items()} == {
        0: 0,
        11: 0,
        60: 2,
        91: 4,
        96: 7,
        100: 8,
    }


def test_a_time_below_the_log_start_leads_to_a_record_behind_it() -> None:
    bench = filled()
    bench.log.delete_records_before(5)
    assert bench.log.offset_for_timestamp(TIME) == (5, TIME + 2, 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(-1, 52), st.integers(0, 200))
def test_times_are_found_as_a_plain_search_finds_them(times: list[int], wanted: int, interval: int) -> None:
    bench = Bench(index_interval_bytes=interval, segment_bytes=600)
    bench.append(*(batch("v", time=TIME + time) for time in times))
    plain = next((n for n, time in enumerate(times) if time >= wanted), None)
    for _ in range(2):
        found = bench.log.offset_for_timestamp(TIME + wanted)
        assert (found.offset if found else None) == plain
        bench.restart()
