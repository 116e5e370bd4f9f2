"""Requests that look like requests: every field has a value of its kind, from those that clients send or dread."""

import random
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

_NAMES = (
    "",
    "g",
    "orders",
    "a.b",
    "__consumer_offsets",
    "consumer",
    "range",
    "..",
    "x" * 300,
    "\ud7ff\ufffd",
    "0",
    "-1",
)
_WIDTHS = {"int8": 8, "int16": 16, "error_code": 16, "uint16": 16, "int32": 32, "int64": 64}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def random_entity(schema: type[Any], noise: random.Random) -> Any:
    """One value of a schema of kio's."""
    hints = get_type_hints(schema)
    return schema(
        **{field.name: _value(field.metadata.get("kafka_type"), hints[field.name], noise) for field in fields(schema)}
    )


def _value(kafka_type: str | None, hint: Any, noise: random.Random) -> Any:
    arguments = get_args(hint)
    if type(None) in arguments:
        if noise.random() < 0.2:
            return None
        hint = next(argument for argument in arguments if argument is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_single(kafka_type, get_args(hint)[0], noise) for _ in range(noise.choice((0, 1, 1, 2, 3))))
    return _single(kafka_type, hint, noise)


def _single(kafka_type: str | None, hint: Any, noise: random.Random) -> Any:
    if kafka_type is None:
        return random_entity(hint, noise)
    if kafka_type == "bool":
        return noise.random() < 0.5
    if kafka_type == "string":
        return noise.choice(_NAMES)
    if kafka_type in ("bytes", "records"):
        return noise.randbytes(noise.choice((0, 1, 4, 61, 200)))
    if kafka_type == "uuid":
        return UUID(int=noise.choice((0, 1, noise.getrandbits(128))))
    if kafka_type == "float64":
        return noise.choice((0.0, -1.0, float("inf"), float("nan")))
    if kafka_type.startswith("timedelta"):
        return timedelta(milliseconds=noise.choice((0, 1, -1, 100, 6_000, 30_000, (1 << 31) - 1)))
    if kafka_type.startswith("datetime"):
        return _EPOCH + timedelta(milliseconds=noise.choice((0, 1, 1_600_000_000_000)))
    return _number(_WIDTHS[kafka_type], noise, is_signed=not kafka_type.startswith("u"))


def _number(bits: int, noise: random.Random, *, is_signed: bool) -> int:
    largest = (1 << (bits - 1)) - 1
    return noise.choice((0, 0, 1, 1, 2, 3, 10, 100, largest) + ((-1, -1, -2, -largest - 1) if is_signed else ()))
