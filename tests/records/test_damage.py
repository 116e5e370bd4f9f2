"""Damaged and hostile bytes: told apart from good ones, by position and reason, within a fixed memory."""

import struct
import subprocess
import sys
from collections.abc import Callable

import cramjam
import pytest
from crc32c import crc32c

from kohort.errors import CorruptLog
from kohort.records.batch import Record, RecordBatch, read_batch, read_batches
from kohort.records.columns import decode
from kohort.records.compression import Codec, compress
from kohort.records.key_table import KeyTable
from tests.golden_sets import GOLDEN, GoldenSet
from tests.records.peak_memory import PEAK_MIB
from tests.records.pieces import array
from tests.slow import nightly

SMALL = min((path.read_bytes() for golden in GOLDEN for _, path in golden.segments() if path.stat().st_size), key=len)


Reader = Callable[[bytes, Callable[[CorruptLog], None]], list[int]]


def by_scalar(data: bytes, on_damage: Callable[[CorruptLog], None]) -> list[int]:
    return [record.offset for batch in read_batches(data, on_damage=on_damage) for record in batch.records]


def by_columns(data: bytes, on_damage: Callable[[CorruptLog], None]) -> list[int]:
    return decode(array(data), KeyTable(), on_damage=on_damage).columns.offsets.tolist()


readers = pytest.mark.parametrize("offsets_in", [by_scalar, by_columns])


@readers
@pytest.mark.parametrize("golden", ["kafka-2.6.3-ibp-2.6", "kafka-2.6.3-ibp-0.10.0", "compressed-gzip"])
def test_a_segment_cut_at_any_byte_gives_the_whole_batches_before_the_cut(golden: str, offsets_in: Reader) -> None:
    segments = [path.read_bytes() for found in GOLDEN if found.name == golden for _, path in found.segments()]
    cut_at_every_byte(min(segments, key=len), offsets_in)


@nightly
@readers
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_every_segment_cut_at_any_byte_gives_the_whole_batches_before_the_cut(
    golden: GoldenSet, offsets_in: Reader
) -> None:
    for _, path in golden.segments():
        cut_at_every_byte(path.read_bytes(), offsets_in)


def cut_at_every_byte(data: bytes, offsets_in: Reader) -> None:
    batches = list(read_batches(data))
    ends = {batch.header.end for batch in batches} | {0}
    for cut in range(len(data) + 1):
        damage: list[CorruptLog] = []
        offsets = offsets_in(data[:cut], damage.append)
        whole = [batch for batch in batches if batch.header.end <= cut]
        assert offsets == [record.offset for batch in whole for record in batch.records]
        assert len(damage) == (cut not in ends)
        if damage:
            assert damage[0].position == max(end for end in ends if end <= cut)


@readers
def test_every_bit_that_flips_is_detected_or_harmless(
    offsets_in: Reader,
) -> None:
    """Only a batch's own offset and the leader's epoch stand outside of the checksum. No record depends on them, and an
    offset below zero is told."""
    batches = list(read_batches(SMALL))
    outside = {
        batch.header.position + at for batch in batches for at in (*range(8), *range(12, 16)) if batch.header.magic == 2
    }
    signs = {8 * batch.header.position + 7 for batch in batches}
    content = [(record.key, record.value, record.timestamp) for batch in batches for record in batch.records]
    for bit in range(8 * len(SMALL)):
        flipped = bytearray(SMALL)
        flipped[bit // 8] ^= 1 << bit % 8
        damage: list[CorruptLog] = []
        offsets = offsets_in(bytes(flipped), damage.append)
        if bit // 8 in outside and bit not in signs:
            assert not damage
            assert len(offsets) == len(content)
            read = [record for batch in read_batches(bytes(flipped)) for record in batch.records]
            assert [(record.key, record.value, record.timestamp) for record in read] == content
        else:
            assert damage
            assert len(offsets) < len(content)


def checksummed(batch: bytearray) -> bytes:
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def sound(**how: object) -> bytearray:
    return bytearray(RecordBatch.build([Record(0, 0, b"key", b"value")], **how).encode())


def with_body(body: bytes, *, count: int = 1, codec: Codec = Codec.NONE) -> bytes:
    batch = sound()[:61] + bytearray(body)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 57, count)
    return checksummed(batch)


def claiming(length: int) -> bytes:
    batch = sound()
    struct.pack_into(">i", batch, 8, length)
    return bytes(batch)


