"""Requests as values, read by kio's schemas but with care of our own.

What comes over a socket may lie. Every length and every count is checked against the bytes that are there before
anything is made of them; kio's own reader takes a count at its word and asks for the memory first, which ends the
process. An entry of two bytes becomes a value of hundreds, so a request may have only so many of them in all. A reader
is made once for each version of each API and kept.
"""

import struct
import threading
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import cache
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from kohort.records.primitives import Malformed, text

Read = Callable[[bytes, int], tuple[Any, int]]
"""Takes the bytes and a place in them; gives a value and the place behind it."""

_NUMBERS = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "error_code": ">h",
    "uint16": ">H",
    "int32": ">i",
    "timedelta_i32": ">i",
    "int64": ">q",
    "timedelta_i64": ">q",
    "datetime_i64": ">q",
    "float64": ">d",
}
_BYTE = struct.Struct(">b")
_LENGTH16 = struct.Struct(">h")
_LENGTH32 = struct.Struct(">i")
_LONGEST_STRING = 0x7FFF
_MOST_TAGS = 1_000
MOST_ENTRIES = 200_000
"""Of all arrays of a request together."""


class _Allowance(threading.local):
    """How many entries the request that is being read may still have."""

    entries = 0


_allowance = _Allowance()


def reader_of(schema: Any, most_entries: int = MOST_ENTRIES) -> Read:
    """Reads the fields of a request into a namespace; times are milliseconds."""
    read = _fields_reader(schema)

    def read_request(data: bytes, at: int) -> tuple[Any, int]:
        _allowance.entries = most_entries
        return read(data, at)

    return read_request


@cache
def _fields_reader(schema: type[Any]) -> Read:
    flexible = schema.__flexible__
    hints = get_type_hints(schema)
    plain: list[tuple[str, Read]] = []
    tagged: dict[int, tuple[str, Read]] = {}
    defaults: dict[str, Any] = {}
    for field in fields(schema):
        read = _field_reader(field, hints[field.name], flexible)
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = (field.name, read)
            defaults[field.name] = None if field.default is MISSING else field.default
        else:
            plain.append((field.name, read))

    def read_all(data: bytes, at: int) -> tuple[SimpleNamespace, int]:
        values = dict(defaults)
        for name, read in plain:
            values[name], at = read(data, at)
        if flexible:
            at = _read_tags(data, at, tagged, values)
        return SimpleNamespace(**values), at

    return read_all


def _read_tags(data: bytes, at: int, tagged: dict[int, tuple[str, Read]], values: dict[str, Any]) -> int:
    count, at = _unsigned_varint(data, at)
    if count > _MOST_TAGS:
        raise Malformed(f"{count} tagged fields")
    for _ in range(count):
        tag, at = _unsigned_varint(data, at)
        size, at = _unsigned_varint(data, at)
        end = _checked_end(data, at, size)
        if tag in tagged:
            name, read = tagged[tag]
            values[name], _ = read(data[:end], at)
        at = end
    return at


def skip_tags(data: bytes, at: int) -> int:
    """The place behind tagged fields that nobody wants to know."""
    return _read_tags(data, at, {}, {})


def _field_reader(field: "Field[Any]", hint: Any, flexible: bool) -> Read:
    arguments = get_args(hint)
    nullable = type(None) in arguments
    if nullable:
        hint = next(argument for argument in arguments if argument is not type(None))
    is_array = get_origin(hint) is tuple
    element = get_args(hint)[0] if is_array else hint
    kafka_type = field.metadata.get("kafka_type")
    if kafka_type is None:
        read = _fields_reader(element)
        if nullable and not is_array:
            read = _nullable_reader(read)
    else:
        read = _primitive_reader(kafka_type, flexible, nullable and not is_array)
    return _array_reader(read, flexible, nullable) if is_array else read


def _nullable_reader(read: Read) -> Read:
    """A byte says whether there is anything: -1 if not."""

    def read_or_nothing(data: bytes, at: int) -> tuple[Any, int]:
        is_there, at = _unpack(_BYTE, data, at)
        return read(data, at) if is_there >= 0 else (None, at)

    return read_or_nothing


def _array_reader(read: Read, flexible: bool, nullable: bool) -> Read:
    def read_array(data: bytes, at: int) -> tuple[list[Any] | None, int]:
        count, at = _compact_length(data, at) if flexible else _unpack(_LENGTH32, data, at)
        if count < 0:
            if count != -1 or not nullable:
                raise Malformed(f"an array of {count} entries")
            return None, at
        if count > len(data) - at:
            raise Malformed(f"an array of {count} entries in {len(data) - at} bytes")
        _allowance.entries -= count
        if _allowance.entries < 0:
            raise Malformed("more entries than one message may have")
        values = []
        for _ in range(count):
            value, at = read(data, at)
            values.append(value)
        return values, at

    return read_array


def _primitive_reader(kafka_type: str, flexible: bool, nullable: bool) -> Read:
    if kafka_type in _NUMBERS:
        number = struct.Struct(_NUMBERS[kafka_type])
        return lambda data, at: _unpack(number, data, at)
    if kafka_type == "uuid":
        return _read_uuid
    is_text = kafka_type == "string"
    length_of = _LENGTH16 if is_text else _LENGTH32

    def read_bytes(data: bytes, at: int) -> tuple[Any, int]:
        length, at = _compact_length(data, at) if flexible else _unpack(length_of, data, at)
        if length < 0:
            if length != -1 or not nullable:
                raise Malformed(f"a {kafka_type} of {length} bytes")
            return None, at
        if is_text and length > _LONGEST_STRING:
            raise Malformed(f"a string of {length} bytes")
        end = _checked_end(data, at, length)
        value = data[at:end]
        return (text(value) if is_text else value), end

    return read_bytes


def _read_uuid(data: bytes, at: int) -> tuple[UUID, int]:
    end = _checked_end(data, at, 16)
    return UUID(bytes=bytes(data[at:end])), end


def _unpack(number: struct.Struct, data: bytes, at: int) -> tuple[Any, int]:
    end = _checked_end(data, at, number.size)
    return number.unpack_from(data, at)[0], end


def _compact_length(data: bytes, at: int) -> tuple[int, int]:
    length, at = _unsigned_varint(data, at)
    return length - 1, at


def _checked_end(data: bytes, at: int, length: int) -> int:
    end = at + length
    if end > len(data):
        raise Malformed(f"{length} bytes wanted, {len(data) - at} left")
    return end


def _unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise Malformed("a number that does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
