"""Targets: compiled code, which checks no bounds of its own, beside the plain code that says what is right.

The bytes for the columns end where the memory ends: a read behind them ends the process, whatever it reads.
"""

import ctypes
import mmap
import random
from collections.abc import Iterator

import numpy as np

from kohort.broker.commit_transcoder import CommitTranscoder
from kohort.broker.wire import read_header
from kohort.errors import CorruptLog
from kohort.records import arrow
from kohort.records.batch import read_batches
from kohort.records.columns import decode
from kohort.records.key_table import KeyTable
from kohort.records.machine import Bytes
from kohort.records.rows import describe
from tests.broker.test_short_way import VERSIONS, assert_same, frame_of, request, transcode
from tests.fuzzing.batches import meant, segment_seeds
from tests.fuzzing.target import target

_PAGE = mmap.PAGESIZE
_PAGES = 64
_PROT_NONE = 0


class _Edge:
    """Memory behind which there is none."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, (_PAGES + 1) * _PAGE)
        self._size = _PAGES * _PAGE
        self._bytes = np.frombuffer(self._map, np.uint8)
        behind = ctypes.c_void_p(self._bytes.ctypes.data + self._size)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(behind, ctypes.c_size_t(_PAGE), _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")

    def put(self, data: bytes) -> Bytes:
        """The bytes, at the end of it; valid until the next are put there."""
        place = self._bytes[self._size - len(data) : self._size]
        place[:] = np.frombuffer(data, np.uint8)
        place.flags.writeable = False
        return place

    def fits(self, data: bytes) -> bool:
        return len(data) <= self._size


_edge = _Edge()
_transcoder = CommitTranscoder(4096)


@target("columns", segment_seeds)
def fuzz_columns(data: bytes) -> None:
    """The same rows and the same damage as the scalar codec, taken as `batches` takes it."""
    segment = meant(data) if data else b""
    if not _edge.fits(segment):
        return
    told: list[CorruptLog] = []
    rows = [
        describe(0, batch.header, record)
        for batch in read_batches(segment, on_damage=told.append)
        for record in batch.records
    ]
    damage: list[CorruptLog] = []
    window = decode(_edge.put(segment), KeyTable(), on_damage=damage.append)
    assert [(one.position, one.reason) for one in damage] == [(one.position, one.reason) for one in told]
    assert window.consumed == len(segment)
    assert arrow.to_arrow(window.columns, 0).to_pylist() == arrow.from_rows(rows).to_pylist()


def _commit_seeds() -> Iterator[bytes]:
    noise = random.Random(1)
    for version in VERSIONS:
        for _ in range(30):
            values = request(noise, version) | ({"retention_time": -1} if version <= 4 else {})
            frame = frame_of(values, version)
            yield bytes([version]) + frame[read_header(frame).body_at :]


@target("commits", _commit_seeds)
def fuzz_commits(data: bytes) -> None:
    """OffsetCommit in the version of the first byte: as the general way does it, or left to that."""
    if not data:
        return
    version = VERSIONS[data[0] % len(VERSIONS)]
    head = frame_of({}, version)
    frame = head[: read_header(head).body_at] + data[1:]
    short = transcode(_transcoder, frame)
    if short is not None:
        assert_same(frame, short)
