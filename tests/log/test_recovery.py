"""Opening a partition after a crash: what is cut, what is refused, what is made again."""

import logging
from pathlib import Path

import pytest

from kohort.errors import CorruptLog
from kohort.log.files import join, write_whole
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import read_header
from tests.golden_sets import GOLDEN, ROOT
from tests.log.log_bench import TIME, Bench, batch, marker
from tests.slow import nightly

LOG = f"{0:020d}.log"


def spoil(bench: Bench, name: str, position: int, data: bytes = b"\xff") -> None:
    file = bench.files.open(join(bench.path, name))
    file.write_at(position, data)
    file.close()


def cut(bench: Bench, name: str, size: int) -> None:
    file = bench.files.open(join(bench.path, name))
    file.truncate(size)
    file.close()


def image(bench: Bench) -> dict[str, bytes | None]:
    assert isinstance(bench.files, SimulatedFiles)
    return {path: data if data is None else bytes(data) for path, data in bench.files.image().items()}


SIZE = len(batch("a"))


def test_a_new_directory_becomes_an_empty_log() -> None:
    bench = Bench()
    assert (bench.log.log_start_offset, bench.log.log_end_offset, bench.bases()) == (0, 0, [0])
    assert bench.restart().log_end_offset == 0


def test_a_directory_of_another_name_is_not_opened() -> None:
    with pytest.raises(ValueError, match="not the directory of a partition"):
        Bench(path="/data/orders")


def test_what_was_appended_is_there_after_a_kill_whether_it_was_synced_or_not() -> None:
    bench = Bench()
    bench.append(batch("a"))
    bench.append(batch("b"), flush=False)
    bench.open()
    assert bench.values() == ["a", "b"]
    assert bench.log.high_watermark == 2


