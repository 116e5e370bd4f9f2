"""A piece of a replay as bytes: to be sent to where pieces are merged, or kept until more of the log is there.

Layout, little-endian: 8 bytes `kohortRP`, version u32, CRC-32C u32 of all that follows, and then the sections, each a
count u64 and so many items of 8 bytes, or of one byte where it holds text. Only keys that matter are written, numbered
anew.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from kohort.errors import CorruptLog
from kohort.records.control import ControlType
from kohort.records.kernels import Longs
from kohort.records.machine import Bytes
from kohort.records.replay import NOWHERE, Piece, Producer, Put, Rule

VERSION = 1
_MAGIC = b"kohortRP"
_HEAD = struct.Struct("<8sII")
_COUNT = struct.Struct("<Q")
_RULES = (Rule.POSITION, Rule.KAFKA_2_6)
_NO_MARKER = -1


def piece_to_bytes(piece: Piece) -> bytes:
    """All that a piece knows."""
    touched = [(n, key) for n, producer in enumerate(piece.producers.values()) for key in sorted(producer.touched)]
    still_open = [
        (n, key, put) for n, producer in enumerate(piece.producers.values()) for key, put in producer.open.items()
    ]
    used = (piece.best != NOWHERE) | (piece.removed != NOWHERE) | (piece.mentioned != NOWHERE)
    used[[key for _, key in touched]] = True
    used[[key for _, key, _ in still_open]] = True
    keys = np.flatnonzero(used)
    numbers = np.cumsum(used) - 1
    sections: list[NDArray[Any]] = [
        _longs([_RULES.index(piece.rule), piece.records, piece.unreadable_keys]),
        *piece.keys.packed(keys),
        piece.best[keys],
        piece.removed[keys],
        piece.mentioned[keys],
        *piece.values.packed(piece.standing()),
        _longs([_producer_row(pid, producer) for pid, producer in piece.producers.items()]),
        _longs([(n, numbers[key]) for n, key in touched]),
        _longs([(n, numbers[key], put.position, put.timestamp) for n, key, put in still_open]),
        *_joined([put.value for _, _, put in still_open]),
    ]
    body = b"".join(_COUNT.pack(section.size) + section.tobytes() for section in sections)
    return _HEAD.pack(_MAGIC, VERSION, crc32c(body)) + body


def piece_from_bytes(data: bytes) -> Piece:
    """The piece that was written; whatever is not one, or was changed since, is `CorruptLog`."""
    if len(data) < _HEAD.size:
        raise CorruptLog("too short for a piece of a replay")
    magic, version, crc = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise CorruptLog("no piece of a replay")
    if version != VERSION:
        raise CorruptLog(f"a piece of a replay in version {version}, where {VERSION} is understood")
    if crc32c(data[_HEAD.size :]) != crc:
        raise CorruptLog("a piece of a replay whose checksum is wrong")
    return _Sections(data).piece()


class _Sections:
    """Takes one section after the other. Their checksum is right, so they are as they were written."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = _HEAD.size

    def piece(self) -> Piece:
        rule, records, unreadable = self._longs().tolist()
        piece = Piece(_RULES[rule])
        piece.records, piece.unreadable_keys = records, unreadable
        bounds, raw = self._longs(), self._bytes()
        ids = piece.keys.intern_all(raw, bounds)
        piece.resize()
        for array in (piece.best, piece.removed, piece.mentioned):
            array[ids] = self._longs()
        bounds, raw = self._longs(), self._bytes()
        piece.values.put(piece.standing(), raw, bounds[:-1], np.diff(bounds))
        producers = []
        for pid, kind, position in self._longs().reshape(-1, 3).tolist():
            producers.append(Producer(marker=None if kind == _NO_MARKER else (ControlType(kind), position)))
            piece.producers[pid] = producers[-1]
        for number, key in self._longs().reshape(-1, 2).tolist():
            producers[number].touched.add(int(ids[key]))
        puts = self._longs().reshape(-1, 4).tolist()
        bounds, raw = self._longs(), self._bytes()
        for (number, key, position, timestamp), start, end in zip(puts, bounds[:-1], bounds[1:], strict=True):
            producers[number].open[int(ids[key])] = Put(position, raw[start:end].tobytes(), timestamp)
        return piece

    def _longs(self) -> Longs:
        return self._take(np.dtype("<i8")).astype(np.int64)  # a copy: the kernels want it aligned

    def _bytes(self) -> Bytes:
        return self._take(np.dtype("u1"))

    def _take(self, type_: np.dtype[Any]) -> NDArray[Any]:
        (count,) = _COUNT.unpack_from(self._data, self._position)
        start = self._position + _COUNT.size
        self._position = start + count * type_.itemsize
        return np.frombuffer(self._data, type_, count, start)


def _producer_row(pid: int, producer: Producer) -> tuple[int, int, int]:
    return (pid, _NO_MARKER, NOWHERE) if producer.marker is None else (pid, *producer.marker)


def _longs(rows: Sequence[Any]) -> Longs:
    return np.array(rows, np.dtype("<i8")).reshape(-1)


def _joined(values: list[bytes]) -> tuple[Longs, Bytes]:
    bounds = np.cumsum([0, *map(len, values)])
    return bounds, np.frombuffer(b"".join(values), np.uint8)
