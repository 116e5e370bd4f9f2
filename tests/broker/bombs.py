"""Batches of at most a MiB that claim to be, or become, hundreds of MiB when they are opened."""

import zlib
from collections.abc import Mapping
from functools import cache

import cramjam
from crc32c import crc32c

from kohort.records.compression import Codec
from tests.broker.data_plane import batch

_MIB = 1 << 20
_BODY_AT = 61
_LENGTH = slice(8, 12)
_CRC = slice(17, 21)
_CRC_FROM = 21
_ATTRIBUTES = slice(21, 23)
_XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
_MOST = 1_000_000
"""So large may a body be for its batch to be looked into at all."""


def packed(codec: Codec, body: bytes) -> bytes:
    """A batch that is right in all but what it holds."""
    made = bytearray(batch("v")[:_BODY_AT] + body)
    made[_LENGTH] = (len(made) - 12).to_bytes(4, "big")
    made[_ATTRIBUTES] = int(codec).to_bytes(2, "big")
    made[_CRC] = crc32c(bytes(made[_CRC_FROM:])).to_bytes(4, "big")
    return bytes(made)


def _repeated(piece: bytes) -> bytes:
    return piece * (_MOST // len(piece))


@cache
def bombs() -> Mapping[str, bytes]:
    """By what they are."""
    zeros = bytes(32 * _MIB)
    gzip = zlib.compressobj(9, wbits=31)
    gzip_member = gzip.compress(zeros) + gzip.flush()
    gzip = zlib.compressobj(9, wbits=31)
    gzip_whole = gzip.compress(bytes(100 * _MIB)) + gzip.flush()
    zstd = bytes(cramjam.zstd.compress(zeros))
    block = bytes(cramjam.lz4.compress_block(zeros[: 64 * 1024], store_size=False))
    lz4_block = len(block).to_bytes(4, "little") + block
    snappy = bytes(cramjam.snappy.compress_raw(zeros[:_MIB]))
    xerial_block = len(snappy).to_bytes(4, "big") + snappy
    return {
        "gzip": packed(Codec.GZIP, gzip_whole),
        "gzip in many members": packed(Codec.GZIP, _repeated(gzip_member)),
        "zstd": packed(Codec.ZSTD, zstd),
        "zstd in many frames": packed(Codec.ZSTD, zstd * 400),
        "zstd that says 2 GiB": packed(
            Codec.ZSTD, b"\x28\xb5\x2f\xfd\xa0" + (1 << 31).to_bytes(4, "little") + bytes(500)
        ),
        "lz4": packed(Codec.LZ4, bytes.fromhex("04224d18604082") + _repeated(lz4_block) + bytes(4)),
        "snappy that says 4 GiB": packed(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100)),
        "snappy in many blocks": packed(Codec.SNAPPY, _XERIAL + _repeated(xerial_block)),
        # CVE-2023-34455: the length of a chunk taken at its word, or below 0
        "snappy chunk of 2 GiB": packed(Codec.SNAPPY, _XERIAL + b"\x7f\xff\xff\xff" + bytes(100)),
        "snappy chunk of -1": packed(Codec.SNAPPY, _XERIAL + b"\xff\xff\xff\xff" + bytes(100)),
        "snappy chunk of -2 GiB": packed(Codec.SNAPPY, _XERIAL + b"\x80\x00\x00\x00" + bytes(100)),
    }
