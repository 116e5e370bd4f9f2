"""Messages of formats 0 and 1, which we read but never write: built here by hand."""

import struct
import zlib

import cramjam

from kohort.records.compression import Codec, compress


def message(
    offset: int, key: bytes | None, value: bytes | None, *, magic: int = 1, timestamp: int = 0, attributes: int = 0
) -> bytes:
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(
    inner: list[tuple[bytes | None, bytes | None]],
    base_offset: int,
    codec: Codec,
    *,
    magic: int = 1,
    timestamp: int = 0,
    log_append_time: bool = False,
) -> bytes:
    """A compressed message around others, as the producers of that time wrote it."""
    first = 0 if magic == 1 else base_offset
    messages = b"".join(
        message(first + n, key, value, magic=magic, timestamp=timestamp + n) for n, (key, value) in enumerate(inner)
    )
    packed = compress(codec, messages)
    if codec is Codec.LZ4 and magic == 0:
        packed = _with_the_old_checksum(packed)
    attributes = codec | (0x08 if log_append_time else 0)
    last = base_offset + len(inner) - 1
    return message(last, None, packed, magic=magic, timestamp=timestamp + len(inner) - 1, attributes=attributes)


def _with_the_old_checksum(frame: bytes) -> bytes:
    """KAFKA-3160: the checksum of an LZ4 frame's header was taken over its magic too."""
    assert bytes(cramjam.lz4.decompress(frame)) is not None
    return frame[:6] + bytes([frame[6] ^ 0x5A]) + frame[7:]
