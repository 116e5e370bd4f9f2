"""The codecs: what one writes the other reads, and what Java clients write we read."""

import contextlib
import gzip
import subprocess
import sys
from pathlib import Path

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import CorruptLog
from kohort.records.compression import Codec, compress, decompress
from tests.records.peak_memory import PEAK_MIB

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


def zstd_frame(window_log: int, content: bytes) -> bytes:
    """One stored block, behind a header that asks for a window and does not tell how much there is."""
    block = (1 | len(content) << 3).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([window_log - 10 << 3]) + block + content


def test_zstd_is_refused_by_the_memory_that_it_asks_for() -> None:
    """A frame may ask for a window far larger than its content; this one asks for 256 MiB."""
    with pytest.raises(CorruptLog, match="zstd window"):
        decompress(Codec.ZSTD, zstd_frame(28, bytes(200)))


def test_zstd_is_refused_by_the_size_that_it_tells() -> None:
    """A single segment of 1 MiB, in few bytes."""
    told = b"\x28\xb5\x2f\xfd" + b"\xa0" + (1 << 20).to_bytes(4, "little") + b"\x01\x00\x00"
    with pytest.raises(CorruptLog, match="decompresses to more than"):
        decompress(Codec.ZSTD, told)


@pytest.mark.parametrize("window_log", [21, 23, 27])
def test_few_bytes_in_a_large_zstd_window_are_read(window_log: int) -> None:
    """As Java's producers send them: 2 MiB by default, 8 MiB and 128 MiB at high levels."""
    assert decompress(Codec.ZSTD, zstd_frame(window_log, b"some offsets")) == b"some offsets"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
def test_a_large_zstd_window_costs_what_is_in_it() -> None:
    script = f"""{PEAK_MIB}
import sys
from kohort.records.compression import Codec, decompress
before = peak_mib()
frame = bytes.fromhex(sys.argv[1])
for _ in range(1000):
    decompress(Codec.ZSTD, frame)
print(peak_mib() - before)
"""
    frame = zstd_frame(27, b"some offsets").hex()
    done = subprocess.run([sys.executable, "-c", script, frame], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8
