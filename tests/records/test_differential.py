"""Columns against the scalar codec where it hurts: keys and values of every version, whole, changed and cut, inside of
batches that are sound; messages of old formats that lie with a good checksum; and any cutting into windows.
"""

import zlib
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import CorruptLog
from kohort.records import arrow
from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.columns import Buffers, decode
from kohort.records.compression import Codec, compress
from kohort.records.key_table import KeyTable
from kohort.records.offsets_topic import encode_key, encode_value
from kohort.records.rows import Row, describe
from tests.golden_sets import GOLDEN
from tests.records.legacy import message
from tests.records.pieces import array
from tests.records.strategies import batches, group_keys, group_values, offset_keys, offset_values, segments
from tests.records.test_columns import assert_same

_LOOKED_AT = 1 << 18


def _golden_records() -> list[tuple[bytes, bytes]]:
    """A key and a value of each pair of versions that real brokers wrote."""
    found: dict[bytes, tuple[bytes, bytes]] = {}
    for golden in GOLDEN:
        for _, path in golden.segments():
            for batch in read_batches(path.read_bytes()[:_LOOKED_AT], final=False):
                for record in batch.records:
                    if record.key and record.value:
                        found.setdefault(record.key[:2] + record.value[:2], (record.key, record.value))
    return list(found.values())


_GOLDEN_RECORDS = _golden_records()
_tagged_values = st.tuples(
    offset_values.map(lambda value: encode_value(value._replace(version=4, topic_id=None))[:-1]),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from((0, 1, 15, 16, 17))), max_size=3),
).map(lambda drawn: drawn[0] + _tags(drawn[1]))
"""Version 4 with known and unknown tagged fields, of right and wrong sizes."""


def _tags(fields: list[tuple[int, int]]) -> bytes:
    return bytes([len(fields)]) + b"".join(bytes([tag, size]) + bytes(range(size)) for tag, size in fields)


@st.composite
def _spoilt(draw: st.DrawFn, sound: st.SearchStrategy[bytes]) -> bytes:
    """Sound bytes; or with another version, with some bytes changed, with an end missing, with bytes behind."""
    data = bytearray(draw(sound))
    match draw(st.integers(0, 5)):
        case 0:
            data[:2] = draw(st.integers(-2, 26)).to_bytes(2, "big", signed=True)
        case 1:
            for at, byte in draw(st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3)):
                data[at % len(data)] = byte
        case 2:
            del data[draw(st.integers(0)) % len(data) :]
        case 3:
            data += draw(st.binary(max_size=4))
    return bytes(data)


_entries = st.one_of(
    st.tuples(
        _spoilt(offset_keys.map(encode_key)), _spoilt(offset_values.map(encode_value) | _tagged_values) | st.none()
    ),
    st.tuples(_spoilt(group_keys.map(encode_key)), _spoilt(group_values().map(encode_value)) | st.none()),
    st.sampled_from(_GOLDEN_RECORDS).flatmap(
        lambda found: st.tuples(_spoilt(st.just(found[0])), _spoilt(st.just(found[1])) | st.none())
    ),
)


@given(st.lists(_entries, min_size=1, max_size=6), st.sampled_from(Codec))
@settings(max_examples=1000, deadline=None)
def test_keys_and_values_of_every_version_whole_or_not(entries: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
    records = [Record(number, 1000 + number, key, value) for number, (key, value) in enumerate(entries)]
    assert_same(RecordBatch.build(records, codec=codec).encode())


@given(st.lists(_entries, min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_what_the_columns_say_is_what_each_record_says_alone(entries: list[tuple[bytes, bytes | None]]) -> None:
    """Neighbours in a batch change nothing."""
    records = [Record(number, 0, key, value) for number, (key, value) in enumerate(entries)]
    together = arrow.to_arrow(decode(array(RecordBatch.build(records).encode()), KeyTable()).columns, 0).to_pylist()
    alone = [
        arrow.to_arrow(decode(array(RecordBatch.build([record]).encode()), KeyTable()).columns, 0).to_pylist()[0]
        for record in records
    ]
    assert together == alone


@given(
    st.lists(_entries, min_size=1, max_size=4),
    st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]),
    st.integers(0, 1),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=2),
    st.integers(0, 30),
)
@settings(max_examples=500, deadline=None)
def test_old_messages_that_lie_with_a_good_checksum(
    entries: list[tuple[bytes, bytes | None]], codec: Codec, magic: int, changes: list[tuple[int, int]], behind: int
) -> None:
    """Changed behind the magic of a message, alone or wrapped, and the checksum taken after that."""
    liars = [
        _lying(message(number, key, value, magic=magic), changes if number == behind % len(entries) else [])
        for number, (key, value) in enumerate(entries)
    ]
    data = b"".join(liars)
    if codec is not Codec.NONE:
        data = message(behind + len(entries), None, compress(codec, data), magic=magic, attributes=codec)
    assert_same(data + RecordBatch.build([Record(99, 0, b"k", b"v")]).encode())


def _lying(sound: bytes, changes: list[tuple[int, int]]) -> bytes:
    liar = bytearray(sound)
    for at, byte in changes:
        liar[17 + at % (len(liar) - 17)] = byte
    liar[12:16] = zlib.crc32(liar[16:]).to_bytes(4, "big")
    return bytes(liar)


@given(
    segments(),
    st.lists(batches(), max_size=2),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=2),
    st.lists(st.integers(30, 400), min_size=1, max_size=5),
)
@settings(max_examples=150, deadline=None)
def test_windows_of_any_size_give_what_the_whole_gives(
    first: bytes, more: list[RecordBatch], changes: list[tuple[int, int]], sizes: list[int]
) -> None:
    """With one table of keys and the same buffers all along, sound or damaged."""
    data = bytearray(first + b"".join(batch.encode() for batch in more))
    for at, byte in changes:
        if data:
            data[at % len(data)] = byte
    whole_damage: list[tuple[int, str]] = []
    rows = [
        describe(0, batch.header, record)
        for batch in read_batches(bytes(data), on_damage=_noting(whole_damage, 0))
        for record in batch.records
    ]
    damage: list[tuple[int, str]] = []
    assert _in_windows(bytes(data), sizes, damage) == arrow.from_rows(rows).to_pylist()
    assert damage == whole_damage


def _noting(damage: list[tuple[int, str]], at: int) -> Callable[[CorruptLog], None]:
    return lambda found: damage.append((at + found.position, found.reason))


def _in_windows(data: bytes, sizes: list[int], damage: list[tuple[int, str]]) -> list[Row]:
    """Each window begins where the one before ended, and grows until something is consumed of it."""
    keys, buffers, rows = KeyTable(), Buffers(), []
    at = turn = 0
    size = sizes[0]
    while at < len(data):
        final = at + size >= len(data)
        window = decode(array(data[at : at + size]), keys, final=final, on_damage=_noting(damage, at), buffers=buffers)
        rows += arrow.to_arrow(window.columns, 0).to_pylist()
        turn += 1
        if window.lost:
            break
        size = sizes[turn % len(sizes)] if window.consumed else 2 * size
        at += window.consumed
    return rows
