"""The compiled walk over large windows says what the plain walk says."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.log import scan
from kohort.log.batch_table import BatchTable
from kohort.log.compiled_scan import scan_large_window
from kohort.log.recovery import open_log
from kohort.log.scan import scan_segment, scan_window
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import Record, RecordBatch
from kohort.records.control import ControlType, Marker, marker_batch
from tests.records.legacy import message


def long_log(batches: int, seed: int) -> bytes:
    """Plain and transactional batches with holes between their offsets, times that go back and forth, a new epoch."""
    rng, offset, out = random.Random(seed), 0, []
    for number in range(batches):
        offset += rng.randrange(3)
        epoch, producer_id = (0 if number < batches // 2 else 7), rng.choice([-1, -1, -1, 3, 4])
        now = 1000 + rng.randrange(2000)
        if producer_id >= 0 and rng.random() < 0.5:
            marker = Marker(rng.choice(list(ControlType)), 0)
            (record,) = marker_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=now).records
            batch = RecordBatch.build(
                [record._replace(offset=offset)],
                transactional=True,
                control=True,
                producer_id=producer_id,
                producer_epoch=0,
                partition_leader_epoch=epoch,
            )
        else:
            records = [Record(offset + n, now, b"k%d" % rng.randrange(9), bytes(rng.randrange(200))) for n in range(2)]
            batch = RecordBatch.build(
                records,
                transactional=producer_id >= 0,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=0,
                partition_leader_epoch=epoch,
            )
        out.append(batch.encode())
        offset = batch.header.next_offset
    return b"".join(out)


LOG = long_log(400, seed=1)


@given(cut=st.integers(0, len(LOG)), flips=st.lists(st.integers(0, 8 * len(LOG) - 1), max_size=2))
@settings(max_examples=300, deadline=None)
def test_the_same_batches_and_the_same_damage(cut: int, flips: list[int]) -> None:
    data = bytearray(LOG)
    for bit in flips:
        data[bit // 8] ^= 1 << bit % 8
    window = bytes(data[: len(data) - cut // 2])
    compiled, plain = scan_large_window(window), scan._scan_plainly(window, verify=True)
    assert compiled is not None
    assert isinstance(compiled.headers, BatchTable)
    assert list(compiled.headers) == list(plain.headers)
    assert compiled.stopped_at == plain.stopped_at
    if plain.damage is None:
        assert (compiled.wanted, compiled.damage) == (plain.wanted, None)
    else:
        assert compiled.damage is not None
        assert (compiled.damage.reason, compiled.damage.position) == (plain.damage.reason, plain.damage.position)


def test_old_formats_are_left_to_the_plain_walk() -> None:
    assert isinstance(scan_window(LOG, compiled=True).headers, BatchTable)
    old = message(0, b"key", b"value")
    assert scan_large_window(old) is None
    assert [header.magic for header in scan_window(old, compiled=True).headers] == [1]


def opened(data: bytes) -> tuple[object, ...]:
    """Everything that recovery makes of a segment."""
    files = SimulatedFiles()
    files.make_dir("/p-0")
    file = files.open("/p-0/00000000000000000000.log", create=True)
    file.append(data)
    file.close()
    log = open_log(files, "/p-0", LogConfig(index_interval_bytes=512), VirtualClock(), clean=False)
    segment = log.active_segment
    return (
        log.log_end_offset,
        log.last_stable_offset,
        segment.offset_index.entries(),
        segment.time_index.entries(),
        segment.max_timestamp,
        segment.first_timestamp,
        segment.txn_index.encode(),
        dict(log.producer_state.entries.items()),
        log.leader_epochs.latest,
        log.cut_bytes,
    )


@pytest.mark.parametrize("cut", [0, 1, 777])
@pytest.mark.parametrize("window_bytes", [len(LOG) // 5, 10 * len(LOG)])
def test_recovery_makes_the_same_of_a_segment(cut: int, window_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = LOG[: len(LOG) - cut]
    plain = opened(data)
    monkeypatch.setattr(scan, "_COMPILED_FROM", 1)
    monkeypatch.setattr("kohort.log.segment.WINDOW_BYTES", window_bytes)
    assert [str(a) for a in opened(data)] == [str(b) for b in plain]


def test_offsets_out_of_order_are_damage_in_either_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    files = SimulatedFiles()
    file = files.open("/log", create=True)
    file.append(LOG + LOG)
    plain = [window.damage for window in scan_segment(file, 0)][-1]
    monkeypatch.setattr(scan, "_COMPILED_FROM", 1)
    compiled = [window.damage for window in scan_segment(file, 0)][-1]
    assert plain is not None
    assert "follows offset" in plain.reason
    assert str(compiled) == str(plain)
