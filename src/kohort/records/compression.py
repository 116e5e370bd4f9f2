"""The codecs of a record batch, each with a bound on what it may grow to.

Nothing is allocated on the word of a length field: output stops at `MAX_DECOMPRESSED` bytes and at `MAX_RATIO` times
the input, whatever comes first. Snappy is written in xerial's framing, as Java clients do, and read in that or raw.
"""

import zlib
from enum import IntEnum
from mmap import mmap
from types import ModuleType

import cramjam

from kohort.errors import CorruptLog

MAX_DECOMPRESSED = 64 * 1024 * 1024
MAX_RATIO = 1000
_MOST_GZIP_MEMBERS = 100
_MOST_ZSTD_WINDOW = 1 << 27


class Codec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: bytes) -> bytes:
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            gzip = zlib.compressobj(wbits=31)
            return gzip.compress(data) + gzip.flush()
        case Codec.SNAPPY:
            return _xerial(data)
        case Codec.LZ4:
            return _lz4_frame(data)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def compress_readably(codec: Codec, data: bytes) -> tuple[Codec, bytes]:
    """Compressed, and with which codec: LZ4, which shrinks nothing to less than a 255th, where the one that was asked
    for would make so little of it that `decompress` takes it for a bomb."""
    packed = compress(codec, data)
    if len(data) <= MAX_RATIO * len(packed):
        return codec, packed
    return Codec.LZ4, compress(Codec.LZ4, data)


def decompress(codec_id: int, data: bytes, *, magic: int = 2) -> bytes:
    """The bytes behind `data`, or `CorruptLog` if there are none or too many of them."""
    limit = min(MAX_DECOMPRESSED, MAX_RATIO * len(data))
    try:
        codec = Codec(codec_id)
    except ValueError:
        raise CorruptLog(f"unknown compression codec {codec_id}") from None
    try:
        match codec:
            case Codec.NONE:
                return data
            case Codec.GZIP:
                return _gunzip(data, limit)
            case Codec.SNAPPY:
                return _unsnappy(data, limit)
            case Codec.LZ4:
                return _bounded(cramjam.lz4, _with_header_checksum(data) if magic == 0 else data, limit)
            case Codec.ZSTD:
                _check_zstd_frame(data, limit)
                return _bounded(cramjam.zstd, data, limit)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise CorruptLog(f"{codec.name.lower()} data does not decompress: {error}") from None


def _too_large(limit: int) -> CorruptLog:
    return CorruptLog(
        f"decompresses to more than {limit} bytes (at most {MAX_DECOMPRESSED} and {MAX_RATIO} times its size)"
    )


def _gunzip(data: bytes, limit: int) -> bytes:
    out = b""
    for _ in range(_MOST_GZIP_MEMBERS):
        if not data:
            return out
        member = zlib.decompressobj(wbits=31)
        out += member.decompress(data, limit - len(out) + 1)
        if len(out) > limit:
            raise _too_large(limit)
        if not member.eof:
            raise CorruptLog("gzip data ends too early")
        data = member.unused_data
    raise CorruptLog(f"more than {_MOST_GZIP_MEMBERS} gzip members")


_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * 1024


def _xerial(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += [len(block).to_bytes(4, "big"), block]
    return b"".join(parts)


def _unsnappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(data, limit, limit)
    out = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        position += 4
        if size < 0 or size > len(data) - position:
            raise CorruptLog(f"snappy block of {size} bytes where {max(len(data) - position, 0)} are left")
        out += _unsnappy_block(data[position : position + size], limit - len(out), limit)
        position += size
    return bytes(out)


def _unsnappy_block(block: bytes, room: int, limit: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > room:
        raise _too_large(limit)
    return bytes(cramjam.snappy.decompress_raw(block))


# Kafka's Java reader takes LZ4 frames of independent blocks only: magic, FLG (version 1, such blocks), BD (64 KiB
# blocks) and the checksum of those two bytes.
_LZ4_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x8000_0000
_LZ4_END = bytes(4)


def _lz4_frame(data: bytes) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK):
        plain = data[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += [len(block).to_bytes(4, "little"), block]
        else:
            parts += [(len(plain) | _LZ4_STORED).to_bytes(4, "little"), plain]
    parts.append(_LZ4_END)
    return b"".join(parts)


def _with_header_checksum(frame: bytes) -> bytes:
    """Clients of message format 0 took the frame header's checksum over the wrong bytes (KAFKA-3160): put it right."""
    if len(frame) < 7:
        return frame
    end = 6 + (8 if frame[4] & 0x08 else 0)
    return frame[:end] + bytes([_xxh32_short(frame[4:end]) >> 8 & 0xFF]) + frame[end + 1 :]


def _xxh32_short(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes, which is all that a frame header has."""
    p1, p2, p3, p4, p5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    mask = 0xFFFF_FFFF

    def rotl(x: int, r: int) -> int:
        return (x << r | x >> (32 - r)) & mask

    h = (p5 + len(data)) & mask
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        h = rotl((h + int.from_bytes(data[i : i + 4], "little") * p3) & mask, 17) * p4 & mask
    for byte in data[whole:]:
        h = rotl((h + byte * p5) & mask, 11) * p1 & mask
    h = (h ^ h >> 15) * p2 & mask
    h = (h ^ h >> 13) * p3 & mask
    return h ^ h >> 16


def _check_zstd_frame(frame: bytes, limit: int) -> None:
    """A frame tells its content's size, or how large a window it wants, which is often far more than its content.

    Whoever compresses a stream asks for 2 MiB (at the highest level 128 MiB) whatever comes. Of a window that small no
    more is touched than is written to it; what is beyond is refused, as by Kafka's own reader.
    """
    if len(frame) < 6:
        return
    descriptor = frame[4]
    if not descriptor & 0x20:
        window = (1 << 10 + (frame[5] >> 3)) * (8 + (frame[5] & 7)) // 8
        if window > _MOST_ZSTD_WINDOW:
            raise CorruptLog(f"a zstd window of {window} bytes, at most {_MOST_ZSTD_WINDOW} are given")
        return
    start = 5 + (0, 1, 2, 4)[descriptor & 3]
    if int.from_bytes(frame[start : start + (1, 2, 4, 8)[descriptor >> 6]], "little") > limit:
        raise _too_large(limit)


def _bounded(library: ModuleType, data: bytes, limit: int) -> bytes:
    """Decompress into a buffer of `limit` bytes; the pages that are not written to cost nothing."""
    with mmap(-1, max(limit, 1)) as room:
        try:
            size: int = library.decompress_into(data, room)
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" in str(error):
                raise _too_large(limit) from None
            raise
        if size > limit:
            raise _too_large(limit)
        return room[:size]
