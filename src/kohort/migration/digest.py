"""A checksum of what records say, in their order: when, key, value and headers. Offsets are not in it."""

import hashlib
import struct
from collections.abc import Iterable
from typing import Self

from kohort.records.batch import Record
from kohort.records.primitives import utf8

_TIME_AND_KEY = struct.Struct(">qi")
_LENGTH = struct.Struct(">i")
_NOTHING = -1
_SIZE = 16


class Digest:
    """Takes records, one after another, from wherever they are."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=_SIZE)
        self.records = 0

    def add(self, records: Iterable[Record]) -> None:
        parts: list[bytes] = []
        for _, timestamp, key, value, headers in records:
            self.records += 1
            parts += (
                _TIME_AND_KEY.pack(timestamp, _NOTHING if key is None else len(key)),
                key or b"",
                _LENGTH.pack(_NOTHING if value is None else len(value)),
                value or b"",
                _LENGTH.pack(len(headers)),
            )
            for name, told in headers:
                raw = utf8(name)
                parts += (_LENGTH.pack(len(raw)), raw, _LENGTH.pack(_NOTHING if told is None else len(told)))
                parts.append(told or b"")
        self._hash.update(b"".join(parts))

    def copy(self) -> Self:
        """One that goes on from here by itself."""
        other = type(self)()
        other._hash, other.records = self._hash.copy(), self.records
        return other

    def text(self) -> str:
        return self._hash.hexdigest()
