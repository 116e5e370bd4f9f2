"""Where a record of the source is in the copy."""

from hypothesis import example, given
from hypothesis import strategies as st

from kohort.migration.offset_map import OffsetMap

LARGEST = (1 << 63) - 1


def mapped(offsets: list[int]) -> OffsetMap:
    found = OffsetMap()
    for offset in offsets:
        found.add(offset)
    return found


@given(st.sets(st.integers(0, 60)), st.integers(0, 70))
@example(set(), 5)
def test_an_offset_is_that_of_the_first_record_that_is_not_before_it(offsets: set[int], asked: int) -> None:
    kept = sorted(offsets)
    wanted = next((copy for copy, source in enumerate(kept) if source >= asked), len(kept))
    assert mapped(kept).translate(asked) == wanted


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=20))
def test_records_that_follow_each_other_can_be_added_at_once(runs: list[tuple[int, int]]) -> None:
    at_once, singly, offset = OffsetMap(), OffsetMap(), 0
    for hole, count in runs:
        offset += hole
        at_once.add(offset, count)
        for number in range(count):
            singly.add(offset + number)
        offset += count
    assert [at_once.translate(asked) for asked in range(offset + 3)] == [
        singly.translate(asked) for asked in range(offset + 3)
    ]
    assert at_once.stretches == singly.stretches <= max(1, sum(hole > 0 for hole, _ in runs) + 1)


def test_offsets_without_holes_stay_as_they_are_and_cost_two_numbers() -> None:
    found = mapped(list(range(10_000)))
    assert [found.translate(offset) for offset in (0, 5_000, 9_999, 10_000)] == [0, 5_000, 9_999, 10_000]
    assert found.stretches == 1


def test_an_offset_far_behind_the_end_is_the_end() -> None:
    assert mapped([7, 8, 12]).translate(LARGEST) == 3
