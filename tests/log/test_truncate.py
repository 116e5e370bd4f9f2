"""Taking away the end of a log."""

import pytest

from kohort.errors import OffsetOutOfRange
from kohort.log.files import join
from kohort.log.flushed_offset import read_flushed_offset
from kohort.log.recorded_files import Opened, RecordingFiles, Synced, Truncated
from kohort.log.simulated_files import SimulatedFiles
from tests.log.log_bench import Bench, batch, marker


def bench_of_three(files: RecordingFiles | None = None) -> Bench:
    bench = Bench(files, index_interval_bytes=0)
    bench.segment(batch("a", "b"), batch("c", "d"))
    bench.segment(batch("e", "f"), batch("g", "h"))
    bench.append(batch("i", "j"))
    return bench


@pytest.mark.parametrize(
    ("offset", "end", "bases"),
    [
        (10, 10, [0, 4, 8]),
        (9, 8, [0, 4, 8]),
        (8, 8, [0, 4]),
        (7, 6, [0, 4]),
        (6, 6, [0, 4]),
        (4, 4, [0]),
        (1, 0, [0]),
        (0, 0, [0]),
    ],
)
def test_the_batch_that_holds_the_offset_goes_and_all_behind_it(offset: int, end: int, bases: list[int]) -> None:
    bench = bench_of_three()
    bench.log.truncate_to(offset)
    assert bench.log.log_end_offset == bench.log.high_watermark == end
    assert bench.bases() == bases
    assert bench.values() == list("abcdefghij")[:end]
    bench.append(batch("x"))
    assert bench.values() == [*"abcdefghij"[:end], "x"]
    bench.open()
    assert bench.values() == [*"abcdefghij"[:end], "x"]
    bench.restart()
    assert bench.values() == [*"abcdefghij"[:end], "x"]


def test_truncation_below_the_log_start_is_refused() -> None:
    bench = bench_of_three()
    bench.log.delete_records_before(3)
    with pytest.raises(OffsetOutOfRange):
        bench.log.truncate_to(2)


def test_leader_epochs_behind_the_new_end_are_forgotten() -> None:
    bench = Bench()
    for epoch in range(3):
        bench.log.append(batch("a"), leader_epoch=epoch)
    bench.log.truncate_to(2)
    assert bench.log.leader_epochs.entries == [(0, 0), (1, 1)]


def test_transactions_are_open_again_when_their_marker_is_gone() -> None:
    bench = Bench()
    bench.segment(batch("a", producer=1, epoch=0, sequence=0, transactional=True), marker(1, commit=False))
    bench.append(batch("b"))
    bench.log.truncate_to(1)
    assert bench.log.last_stable_offset == 0
    assert bench.log.aborted_transactions(0, 10) == []
    bench.append(marker(1))
    bench.restart()
    assert bench.log.last_stable_offset == 2
    assert bench.log.aborted_transactions(0, 10) == []


def test_the_note_of_what_is_durable_is_lowered_on_the_disk_before_the_log_is_cut() -> None:
    files = RecordingFiles(SimulatedFiles({"/data": None}))
    bench = bench_of_three(files)
    paths = {done.handle: done.path for done in files.operations if isinstance(done, Opened)}
    start = len(files.operations)
    bench.log.truncate_to(5)
    done = [
        (type(operation), paths[operation.handle])
        for operation in files.operations[start:]
        if isinstance(operation, Synced | Truncated) and operation.handle in paths
    ]
    assert done[0] == (Synced, join(bench.path, "flushed-offset"))
    assert (Truncated, join(bench.path, f"{4:020d}.log")) in done
    assert read_flushed_offset(files, join(bench.path, "flushed-offset")) == (4, 4, 0)


def test_whoever_keeps_the_recovery_point_is_told_first() -> None:
    bench = bench_of_three()
    told: list[tuple[int, int]] = []
    bench.log._before_truncation = lambda offset: told.append((offset, bench.log.log_end_offset))
    bench.log.truncate_to(6)
    assert told == [(4, 10)]
