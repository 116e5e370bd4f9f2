"""The walk over raw batches."""

import pytest

from kohort.log.scan import ScannedWindow, scan_segment, scan_window
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import moved, read_batches, stamp
from tests.log.log_bench import batch


def place(data: bytes, offset: int) -> bytes:
    placed = bytearray(data)
    stamp(placed, base_offset=offset, partition_leader_epoch=0)
    return bytes(placed)


def scan(data: bytes, *, base_offset: int = 0, window_bytes: int = 1 << 20, verify: bool = True) -> list[ScannedWindow]:
    file = SimulatedFiles({"/d": None, "/d/log": data}).open("/d/log")
    return list(scan_segment(file, base_offset, window_bytes=window_bytes, verify=verify))


BATCHES = [place(batch(*["x" * n] * 3), 3 * n) for n in range(30)]
DATA = b"".join(BATCHES)


@pytest.mark.parametrize("window_bytes", [64, 100, 128, 257, 1000, 1 << 20])
def test_every_window_size_finds_the_same_batches(window_bytes: int) -> None:
    windows = scan(DATA, window_bytes=window_bytes)
    headers = [moved(header, window.position) for window in windows for header in window.headers]
    assert headers == [found.header for found in read_batches(DATA)]
    assert [window.batch(header) for window in windows for header in window.headers] == BATCHES
    assert all(window.damage is None for window in windows)


@pytest.mark.parametrize("window_bytes", [100, 1 << 20])
def test_a_batch_that_is_cut_off_is_damage_at_its_first_byte(window_bytes: int) -> None:
    last = len(DATA) - len(BATCHES[-1])
    for cut in range(last + 1, len(DATA)):
        windows = scan(DATA[:cut], window_bytes=window_bytes)
        damage = windows[-1].damage
        assert damage is not None
        assert (damage.position, damage.path) == (last, "/d/log")
        assert sum(len(window.headers) for window in windows) == len(BATCHES) - 1


def test_a_flipped_bit_is_found_only_if_checksums_are_taken() -> None:
    spoiled = bytearray(DATA)
    spoiled[len(BATCHES[0]) + 70] ^= 1
    assert scan(bytes(spoiled))[-1].damage is not None
    assert scan(bytes(spoiled), verify=False)[-1].damage is None


@pytest.mark.parametrize(
    ("data", "base_offset", "reason"),
    [
        (place(BATCHES[0], 5) + place(BATCHES[1], 7), 0, "offset 7 follows offset 7"),
        (place(BATCHES[0], 5), 6, "before the segment's base offset 6"),
        (place(BATCHES[0], 1 << 31), 0, "too far behind"),
        (BATCHES[0] + bytes(100), 0, "impossible batch length 0"),
        (BATCHES[0] + BATCHES[0], 0, "offset 0 follows offset 2"),
    ],
    ids=["overlap", "before the base", "beyond an index entry", "zeros", "the same again"],
)
def test_offsets_must_rise_within_reach_of_the_base(data: bytes, base_offset: int, reason: str) -> None:
    damage = scan(data, base_offset=base_offset)[-1].damage
    assert damage is not None
    assert reason in damage.reason


def test_holes_between_offsets_are_no_damage() -> None:
    windows = scan(place(BATCHES[0], 5) + place(BATCHES[1], 500))
    assert [header.base_offset for header in windows[0].headers] == [5, 500]
    assert windows[0].damage is None


def test_a_window_says_how_many_bytes_the_next_batch_wants() -> None:
    found = scan_window(DATA[: len(BATCHES[0]) + 20])
    assert len(found.headers) == 1
    assert found.stopped_at == len(BATCHES[0])
    assert found.wanted == len(BATCHES[1])
    assert found.damage is None


def test_a_length_that_no_batch_can_have_is_not_believed() -> None:
    lie = bytearray(BATCHES[0])
    lie[8:12] = (1 << 30).to_bytes(4, "big")
    found = scan_window(bytes(lie))
    assert found.damage is not None
    assert "impossible" in found.damage.reason
