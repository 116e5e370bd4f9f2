"""Kafka's primitive types, read from and written to bytes.

A `Reader` walks over one key or value and raises `Malformed` where the bytes end too early or lie about a length;
whoever called it decides what that means. Lengths are checked against what is left before anything is taken.
"""

import struct
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class Malformed(ValueError):
    """The bytes do not follow the schema that they claim."""


def wrap32(n: int) -> int:
    """`n` as Java's int holds it."""
    return ((n + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def wrap64(n: int) -> int:
    """`n` as Java's long holds it."""
    return ((n + 0x8000_0000_0000_0000) & 0xFFFF_FFFF_FFFF_FFFF) - 0x8000_0000_0000_0000


def text(raw: bytes) -> str:
    """UTF-8 as Java reads it: malformed bytes become U+FFFD, nothing fails."""
    return str(raw, "utf-8", "replace")


def utf8(string: str) -> bytes:
    """UTF-8 as Java writes it: a lone surrogate becomes a question mark."""
    try:
        return string.encode()
    except UnicodeEncodeError:
        return string.encode("utf-8", "replace")


def string_at(data: bytes, at: int) -> tuple[str, int]:
    """The string at a place, and the place behind it: what a `Reader` does, for the few fields that are read most."""
    start = at + 2
    end = start + int.from_bytes(data[at:start], "big", signed=True)
    if not start <= end <= len(data):
        raise Malformed(f"a string of {end - start} bytes, {len(data) - start} left")
    return text(data[start:end]), end


class Reader:
    """A cursor over bytes."""

    __slots__ = ("_data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def remaining(self) -> int:
        return len(self._data) - self.position

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self._data):
            raise Malformed(f"{count} bytes wanted, {self.remaining} left")
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def int8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def int16(self) -> int:
        value: int = _INT16.unpack(self.take(2))[0]
        return value

    def int32(self) -> int:
        value: int = _INT32.unpack(self.take(4))[0]
        return value

    def int64(self) -> int:
        value: int = _INT64.unpack(self.take(8))[0]
        return value

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def unsigned_varint(self) -> int:
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF
        raise Malformed("a varint of more than 5 bytes")

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise Malformed("null where a string must stand")
        return value

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length == -1:
            return None
        return text(self.take(length))

    def blob(self) -> bytes:
        length = self.int32()
        if length == -1:
            raise Malformed("null where bytes must stand")
        return self.take(length)

    def nullable_blob(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self.take(length)

    def compact_string(self) -> str:
        value = self.compact_nullable_string()
        if value is None:
            raise Malformed("null where a string must stand")
        return value

    def compact_nullable_string(self) -> str | None:
        length = self.unsigned_varint() - 1
        return None if length == -1 else text(self.take(length))

    def compact_blob(self) -> bytes:
        length = self.unsigned_varint() - 1
        if length == -1:
            raise Malformed("null where bytes must stand")
        return self.take(length)

    def array(self, item: Callable[["Reader"], T]) -> list[T]:
        return self._items(self.int32(), item)

    def compact_array(self, item: Callable[["Reader"], T]) -> list[T]:
        return self._items(self.unsigned_varint() - 1, item)

    def _items(self, count: int, item: Callable[["Reader"], T]) -> list[T]:
        if count < 0 or count > self.remaining:
            raise Malformed(f"{count} items in {self.remaining} bytes")
        return [item(self) for _ in range(count)]

    def tags(self, known: dict[int, Callable[["Reader"], object]] | None = None) -> dict[int, object]:
        """Tagged fields (KIP-482): those known are read, all others passed over."""
        found: dict[int, object] = {}
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            field = Reader(self.take(self.unsigned_varint()))
            if known and tag in known:
                found[tag] = known[tag](field)
        return found


class Writer:
    """Bytes under construction; every method returns the writer, so that calls chain."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def done(self) -> bytes:
        return b"".join(self._parts)

    def raw(self, data: bytes) -> "Writer":
        self._parts.append(data)
        return self

    def int8(self, value: int) -> "Writer":
        return self.raw(value.to_bytes(1, "big", signed=True))

    def int16(self, value: int) -> "Writer":
        return self.raw(_INT16.pack(value))

    def int32(self, value: int) -> "Writer":
        return self.raw(_INT32.pack(value))

    def int64(self, value: int) -> "Writer":
        return self.raw(_INT64.pack(value))

    def unsigned_varint(self, value: int) -> "Writer":
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        return self.raw(bytes(out))

    def string(self, value: str) -> "Writer":
        data = utf8(value)
        return self.int16(len(data)).raw(data)

    def nullable_string(self, value: str | None) -> "Writer":
        return self.int16(-1) if value is None else self.string(value)

    def blob(self, value: bytes) -> "Writer":
        return self.int32(len(value)).raw(value)

    def compact_string(self, value: str) -> "Writer":
        data = utf8(value)
        return self.unsigned_varint(len(data) + 1).raw(data)

    def compact_nullable_string(self, value: str | None) -> "Writer":
        return self.unsigned_varint(0) if value is None else self.compact_string(value)

    def compact_blob(self, value: bytes) -> "Writer":
        return self.unsigned_varint(len(value) + 1).raw(value)
