"""The codecs: what one writes the other reads, and what Java clients write we read."""

import contextlib
import gzip

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import CorruptLog
from kohort.records.compression import Codec, compress, decompress

codecs = pytest.mark.parametrize("codec", Codec)


@codecs
@given(data=st.binary(max_size=300) | st.integers(1, 8_000).map(lambda n: (b"%d" % n) * (8_000 // n)))
@settings(max_examples=60, deadline=None)
def test_what_is_compressed_comes_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


def test_the_frames_that_java_clients_expect() -> None:
    data = bytes(range(256)) * 600
    assert compress(Codec.GZIP, data)[:2] == b"\x1f\x8b"
    assert compress(Codec.SNAPPY, data).startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    lz4 = compress(Codec.LZ4, data)
    assert lz4[:4] == b"\x04\x22\x4d\x18"
    assert lz4[4] & 0x20, "blocks must be independent: Kafka's Java reader refuses others"
    assert bytes(cramjam.lz4.decompress(lz4)) == data
    assert compress(Codec.ZSTD, data)[:4] == b"\x28\xb5\x2f\xfd"


def test_other_peoples_framings_are_read() -> None:
    data = b"offsets " * 50
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data
    assert decompress(Codec.LZ4, bytes(cramjam.lz4.compress(data))) == data
    assert decompress(Codec.GZIP, gzip.compress(data[:100]) + gzip.compress(data[100:])) == data


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
@given(junk=st.binary(min_size=1, max_size=100), kept=st.integers(0, 40))
@settings(max_examples=100, deadline=None)
def test_junk_is_corrupt_and_nothing_worse(codec: Codec, junk: bytes, kept: int) -> None:
    data = compress(codec, b"some offsets")[:kept] + junk
    with contextlib.suppress(CorruptLog):
        decompress(codec, data)


def test_zstd_is_refused_by_the_memory_that_it_asks_for() -> None:
    """A frame may ask for a window far larger than its content; this one asks for 128 MiB and holds nothing."""
    greedy = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([17 << 3]) + b"\x01\x00\x00" + bytes(200)
    with pytest.raises(CorruptLog, match="decompresses to more than"):
        decompress(Codec.ZSTD, greedy)
