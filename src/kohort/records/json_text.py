"""Rows and states as JSON: bytes as base64, UUIDs as Kafka prints them, and nothing but ASCII on the line."""

import base64
import json
from uuid import UUID

from kohort.records.modern_groups import kafka_uuid


def to_json(value: object, *, indent: int | None = None) -> str:
    return json.dumps(value, default=_other, indent=indent)


def _other(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return kafka_uuid(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
