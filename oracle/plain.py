"""Answers as plain values, without what no two brokers have in common.

Member ids end with a UUID: `a-6fa…` becomes `a-#1`, by order of appearance among those that begin alike. Producer ids
become `p1`, `p2`, …; the broker's port becomes `port`, times of the wall clock become `now`. How long a client is
throttled is not told at all. Kafka keeps members, topics, partitions and groups in hash maps, so lists of such are
sorted.
"""

import re
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLOCK_FROM_MS = 1_500_000_000_000
"""Anything later in a field of time was taken from a clock."""


class Names:
    """What the ids of one conversation are called."""

    def __init__(self, port: int, *, keeps_members: bool = False) -> None:
        self._port = port
        self._keeps_members = keeps_members
        self._members: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self.producers: dict[int, str] = {}

    def text(self, text: str) -> str:
        found = _UUID.search(text)
        if found is None or self._keeps_members:
            return text
        if text not in self._members:
            head = text[: found.start()]
            self._counts[head] = self._counts.get(head, 0) + 1
            self._members[text] = f"{head}#{self._counts[head]}{text[found.end() :]}"
        return self._members[text]

    def producer(self, producer_id: int) -> str | int:
        if producer_id < 0:
            return producer_id
        return self.producers.setdefault(producer_id, f"p{len(self.producers) + 1}")

    def plain(self, value: Any, name: str = "") -> Any:
        """An answer of kio's, or a part of it."""
        if is_dataclass(value):
            return {
                field.name: self.plain(getattr(value, field.name), field.name)
                for field in fields(value)
                if field.name != "throttle_time"
            }
        if isinstance(value, dict):
            return {key: self.plain(one, key) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return in_order([self.plain(one) for one in value])
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, timedelta):
            return value // timedelta(milliseconds=1)
        if isinstance(value, datetime):
            return clock_time(int(value.timestamp() * 1000))
        if isinstance(value, str):
            return self.text(value)
        if name == "producer_id":
            return self.producer(value)
        return "port" if name == "port" and value == self._port else value


def clock_time(time_ms: int) -> str | int:
    return "now" if time_ms >= _CLOCK_FROM_MS else time_ms


def in_order(values: list[Any]) -> list[Any]:
    """Sorted if they are not plain: the order of members and partitions says nothing."""
    return sorted(values, key=repr) if values and isinstance(values[0], dict) else values


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every single field by where it stands."""
    if isinstance(value, dict) and value:
        return {at: one for key, part in value.items() for at, one in flat(part, f"{path}.{key}").items()}
    if isinstance(value, list) and value:
        return {at: one for number, part in enumerate(value) for at, one in flat(part, f"{path}[{number}]").items()}
    return {path: value}
