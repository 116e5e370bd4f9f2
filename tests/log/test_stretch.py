"""Stretches of a segment: however a file is cut, together they give what a walk over the whole file gives."""

import io
import itertools
import random

import pytest

from kohort.errors import CorruptLog
from kohort.log import stretch
from kohort.log.stretch import Marker, first_border, markers, stretch_columns
from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.control import ControlType, decode_control_type, marker_batch
from kohort.records.control import Marker as MarkerRecord
from kohort.records.key_table import KeyTable
from tests.golden_sets import GOLDEN, GoldenSet

every_set = pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)

Found = tuple[list[tuple[int, int, bytes | None]], list[tuple[int, str]]]


def walk(data: bytes, cuts: list[int]) -> Found:
    """Offset, time and value of every record of all stretches between the cuts, and the damage met."""
    records, damaged = [], []
    for start, end in itertools.pairwise([0, *cuts, len(data)]):
        for _, columns in stretch_columns(io.BytesIO(data), len(data), start, end, KeyTable, damaged.append):
            values = [columns.value(row) for row in range(len(columns))]
            records += zip(columns.offsets.tolist(), columns.timestamps.tolist(), values, strict=True)
    return records, [(damage.position, damage.reason.partition("; no batch")[0]) for damage in damaged]


def whole_walk(data: bytes) -> Found:
    """The same by the scalar codec, from the first byte to the last."""
    damaged: list[CorruptLog] = []
    batches = list(read_batches(data, on_damage=damaged.append))
    records = [(record.offset, record.timestamp, record.value) for batch in batches for record in batch.records]
    return records, [(damage.position, damage.reason) for damage in damaged]


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """Some flipped bits, or an end that is missing."""
    if rng.random() < 0.2:
        return data[: rng.randrange(1, len(data) + 1)]
    flipped = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


@every_set
@pytest.mark.parametrize("window", [100, 1000, 16 * 1024 * 1024])
def test_stretches_cut_anywhere_give_the_whole_file(
    golden: GoldenSet, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sound or damaged; what is behind damage that loses the way is lost to every stretch."""
    monkeypatch.setattr(stretch, "WINDOW_BYTES", window)
    monkeypatch.setattr(stretch, "_SMALLEST_GROWTH", 64)
    rng = random.Random(golden.name + str(window))
    for _, path in golden.segments()[:6]:
        data = path.read_bytes()
        for damage in range(4) if data else ():
            spoilt = spoiled(data, rng) if damage else data
            want = whole_walk(spoilt)
            for count in (0, 1, 6, 49):
                cuts = sorted(rng.sample(range(len(spoilt)), min(count, len(spoilt))))
                assert walk(spoilt, cuts) == want


def test_a_batch_inside_of_a_value_is_not_taken_for_one() -> None:
    """Bytes that look like a batch are only that: what counts is where the frames lead."""
    inner = RecordBatch.build([Record(7, 0, b"inner", b"x" * 50)]).encode()
    outer = [RecordBatch.build([Record(n, 0, b"k", inner * 3)]).encode() for n in range(4)]
    data = b"".join(outer)
    for cut in range(len(data)):
        records, damaged = walk(data, [cut])
        assert [offset for offset, _, _ in records] == [0, 1, 2, 3]
        assert damaged == []


def test_the_first_border_is_the_next_batch() -> None:
    batches = [RecordBatch.build([Record(n, 0, b"k", bytes(n))]).encode() for n in range(5)]
    data = b"".join(batches)
    ends = list(itertools.accumulate(map(len, batches), initial=0))
    for start in range(len(data)):
        assert first_border(io.BytesIO(data), len(data), start) == min(end for end in ends if end >= start)


@every_set
def test_markers_are_those_of_the_control_batches(golden: GoldenSet) -> None:
    for _, path in golden.segments():
        data = path.read_bytes()
        batches = list(read_batches(data))
        for start in {0, *(batch.header.position for batch in batches[::7])}:
            want = [
                Marker(batch.header.producer_id, kind == ControlType.COMMIT, record.offset, record.timestamp)
                for batch in batches
                if batch.header.is_control and batch.header.position >= start
                for record in batch.records
                if (kind := decode_control_type(record.key)) is not None
            ]
            assert list(markers(io.BytesIO(data), len(data), start, len(data))) == want


def test_a_marker_that_begins_behind_the_end_is_not_told() -> None:
    marker = marker_batch(MarkerRecord(ControlType.COMMIT, 0), producer_id=5, producer_epoch=0, timestamp=9).encode()
    data = marker + marker
    assert len(list(markers(io.BytesIO(data), len(data), 0, len(data)))) == 2
    assert len(list(markers(io.BytesIO(data), len(data), 0, len(marker)))) == 1


def test_a_file_that_is_cut_while_it_is_read_ends_there() -> None:
    batches = [RecordBatch.build([Record(n, 0, b"k", b"v")]).encode() for n in range(3)]
    data = b"".join(batches)
    damaged: list[CorruptLog] = []
    found = list(stretch_columns(io.BytesIO(data[:-5]), len(data), 0, len(data), KeyTable, damaged.append))
    assert [columns.offsets.tolist() for _, columns in found] == [[0, 1]]
    assert "cut off" in damaged[0].reason
