"""The index files: Kafka's bytes, and what is refused in them."""

import pytest

from kohort.errors import CorruptLog
from kohort.log.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset


def offset_index() -> OffsetIndex:
    index = OffsetIndex(100)
    for offset, position in [(105, 0), (110, 4096), (130, 9000)]:
        index.append(offset, position)
    return index


def time_index() -> TimeIndex:
    index = TimeIndex(100)
    for timestamp, offset in [(1000, 105), (2000, 110), (5000, 130)]:
        index.maybe_append(timestamp, offset)
    return index


def test_an_offset_entry_is_a_relative_offset_and_a_position_of_four_bytes_each() -> None:
    assert offset_index().encode() == bytes.fromhex("00000005 00000000 0000000a 00001000 0000001e 00002328")


def test_a_time_entry_is_eight_bytes_of_time_and_four_of_relative_offset() -> None:
    assert time_index().encode() == bytes.fromhex(
        "00000000000003e8 00000005 00000000000007d0 0000000a 0000000000001388 0000001e"
    )


def test_indexes_come_back_as_they_were_written() -> None:
    assert OffsetIndex.decode(offset_index().encode(), 100, 10_000).entries() == offset_index().entries()
    assert TimeIndex.decode(time_index().encode(), 100).entries() == time_index().entries()


@pytest.mark.parametrize(
    ("offset", "found"), [(99, (100, 0)), (104, (100, 0)), (105, (105, 0)), (129, (110, 4096)), (999, (130, 9000))]
)
def test_an_offset_is_looked_up_from_the_entry_before_it(offset: int, found: tuple[int, int]) -> None:
    assert offset_index().lookup(offset) == OffsetPosition(*found)


@pytest.mark.parametrize(
    ("time", "found"), [(0, (-1, 100)), (1000, (1000, 105)), (4999, (2000, 110)), (9999, (5000, 130))]
)
def test_a_time_is_looked_up_from_the_entry_before_it(time: int, found: tuple[int, int]) -> None:
    assert time_index().lookup(time) == TimestampOffset(*found)


def test_a_position_is_looked_up_from_the_entry_before_it() -> None:
    assert offset_index().lookup_position(8999) == (110, 4096)
    assert OffsetIndex(100).lookup_position(8999) == (100, 0)


def test_a_time_that_does_not_move_on_makes_no_entry() -> None:
    index = time_index()
    index.maybe_append(5000, 140)
    index.maybe_append(4000, 150)
    assert len(index) == 3
    TimeIndex(0).maybe_append(-1, 5)
    assert len(TimeIndex(0)) == 0


def test_truncation_forgets_the_entries_from_an_offset_on() -> None:
    offsets, times = offset_index(), time_index()
    offsets.truncate_to(110)
    times.truncate_to(111)
    assert offsets.last == (105, 0)
    assert times.last == (2000, 110)


@pytest.mark.parametrize(
    "data",
    [
        "0000000500000000 00",
        "0000000500000000 0000000500001000",
        "0000000500001000 0000000a00001000",
        "0000000500000000 0000000a00002710",
        "ffffffff00000000",
        "0000000500000000 0000000000000000",
    ],
    ids=["half an entry", "same offset", "same position", "behind the end", "negative", "zeros at the end"],
)
def test_an_offset_index_that_does_not_add_up_is_refused(data: str) -> None:
    with pytest.raises(CorruptLog):
        OffsetIndex.decode(bytes.fromhex(data), 100, 10_000)


@pytest.mark.parametrize(
    "data",
    [
        "00000000000003e8 00000005 00",
        "00000000000003e8 00000005 00000000000003e8 0000000a",
        "00000000000003e8 00000005 00000000000007d0 00000004",
        "00000000000003e8 ffffffff",
        "00000000000003e8 00000005 0000000000000000 00000000",
    ],
    ids=["half an entry", "same time", "offset falls", "negative offset", "zeros at the end"],
)
def test_a_time_index_that_does_not_add_up_is_refused(data: str) -> None:
    with pytest.raises(CorruptLog):
        TimeIndex.decode(bytes.fromhex(data), 100)
