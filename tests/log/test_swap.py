"""Replacing old segments by a cleaned one, and what a start makes of a replacement that was cut short."""

from collections.abc import Callable

import pytest

from kohort.errors import CorruptLog
from kohort.log.files import join
from kohort.log.segment import Segment
from kohort.log.simulated_files import SimulatedFiles
from kohort.log.swap import begin_swap, finish_swaps, settle_swaps
from kohort.log.txn_index import AbortedTransaction, TransactionIndex
from tests.log.log_bench import PATH, Bench, batch, marker


def name(offset: int, suffix: str) -> str:
    return join(PATH, f"{offset:020d}{suffix}")


def bench_of_three() -> Bench:
    bench = Bench()
    for values in (("a", "b"), ("c", "d"), ("e", "f")):
        bench.segment(*(batch(value) for value in values))
    bench.append(batch("g"))
    return bench


def clean(bench: Bench, olds: list[Segment], keep: Callable[[int], bool]) -> str:
    """Write a cleaned file with the batches whose offsets are kept."""
    path = olds[0].path + ".cleaned"
    file = bench.files.open(path, create=True)
    for old in olds:
        for header, data in old.batches():
            if keep(header.base_offset):
                file.append(data)
    file.sync()
    file.close()
    return path


def replace(bench: Bench, first: int, last: int, keep: Callable[[int], bool]) -> Segment | None:
    olds = list(bench.log.segments[first : last + 1])
    return bench.log.replace_segments(clean(bench, olds, keep), olds)


def settled(bench: Bench) -> tuple[list[int], list[str]]:
    """The segments and the values after a crash and a start; nothing else is left lying about."""
    bench.open()
    assert not [name for name in bench.names() if name.endswith((".swap", ".cleaned", ".deleted", ".tmp"))]
    return bench.bases(), bench.values()


def test_a_cleaned_segment_takes_the_place_of_several() -> None:
    bench = bench_of_three()
    new = replace(bench, 0, 1, lambda offset: offset in (1, 2))
    assert new is bench.log.segments[0]
    assert bench.bases() == [0, 4, 6]
    assert bench.values() == ["b", "c", "e", "f", "g"]
    assert settled(bench) == ([0, 4, 6], ["b", "c", "e", "f", "g"])
    bench.restart()
    assert bench.values() == ["b", "c", "e", "f", "g"]


def test_the_old_files_are_removed_after_the_delay() -> None:
    bench = bench_of_three()
    replace(bench, 0, 1, lambda offset: offset == 1)
    assert f"{0:020d}.log.deleted" in bench.names()
    bench.clock.advance(60_000)
    bench.log.tick()
    assert not [name for name in bench.names() if name.endswith(".deleted")]
    assert bench.values() == ["b", "e", "f", "g"]


def test_segments_of_which_nothing_is_left_vanish_except_the_first() -> None:
    bench = bench_of_three()
    assert replace(bench, 1, 2, lambda _: False) is None
    assert bench.bases() == [0, 6]
    assert replace(bench, 0, 0, lambda _: False) is not None
    assert bench.bases() == [0, 6]
    assert bench.log.log_start_offset == 0
    assert settled(bench) == ([0, 6], ["g"])


def test_the_active_segment_and_scattered_ones_cannot_be_replaced() -> None:
    bench = bench_of_three()
    segments = bench.log.segments
    for olds in ([segments[-1]], [segments[0], segments[2]]):
        with pytest.raises(ValueError, match="follow on each other"):
            bench.log.replace_segments(olds[0].path + ".cleaned", olds)


def test_a_cleaned_file_with_damage_is_refused_before_anything_is_touched() -> None:
    bench = bench_of_three()
    olds = list(bench.log.segments[:2])
    path = clean(bench, olds, lambda _: True)
    file = bench.files.open(path)
    file.write_at(70, b"\xff\xff")
    file.close()
    with pytest.raises(CorruptLog):
        bench.log.replace_segments(path, olds)
    assert bench.values() == list("abcdefg")


def test_aborted_transactions_are_kept_as_long_as_their_markers() -> None:
    bench = Bench()
    bench.segment(batch("a", producer=1, epoch=0, sequence=0, transactional=True), batch("x"))
    bench.segment(batch("b", producer=2, epoch=0, sequence=0, transactional=True), marker(1, commit=False))
    bench.segment(marker(2, commit=False), batch("y"))
    olds = list(bench.log.segments[:3])
    bench.log.replace_segments(clean(bench, olds, lambda offset: offset != 3), olds)
    assert bench.log.aborted_transactions(0, 10) == [AbortedTransaction(2, 2, 4, 5)]
    bench.open()
    assert [txn.producer_id for txn in bench.log.aborted_transactions(0, 10)] == [2]


