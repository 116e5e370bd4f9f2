"""Targets: record batches of every format, and the codecs in them.

Nobody guesses a checksum. So a first byte says how the others are meant: as they are, with lengths and checksums put
right, with their records compressed as well, or as what a compressed message of the old formats wraps.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace

from crc32c import crc32c

from kohort.config import LogConfig
from kohort.errors import CorruptLog, CorruptMessage, InvalidRecord, RecordListTooLarge, RecordTooLarge
from kohort.log.producer_entry import AppendOrigin
from kohort.log.validation import validate
from kohort.records.batch import CODEC_MASK, HEADER_SIZE, LOG_OVERHEAD, BatchHeader, RecordBatch, read_batch
from kohort.records.batch import read_batches as read_all
from kohort.records.compression import MAX_DECOMPRESSED, MAX_RATIO, Codec, compress, decompress
from kohort.records.rows import describe
from tests.fuzzing.target import LONGEST_INPUT, target
from tests.golden_sets import GOLDEN
from tests.records.legacy import message, wrapper

AS_IT_IS, MENDED, COMPRESSED, WRAPPED = range(4)
_SMALLEST = LOG_OVERHEAD + 14
_NOW = 1_700_000_000_000
_REFUSALS = (CorruptMessage, InvalidRecord, RecordTooLarge, RecordListTooLarge)
_CONFIGS = (LogConfig(), LogConfig(cleanup_policy="compact"), LogConfig(message_timestamp_type="LogAppendTime"))


def meant(data: bytes) -> bytes:
    """The segment that an input stands for."""
    how, rest = data[0] % 4, data[1:]
    if how == AS_IT_IS:
        return rest
    if how == WRAPPED:
        codec, magic = Codec(rest[0] % len(Codec)) if rest else Codec.NONE, rest[1] & 1 if len(rest) > 1 else 0
        return message(1 << 20, None, compress(codec, _mended(rest[2:])), magic=magic, attributes=codec)
    return _mended(rest, compresses=how == COMPRESSED)


def _mended(data: bytes, *, compresses: bool = False) -> bytes:
    """The same with lengths that fit and with the right checksums."""
    out, at = bytearray(), 0
    while len(data) - at >= _SMALLEST:
        size = LOG_OVERHEAD + struct.unpack_from(">i", data, at + 8)[0]
        if not _SMALLEST <= size <= len(data) - at:
            size = len(data) - at
        out += _mended_batch(bytearray(data[at : at + size]), compresses)
        at += size
    return bytes(out + data[at:])


def _mended_batch(batch: bytearray, compresses: bool) -> bytes:
    magic, codec = batch[16], batch[22] & CODEC_MASK if len(batch) >= HEADER_SIZE else Codec.NONE
    if compresses and magic == 2 and codec in set(Codec):
        batch[HEADER_SIZE:] = compress(Codec(codec), bytes(batch[HEADER_SIZE:]))
    struct.pack_into(">i", batch, 8, len(batch) - LOG_OVERHEAD)
    if magic == 2 and len(batch) >= HEADER_SIZE:
        struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    elif magic < 2:
        struct.pack_into(">I", batch, 12, zlib.crc32(batch[16:]))
    return bytes(batch)


def _golden_batches() -> Iterator[tuple[bytes, RecordBatch]]:
    """Of what real brokers wrote, one batch of each look: its format, its flags, and the versions in its records."""
    seen = set()
    for golden in GOLDEN:
        for _, path in golden.segments():
            data = path.read_bytes()[: 16 * LONGEST_INPUT]
            for batch in read_all(data, final=False):
                versions = {((record.key or b"")[:2], (record.value or b"")[:2]) for record in batch.records}
                look = (batch.header.magic, batch.header.attributes, frozenset(versions))
                if look not in seen:
                    seen.add(look)
                    yield data[batch.header.position : batch.header.end], batch


def segment_seeds() -> Iterator[bytes]:
    """Real batches, as they are and with their records in every codec, and messages of old formats."""
    for number, (raw, batch) in enumerate(_golden_batches()):
        yield bytes([AS_IT_IS]) + raw
        if batch.header.magic == 2:
            opened = replace(batch.header, attributes=batch.header.attributes & ~CODEC_MASK)
            plain = RecordBatch(opened, batch.records).encode()
            yield bytes([MENDED]) + plain
            yield bytes([COMPRESSED]) + plain[:22] + bytes([plain[22] | number % len(Codec)]) + plain[23:]
    inner = message(0, b"k", b"v", magic=0) + message(1, None, None, magic=0)
    newer = message(0, b"k", b"v", timestamp=5) + message(1, b"", None, timestamp=6)
    for codec in Codec:
        yield bytes([WRAPPED, codec, 0]) + inner
        yield bytes([WRAPPED, codec, 1]) + newer
        if codec not in (Codec.NONE, Codec.ZSTD):
            yield bytes([AS_IT_IS]) + wrapper([(b"k", b"v"), (None, b"w")], 7, codec, magic=1)


def _compressed_seeds() -> Iterator[bytes]:
    for codec in Codec:
        for plain in (b"", b"short", bytes(3000), bytes(range(256)) * 20):
            for magic in (0, 2):
                yield bytes([codec, magic]) + compress(codec, plain)


@target("batches", segment_seeds)
def fuzz_batches(data: bytes) -> None:
    if not data:
        return
    segment = meant(data)
    damage: list[CorruptLog] = []
    for batch in read_all(segment, on_damage=damage.append):
        for record in batch.records:
            describe(0, batch.header, record)
        if batch.header.magic == 2:
            _assert_comes_back(batch)
    assert _first_damage(segment) == ((damage[0].position, damage[0].reason) if damage else None)
    for config in _CONFIGS:
        _assert_is_refused_or_sound(segment, config)


def _first_damage(segment: bytes) -> tuple[int, str] | None:
    """What is raised where nobody wants to be told."""
    try:
        list(read_all(segment))
    except CorruptLog as damage:
        return damage.position, damage.reason
    return None


def _assert_comes_back(batch: RecordBatch) -> None:
    again = read_batch(batch.encode())
    assert again.records == batch.records
    assert _comparable(again.header) == _comparable(batch.header)


def _comparable(header: BatchHeader) -> BatchHeader:
    """Without what another codec or another place changes."""
    return replace(header, position=0, size=0, crc=0, attributes=header.attributes & ~CODEC_MASK)


def _assert_is_refused_or_sound(segment: bytes, config: LogConfig) -> None:
    try:
        (header,) = validate(segment, config, AppendOrigin.CLIENT, _NOW)
    except _REFUSALS:
        return
    records = read_batch(segment).records
    assert [record.offset - header.base_offset for record in records] == list(range(header.record_count))


@target("compression", _compressed_seeds)
def fuzz_compression(data: bytes) -> None:
    """The first byte chooses the codec, the second the format of the message around it."""
    if len(data) < 2:
        return
    codec, packed = data[0] % (len(Codec) + 1), data[2:]
    try:
        plain = decompress(codec, packed, magic=data[1] % 3)
    except CorruptLog:
        return
    assert codec == Codec.NONE or len(plain) <= min(MAX_DECOMPRESSED, MAX_RATIO * len(packed))
    again = compress(Codec(codec), plain)
    if len(plain) <= MAX_RATIO * len(again):
        assert decompress(codec, again) == plain