@pytest.mark.parametrize(
    "tail",
    [b"\x00" * 500, b"junk", batch("z")[:-1], batch("z")[:40], batch("a") + b"\xff" * 9],
    ids=["zeros", "too short", "cut off", "half a header", "batches of another place"],
)
def test_a_bad_tail_behind_what_was_synced_is_cut_and_told(tail: bytes, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.append(batch("a"), batch("b"))
    bench.log.active_segment.file.append(tail)
    with caplog.at_level(logging.WARNING):
        bench.open()
    assert bench.values() == ["a", "b"]
    assert bench.log.cut_bytes == len(tail)
    assert f"{len(tail)} bytes from byte {2 * SIZE}" in caplog.text
    bench.append(batch("c"))
    bench.open()
    assert bench.values() == ["a", "b", "c"]
    assert bench.log.cut_bytes == 0


def test_damage_below_what_was_synced_is_refused_with_its_place_and_nothing_is_changed() -> None:
    bench = Bench()
    bench.append(batch("a"), batch("b"), batch("c"))
    spoil(bench, LOG, SIZE + 65)
    before = image(bench)
    with pytest.raises(CorruptLog, match="checksum") as refused:
        bench.open()
    assert refused.value.path == join(bench.path, LOG)
    assert refused.value.position == SIZE
    assert image(bench) == before


def test_the_same_damage_behind_what_was_synced_is_cut() -> None:
    bench = Bench()
    bench.append(batch("a"))
    bench.append(batch("b"), batch("c"), flush=False)
    spoil(bench, LOG, SIZE + 65)
    bench.open()
    assert bench.values() == ["a"]


def test_bytes_that_are_missing_below_what_was_synced_are_refused() -> None:
    bench = Bench()
    bench.append(batch("a"), batch("b"))
    cut(bench, LOG, SIZE)
    with pytest.raises(CorruptLog, match="offset 1, but up to 2 everything was synced"):
        bench.open()


def test_a_segment_that_is_missing_below_what_was_synced_is_refused() -> None:
    bench = Bench()
    bench.append(batch("a"))
    bench.files.unlink(join(bench.path, LOG))
    with pytest.raises(CorruptLog, match="everything was synced"):
        bench.open()
    assert LOG not in bench.names()


def test_the_recovery_point_counts_as_synced_when_the_note_is_lost() -> None:
    bench = Bench()
    bench.append(batch("a"), batch("b"))
    bench.files.unlink(join(bench.path, "flushed-offset"))
    spoil(bench, LOG, SIZE + 65)
    with pytest.raises(CorruptLog):
        bench.open(recovery_point=2)
    bench.open(recovery_point=1)
    assert bench.values() == ["a"]


def test_damage_in_a_segment_with_a_successor_is_refused_even_if_no_note_is_left() -> None:
    bench = Bench()
    bench.segment(batch("a"), batch("b"))
    bench.append(batch("c"))
    bench.files.unlink(join(bench.path, "flushed-offset"))
    spoil(bench, LOG, SIZE + 65)
    with pytest.raises(CorruptLog) as refused:
        bench.open()
    assert refused.value.position == SIZE


def test_a_segment_that_reaches_into_its_successor_is_refused() -> None:
    bench = Bench()
    bench.segment(batch("a"), batch("b"))
    bench.files.rename(join(bench.path, f"{2:020d}.log"), join(bench.path, f"{1:020d}.log"))
    with pytest.raises(CorruptLog, match="next segment's base offset 1"):
        bench.open()


def test_segments_below_the_recovery_point_are_not_read() -> None:
    bench = Bench()
    bench.segment(batch("a"), batch("b"))
    bench.append(batch("c"))
    spoil(bench, LOG, 65)
    assert bench.open(recovery_point=2).log_end_offset == 3


def test_after_a_clean_stop_a_bad_end_is_refused() -> None:
    bench = Bench()
    bench.append(batch("a"))
    bench.log.close()
    cut(bench, LOG, SIZE - 1)
    with pytest.raises(CorruptLog):
        bench.open(clean=True)


def test_after_a_clean_stop_only_the_end_of_the_last_segment_is_read() -> None:
    bench = Bench(index_interval_bytes=0)
    bench.append(*[batch(value) for value in "abcd"])
    bench.log.close()
    spoil(bench, LOG, 65)
    assert bench.open(clean=True).log_end_offset == 4
    bench.append(batch("e"))
    assert bench.log.active_segment.offset_index.entries() == [(n, n * SIZE) for n in range(1, 5)]


def test_opening_twice_is_opening_once() -> None:
    bench = Bench(index_interval_bytes=0)
    bench.segment(batch("a", producer=1, epoch=0, sequence=0, transactional=True), marker(1, commit=False))
    bench.append(batch("b"))
    bench.log.active_segment.file.append(b"torn")
    bench.open()
    once = {path: data for path, data in image(bench).items() if not path.endswith("flushed-offset")}
    bench.open()
    assert {path: data for path, data in image(bench).items() if not path.endswith("flushed-offset")} == once


def test_missing_indexes_are_made_again_as_they_were() -> None:
    bench = Bench(index_interval_bytes=100)
    transactional = batch("a", producer=1, epoch=0, sequence=0, transactional=True)
    bench.segment(transactional, *(batch("b", time=TIME + n) for n in range(9)), marker(1, commit=False))
    bench.segment(batch("c"), transactional)
    bench.append(marker(1, commit=False))
    bench.log.close()
    before = image(bench)
    for name in bench.names():
        if "index" in name:
            bench.files.unlink(join(bench.path, name))
    bench.open(clean=True)
    bench.log.close()
    assert {path: data for path, data in image(bench).items() if "index" in path} == {
        path: data for path, data in before.items() if "index" in path
    }


def test_leader_epochs_are_found_again_in_the_batches() -> None:
    bench = Bench()
    for epoch in (0, 0, 3, 3, 4):
        bench.log.append(batch("a"), leader_epoch=epoch)
    bench.files.unlink(join(bench.path, "leader-epoch-checkpoint"))
    assert bench.open().leader_epochs.entries == [(0, 0), (3, 2), (4, 4)]


def test_an_epoch_whose_batches_were_lost_is_forgotten() -> None:
    bench = Bench()
    bench.append(batch("a"))
    bench.log.append(batch("b"), leader_epoch=7)
    cut(bench, LOG, SIZE)
    assert bench.open().leader_epochs.entries == [(0, 0)]


def test_leftovers_are_swept_away() -> None:
    bench = Bench()
    bench.segment(batch("a"))
    for name in (f"{5:020d}.index", f"{5:020d}.txnindex", f"{0:020d}.log.deleted", f"{9:020d}.snapshot", "x.tmp"):
        write_whole(bench.files, join(bench.path, name), b"left")
    write_whole(bench.files, join(bench.path, "partition.metadata"), b"Kafka's own")
    bench.open()
    assert [name for name in bench.names() if not name.startswith((f"{0:020d}", f"{1:020d}"))] == [
        "flushed-offset",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_flipped_byte_below_what_was_synced_is_refused(number: int) -> None:
    """Also in the offset, which no checksum covers. Only the leader epoch can change unseen."""
    bench = Bench()
    bench.append(batch("a"), batch("b"), batch("c"))
    bench.append(batch("d"), flush=False)
    whole = bench.log.active_segment.file.read_at(0, 3 * SIZE)
    for position in range(number * SIZE, (number + 1) * SIZE):
        if 12 <= position - number * SIZE < 16:
            continue
        for flip in (0x01, 0x80, 0xFF):
            spoil(bench, LOG, position, bytes([whole[position] ^ flip]))
            with pytest.raises(CorruptLog):
                bench.open()
        spoil(bench, LOG, position, whole[position : position + 1])
    bench.open()
    assert bench.values() == ["a", "b", "c", "d"]


GOLDEN_SEGMENTS = {
    str(path.relative_to(ROOT)): path for golden in GOLDEN for _, path in golden.segments() if path.stat().st_size
}
A_FEW_SEGMENTS = [
    f"{name}/__consumer_offsets-0/{LOG}"
    for name in ("kafka-2.6.3-ibp-2.6", "kafka-2.6.3-ibp-0.10.0", "kafka-4.1.0-topic-ids")
]


@pytest.mark.parametrize("source", A_FEW_SEGMENTS)
def test_a_real_segment_cut_at_any_byte_gives_the_whole_batches_before_the_cut(source: str) -> None:
    cut_at_every_byte(GOLDEN_SEGMENTS[source])


@nightly
@pytest.mark.parametrize("source", sorted(GOLDEN_SEGMENTS.keys() - A_FEW_SEGMENTS))
def test_every_real_segment_cut_at_any_byte_gives_the_whole_batches_before_the_cut(source: str) -> None:
    cut_at_every_byte(GOLDEN_SEGMENTS[source])


def cut_at_every_byte(segment: Path) -> None:
    data, base_offset = segment.read_bytes(), int(segment.stem)
    ends = [(0, base_offset)]
    while ends[-1][0] < len(data):
        header = read_header(data, ends[-1][0])
        ends.append((header.end, header.next_offset))
    assert len(ends) > 1
    for size in range(len(data)):
        name = f"/data/orders-0/{segment.name}"
        bench = Bench(SimulatedFiles({"/data": None, "/data/orders-0": None, name: data[:size]}))
        end, next_offset = max(border for border in ends if border[0] <= size)
        assert bench.log.log_end_offset == next_offset
        assert bench.log.active_segment.file.read_at(0, len(data)) == data[:end]
        assert bench.log.cut_bytes == size - end
