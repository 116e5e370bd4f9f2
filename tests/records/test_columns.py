"""Columns against the scalar codec, which is the definition: the same rows and the same damage on every input."""

import numpy as np
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import CorruptLog
from kohort.records import arrow
from kohort.records.batch import RecordBatch, read_batches
from kohort.records.columns import decode
from kohort.records.compression import Codec
from kohort.records.key_table import KeyTable
from kohort.records.offsets_topic import GroupKey, OffsetKey, encode_key
from kohort.records.rows import describe
from tests.golden_sets import GOLDEN
from tests.records.legacy import message, wrapper
from tests.records.pieces import array
from tests.records.strategies import batches, keys, offset_keys, segments, timestamps, values

GOLDEN_SEGMENTS = [path.read_bytes() for golden in GOLDEN for _, path in golden.segments()]


def assert_same(data: bytes) -> None:
    scalar_damage: list[CorruptLog] = []
    rows = [
        describe(0, batch.header, record)
        for batch in read_batches(data, on_damage=scalar_damage.append)
        for record in batch.records
    ]
    damage: list[CorruptLog] = []
    window = decode(array(data), KeyTable(), on_damage=damage.append)
    assert [(found.position, found.reason) for found in damage] == [
        (found.position, found.reason) for found in scalar_damage
    ]
    table = arrow.to_arrow(window.columns, 0)
    assert table.to_pylist() == arrow.from_rows(rows).to_pylist()
    assert window.consumed == len(data)


@given(segments())
@settings(max_examples=500, deadline=None)
def test_any_sound_segment(data: bytes) -> None:
    assert_same(data)


@given(segments(), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3), st.integers(0))
@settings(max_examples=500, deadline=None)
def test_any_damaged_segment(data: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    damaged = bytearray(data[: len(data) - cut % (len(data) + 1)])
    for at, byte in changes:
        if damaged:
            damaged[at % len(damaged)] = byte
    assert_same(bytes(damaged))


@given(
    st.sampled_from(GOLDEN_SEGMENTS),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4),
    st.integers(0),
)
@settings(max_examples=200, deadline=None)
def test_a_damaged_golden_segment(data: bytes, changes: list[tuple[int, int]], cut: int) -> None:
    damaged = bytearray(data[: len(data) - cut % (len(data) + 1) // 4])
    for at, byte in changes:
        if damaged:
            damaged[at % len(damaged)] = byte
    assert_same(bytes(damaged))


@given(
    st.lists(batches(), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(0),
)
@settings(max_examples=1000, deadline=None)
def test_lies_with_a_good_checksum(drawn: list[RecordBatch], changes: list[tuple[int, int]], which: int) -> None:
    """Attributes, counts, lengths and records changed, and the checksum taken after that."""
    encoded = [bytearray(batch.encode()) for batch in drawn]
    liar = encoded[which % len(encoded)]
    for at, byte in changes:
        liar[21 + at % (len(liar) - 21)] = byte
    liar[17:21] = crc32c(bytes(liar[21:])).to_bytes(4, "big")
    assert_same(b"".join(encoded))


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_at_all(data: bytes) -> None:
    assert_same(data)


@given(
    st.lists(st.tuples(keys, values), min_size=1, max_size=4),
    st.integers(0, 1 << 40),
    st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]),
    st.integers(0, 1),
    timestamps,
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_messages_of_old_formats(
    entries: list[tuple[bytes | None, bytes | None]],
    offset: int,
    codec: Codec,
    magic: int,
    timestamp: int,
    log_append_time: bool,
) -> None:
    if codec is Codec.NONE:
        data = b"".join(
            message(offset + n, key, value, magic=magic, timestamp=timestamp) for n, (key, value) in enumerate(entries)
        )
    else:
        data = wrapper(entries, offset, codec, magic=magic, timestamp=timestamp, log_append_time=log_append_time)
    assert_same(data)
    records = [record for batch in read_batches(data) for record in batch.records]
    assert [(record.offset, record.key, record.value) for record in records] == [
        (offset + n, key, value) for n, (key, value) in enumerate(entries)
    ]


@given(st.lists(offset_keys, max_size=30))
@settings(max_examples=100, deadline=None)
def test_interned_keys_come_back(drawn: list[OffsetKey]) -> None:
    table = KeyTable()
    raw = [encode_key(key) for key in drawn]
    numbers = [table.intern(key) for key in raw]
    assert [table.raw(number) for number in numbers] == raw
    assert len(set(numbers)) == len(set(raw)) == table.size


def test_a_table_grows_as_its_keys_do() -> None:
    table = KeyTable()
    raw = [encode_key(OffsetKey(f"group-{n}", "topic" * (n % 40), n)) for n in range(50_000)]
    assert [table.intern(key) for key in raw[:5000]] == list(range(5000))
    joined = b"".join(raw)
    bounds = [0]
    for key in raw:
        bounds.append(bounds[-1] + len(key))

    assert table.intern_all(array(joined), np.array(bounds)).tolist() == list(range(50_000))
    assert table.raw(49_999) == raw[-1]


def test_keys_that_mean_the_same_are_one() -> None:
    table = KeyTable()
    plain = table.intern(encode_key(OffsetKey("g", "t", 1)))
    same = [
        table.intern(encode_key(OffsetKey("g", "t", 1, version=0))),
        table.intern(encode_key(OffsetKey("g", "t", 1)) + b"behind"),
    ]
    mended = table.intern(b"\x00\x02\x00\x01\xff")
    group = table.intern(encode_key(GroupKey("�")))

    numbers = np.array([plain, *same, mended, group], np.int32)
    assert table.canonical[numbers].tolist() == [plain, plain, plain, group, group]