def test_while_a_cleaned_file_is_there_everything_is_undone() -> None:
    bench = bench_of_three()
    olds = list(bench.log.segments[:2])
    clean(bench, olds, lambda offset: offset == 0)
    bench.files.open(name(2, ".log.swap"), create=True).close()
    bench.files.open(name(0, ".txnindex.swap"), create=True).close()
    assert settled(bench) == ([0, 2, 4, 6], list("abcdefg"))


def test_a_swap_below_the_smallest_cleaned_file_is_finished() -> None:
    bench = bench_of_three()
    begin = list(bench.log.segments[:1])
    clean(bench, begin, lambda offset: offset == 0)
    begin_swap(bench.files, PATH, 0, [], TransactionIndex())
    clean(bench, [bench.log.segments[2]], lambda _: False)
    assert settled(bench) == ([0, 2, 4, 6], ["a", "c", "d", "e", "f", "g"])


def test_a_lower_cleaned_file_that_was_left_behind_does_not_undo_a_later_swap() -> None:
    bench = bench_of_three()
    clean(bench, list(bench.log.segments[:1]), lambda _: False)
    clean(bench, list(bench.log.segments[2:3]), lambda offset: offset == 4)
    begin_swap(bench.files, PATH, 4, [], TransactionIndex())
    assert settled(bench) == ([0, 2, 4, 6], ["a", "b", "c", "d", "e", "g"])


def test_a_swap_that_has_begun_is_finished_also_for_old_segments_beyond_its_last_offset() -> None:
    """The cleaned segment ends at offset 0, yet both old segments must go, or deleted records would come back."""
    bench = bench_of_three()
    clean(bench, list(bench.log.segments[:2]), lambda offset: offset == 0)
    begin_swap(bench.files, PATH, 0, [2], TransactionIndex([AbortedTransaction(1, 0, 0, 1)]))
    assert settled(bench) == ([0, 4, 6], ["a", "e", "f", "g"])


def test_kafkas_own_swap_files_are_finished_without_their_indexes() -> None:
    bench = bench_of_three()
    clean(bench, list(bench.log.segments[:2]), lambda offset: offset in (0, 3))
    bench.files.rename(name(0, ".log.cleaned"), name(0, ".log.swap"))
    for kind in (".index.swap", ".timeindex.swap", ".txnindex.swap"):
        bench.files.open(name(0, kind), create=True).close()
    assert settled(bench) == ([0, 4, 6], ["a", "d", "e", "f", "g"])


def test_finishing_can_be_cut_short_anywhere_and_begun_again() -> None:
    """Stop before each file operation in turn; the next start always gives the cleaned log."""

    class Stopped(Exception):
        pass

    class StoppingFiles(SimulatedFiles):
        left = 1 << 30

        def _count(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise Stopped

        def rename(self, old: str, new: str) -> None:
            self._count()
            super().rename(old, new)

        def unlink(self, path: str) -> None:
            self._count()
            super().unlink(path)

    for steps in range(20):
        files = StoppingFiles({"/data": None})
        bench = Bench(files)
        for values in (("a", "b"), ("c", "d")):
            bench.segment(*(batch(value) for value in values))
        clean(bench, list(bench.log.segments[:2]), lambda offset: offset == 0)
        begin_swap(files, PATH, 0, [2], TransactionIndex([AbortedTransaction(1, 0, 0, 1)]))
        files.left = steps
        try:
            finish_swaps(files, PATH)
        except Stopped:
            files.left = 1 << 30
            assert settled(bench) == ([0, 4], ["a"])
            assert len(bench.log.segments[0].txn_index) == 1
        else:
            assert steps > 5
            return
    pytest.fail("finishing never ended")


def test_a_damaged_swap_file_is_refused() -> None:
    bench = bench_of_three()
    clean(bench, list(bench.log.segments[:2]), lambda _: True)
    begin_swap(bench.files, PATH, 0, [2], TransactionIndex())
    file = bench.files.open(name(0, ".log.swap"))
    file.write_at(70, b"\xff\xff")
    file.close()
    before = bench.names()
    with pytest.raises(CorruptLog):
        settle_swaps(bench.files, PATH)
    assert bench.names() == before
