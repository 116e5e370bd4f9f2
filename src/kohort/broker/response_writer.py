"""Answers as bytes, written straight from plain dictionaries.

kio knows the schema of every answer in every version; from it a writer is made once for each and kept. A field that a
version does not have is passed over, so a handler names all that it knows and the version decides what is sent. Times
are milliseconds, error codes and enumerations are integers.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from kohort.records.primitives import utf8

Values = Mapping[str, Any]
Write = Callable[[bytearray, Any], None]

_NUMBERS = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "error_code": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "timedelta_i32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "timedelta_i64": struct.Struct(">q"),
    "datetime_i64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}
_LENGTH16 = struct.Struct(">h")
_LENGTH32 = struct.Struct(">i")
_NO_STRUCT, _STRUCT = b"\xff", b"\x01"
_NOTHING: Mapping[str, Any] = {"throttle_time": 0}


@cache
def writer_of(schema: type[Any]) -> Write:
    """Writes the fields of a schema from a dictionary."""
    flexible = schema.__flexible__
    hints = get_type_hints(schema)
    plain: list[tuple[str, Write, Any]] = []
    tagged: list[tuple[int, str, Write, Any]] = []
    for field in fields(schema):
        write = _field_writer(field, hints[field.name], flexible)
        default = _default(field)
        if "tag" in field.metadata:
            tagged.append((field.metadata["tag"], field.name, write, default))
        else:
            plain.append((field.name, write, default))
    tagged.sort(key=lambda entry: entry[0])

    def write_all(out: bytearray, values: Values) -> None:
        for name, write, default in plain:
            value = values.get(name, default)
            if value is MISSING:
                raise KeyError(f"{schema.__name__} needs {name}")
            write(out, value)
        if flexible:
            _write_tags(out, values, tagged)

    return write_all


def _write_tags(out: bytearray, values: Values, tagged: list[tuple[int, str, Write, Any]]) -> None:
    present = [(tag, write, values[name]) for tag, name, write, _ in tagged if values.get(name) is not None]
    put_unsigned_varint(out, len(present))
    for tag, write, value in present:
        body = bytearray()
        write(body, value)
        put_unsigned_varint(out, tag)
        put_unsigned_varint(out, len(body))
        out += body


def _default(field: "Field[Any]") -> Any:
    if field.name in _NOTHING:
        return _NOTHING[field.name]
    if isinstance(field.default, timedelta):
        return field.default // timedelta(milliseconds=1)
    return field.default


def _field_writer(field: "Field[Any]", hint: Any, flexible: bool) -> Write:
    arguments = get_args(hint)
    nullable = type(None) in arguments
    if nullable:
        hint = next(argument for argument in arguments if argument is not type(None))
    is_array = get_origin(hint) is tuple
    element = get_args(hint)[0] if is_array else hint
    kafka_type = field.metadata.get("kafka_type")
    if kafka_type is None:
        write = writer_of(element)
        if nullable and not is_array:
            write = _nullable_writer(write)
    else:
        write = _primitive_writer(kafka_type, flexible, nullable and not is_array)
    return _array_writer(write, flexible) if is_array else write


def _nullable_writer(write: Write) -> Write:
    """A byte says whether there is anything."""

    def write_or_nothing(out: bytearray, value: Any) -> None:
        if value is None:
            out += _NO_STRUCT
        else:
            out += _STRUCT
            write(out, value)

    return write_or_nothing


def _array_writer(write: Write, flexible: bool) -> Write:
    def compact(out: bytearray, values: Any) -> None:
        put_unsigned_varint(out, 0 if values is None else len(values) + 1)
        for value in values or ():
            write(out, value)

    def plain(out: bytearray, values: Any) -> None:
        out += _LENGTH32.pack(-1 if values is None else len(values))
        for value in values or ():
            write(out, value)

    return compact if flexible else plain


def _primitive_writer(kafka_type: str, flexible: bool, nullable: bool) -> Write:
    if kafka_type in _NUMBERS:
        pack = _NUMBERS[kafka_type].pack
        absent = -1 if kafka_type == "datetime_i64" else 0

        def number(out: bytearray, value: Any) -> None:
            out += pack(absent if value is None else value)

        return number
    if kafka_type == "uuid":
        return _write_uuid
    is_text = kafka_type == "string"
    length = _LENGTH16 if is_text else _LENGTH32

    def compact(out: bytearray, value: Any) -> None:
        if value is None:
            if not nullable:
                raise ValueError(f"a {kafka_type} that must not be null")
            out.append(0)
            return
        data = utf8(value) if is_text else value
        put_unsigned_varint(out, len(data) + 1)
        out += data

    def plain(out: bytearray, value: Any) -> None:
        if value is None:
            if not nullable:
                raise ValueError(f"a {kafka_type} that must not be null")
            out += length.pack(-1)
            return
        data = utf8(value) if is_text else value
        out += length.pack(len(data))
        out += data

    return compact if flexible else plain


def _write_uuid(out: bytearray, value: UUID | None) -> None:
    out += bytes(16) if value is None else value.bytes


def put_unsigned_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
