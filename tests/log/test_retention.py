"""What is deleted, when, and what becomes of its files."""

import pytest

from kohort.errors import OffsetOutOfRange, StorageFailed
from tests.log.log_bench import TIME, Bench, batch

SIZE = len(batch("a"))
MINUTE = 60_000


def bench_of(count: int, **settings: object) -> Bench:
    """Segments of one batch each, a minute apart, and an active one with a batch of its own."""
    bench = Bench(segment_bytes=SIZE, segment_ms=1 << 40, **settings)
    bench.append(*(batch("a", time=TIME + n * MINUTE) for n in range(count)))
    bench.clock.advance((count - 1) * MINUTE)
    return bench


def test_nothing_is_deleted_that_is_young_enough() -> None:
    bench = bench_of(4, retention_ms=3 * MINUTE)
    assert bench.log.delete_old_segments() == 0


def test_segments_go_when_their_youngest_record_is_too_old() -> None:
    bench = bench_of(4, retention_ms=MINUTE)
    assert bench.log.delete_old_segments() == 2
    assert bench.bases() == [2, 3]
    assert bench.log.log_start_offset == 2


def test_an_active_segment_that_is_too_old_is_rolled_and_goes_too() -> None:
    bench = bench_of(3, retention_ms=MINUTE)
    bench.clock.advance(10 * MINUTE)
    bench.log.tick()
    assert bench.bases() == [3]
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (3, 3)
    bench.log.tick()
    assert bench.bases() == [3]
    assert bench.restart().log_end_offset == 3


def test_an_old_segment_behind_a_young_one_stays() -> None:
    bench = Bench(segment_bytes=SIZE, segment_ms=1 << 40, retention_ms=MINUTE)
    bench.append(batch("a", time=TIME + 5 * MINUTE), batch("b", time=TIME), batch("c", time=TIME))
    bench.clock.advance(5 * MINUTE)
    assert bench.log.delete_old_segments() == 0


def test_segments_without_times_do_not_grow_old() -> None:
    bench = Bench(segment_bytes=SIZE, retention_ms=MINUTE)
    bench.append(batch("a", time=-1), batch("b", time=-1))
    bench.clock.advance(100 * MINUTE)
    assert bench.log.delete_old_segments() == 0


def test_segments_go_while_the_rest_is_still_large_enough() -> None:
    bench = bench_of(5, retention_ms=-1, retention_bytes=3 * SIZE - 1)
    assert bench.log.delete_old_segments() == 2
    assert bench.log.delete_old_segments() == 0
    assert bench.log.size == 3 * SIZE


def test_a_compacted_log_is_not_deleted_from() -> None:
    bench = bench_of(4, retention_ms=1, retention_bytes=1, cleanup_policy=frozenset({"compact"}))
    bench.clock.advance(100 * MINUTE)
    assert bench.log.delete_old_segments() == 0


def test_segments_below_the_log_start_go_whatever_the_policy() -> None:
    bench = bench_of(4, cleanup_policy=frozenset({"compact"}))
    assert bench.log.delete_records_before(2) == 2
    assert bench.bases() == [0, 1, 2, 3]
    assert bench.log.delete_old_segments() == 2
    assert bench.bases() == [2, 3]


def test_what_is_not_durable_is_not_deleted() -> None:
    bench = bench_of(3, retention_ms=MINUTE)
    bench.append(batch("z", time=TIME), flush=False)
    bench.clock.advance(100 * MINUTE)
    assert bench.log.delete_old_segments() == 3
    assert bench.bases() == [3]


def test_the_log_start_moves_within_what_readers_see() -> None:
    bench = bench_of(2)
    bench.append(batch("z"), flush=False)
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRange):
            bench.log.delete_records_before(offset)
    assert bench.log.delete_records_before(2) == 2
    assert bench.log.delete_records_before(1) == 2


def test_the_log_start_survives_if_it_is_handed_over() -> None:
    bench = bench_of(3)
    bench.log.delete_records_before(1)
    bench.log.close()
    assert bench.open(clean=True, log_start_offset=1).log_start_offset == 1
    bench.log.close()
    assert bench.open(clean=True, log_start_offset=99).log_start_offset == 3


def test_leader_epochs_go_with_what_they_wrote() -> None:
    bench = Bench(segment_bytes=SIZE)
    for epoch in range(4):
        bench.log.append(batch("a"), leader_epoch=epoch)
    bench.log.flush()
    bench.log.delete_records_before(2)
    assert bench.log.leader_epochs.entries == [(2, 2), (3, 3)]


def test_deleted_files_are_renamed_at_once_and_removed_later() -> None:
    bench = bench_of(3, retention_ms=MINUTE // 2, file_delete_delay_ms=5000)
    bench.log.tick()
    assert f"{0:020d}.log" not in bench.names()
    assert f"{0:020d}.log.deleted" in bench.names()
    bench.clock.advance(4999)
    bench.log.tick()
    assert f"{0:020d}.log.deleted" in bench.names()
    bench.clock.advance(1)
    bench.log.tick()
    assert not [name for name in bench.names() if name.endswith(".deleted")]


def test_deleted_files_are_removed_by_the_next_start() -> None:
    bench = bench_of(3, retention_ms=MINUTE // 2)
    bench.log.tick()
    bench.restart()
    assert not [name for name in bench.names() if name.endswith(".deleted")]
    assert bench.log.log_start_offset == 2


def test_snapshots_below_the_log_start_go() -> None:
    bench = bench_of(4, retention_ms=MINUTE)
    bench.log.tick()
    assert [name for name in bench.names() if name.endswith(".snapshot")] == [
        f"{2:020d}.snapshot",
        f"{3:020d}.snapshot",
    ]


def test_a_closed_log_takes_nothing_more() -> None:
    bench = bench_of(1)
    bench.log.close()
    for call in (bench.log.tick, bench.log.roll, lambda: bench.log.append(batch("a"))):
        with pytest.raises(StorageFailed, match="closed"):
            call()