ELEVEN = b"\xff" * 10 + b"\x01"
HOSTILE = {
    "2 GB claimed": (claiming(2**31 - 1), "impossible batch length"),
    "a negative length": (claiming(-5), "impossible batch length"),
    "more than there is": (claiming(50_000), "cut off"),
    "a negative count": (with_body(b"", count=-1), "negative record count"),
    "too many records": (with_body(b"\x02\x00", count=2**31 - 1), "records claimed"),
    "a varint of 11 bytes": (with_body(ELEVEN), "more than 5 bytes"),
    "a time of 11 bytes": (with_body(b"\x28\x00" + ELEVEN + b"\x00" * 8), "more than 10 bytes"),
    "a record beyond the end": (with_body(b"\x7e" + bytes(7)), "are left"),
    "a key beyond the record": (with_body(b"\x0c\x00\x00\x00\x7e\x01\x00"), "are left in the record"),
    "a header without a key": (with_body(b"\x10\x00\x00\x00\x01\x01\x02\x01\x01"), "header without a key"),
    "negative headers": (with_body(b"\x0c\x00\x00\x00\x01\x01\x01"), "headers claimed"),
    "bytes left over": (with_body(b"\x0c\x00\x00\x00\x01\x01\x00more"), "behind the last record"),
    "an unknown codec": (with_body(b"\x00" * 20, codec=5), "unknown compression codec"),
    "an unknown format": (bytes(sound()[:16] + b"\x03" + sound()[17:]), "unknown batch format"),
}
BOMB = bytes(200 * 1024 * 1024)
BOMBS = {
    "gzip": (with_body(compress(Codec.GZIP, BOMB), codec=Codec.GZIP), "more than"),
    "zstd": (with_body(compress(Codec.ZSTD, BOMB), codec=Codec.ZSTD), "more than"),
    "lz4": (with_body(compress(Codec.LZ4, BOMB), codec=Codec.LZ4), "more than"),
    "xerial snappy": (with_body(compress(Codec.SNAPPY, BOMB), codec=Codec.SNAPPY), "more than"),
    "raw snappy": (with_body(bytes(cramjam.snappy.compress_raw(BOMB)), codec=Codec.SNAPPY), "more than"),
    "a snappy block that claims 4 GB": (with_body(b"\xff\xff\xff\xff\x0f\x00", codec=Codec.SNAPPY), "more than"),
    "over 1000 times": (with_body(compress(Codec.ZSTD, bytes(1 << 20)), codec=Codec.ZSTD), "more than"),
}
del BOMB


@readers
@pytest.mark.parametrize("name", [*HOSTILE, *BOMBS])
def test_hostile_bytes_are_told_by_position_and_reason(
    name: str, offsets_in: Callable[[bytes, Callable[[CorruptLog], None]], list[int]]
) -> None:
    data, reason = (HOSTILE | BOMBS)[name]
    prefix = bytes(sound())
    damage: list[CorruptLog] = []
    assert offsets_in(prefix + data, damage.append) == [0]
    assert len(damage) == 1
    assert damage[0].position == len(prefix)
    assert reason in damage[0].reason


def test_damage_is_raised_where_nobody_asked_to_be_told() -> None:
    with pytest.raises(CorruptLog, match="byte 0: checksum is"):
        read_batch(bytes(sound()[:-1] + b"!"))
    with pytest.raises(CorruptLog, match="byte 0: checksum is"):
        decode(array(bytes(sound()[:-1] + b"!")), KeyTable())
    assert str(CorruptLog("odd", path="00.log", position=7)) == "00.log, byte 7: odd"


def test_hostile_bytes_take_no_memory(tmp_path: "pytest.TempPathFactory") -> None:
    """All of them, read by a fresh process whose address space leaves no room for what they claim."""
    for number, (data, _) in enumerate((HOSTILE | BOMBS).values()):
        (tmp_path / f"{number}.bin").write_bytes(data)
    script = f"""{PEAK_MIB}
import pathlib, sys
from kohort.errors import CorruptLog
from kohort.records.batch import read_batches
before = peak_mib()
damage = []
for path in pathlib.Path(sys.argv[1]).iterdir():
    list(read_batches(path.read_bytes(), on_damage=damage.append))
print(len(damage), peak_mib() - before)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    told, grown_mib = map(int, done.stdout.split())
    assert told == len(HOSTILE | BOMBS)
    assert grown_mib < 160
