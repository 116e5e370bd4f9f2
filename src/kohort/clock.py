"""Time, injected: the machine's clock for people, a virtual one for tests and simulations.

Two hands, as in Kafka: the time of day stands in records and decides what has expired, and somebody may set it, even
back. How long something took is measured on the other hand, which only goes forward: sessions do not end because a
machine's clock was put right.
"""

import re
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never goes back, never jumps."""


class SystemClock:
    """The machine's time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class VirtualClock:
    """A clock that moves only when told."""

    def __init__(self, now_ms: int = 1_600_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        """Time passes."""
        self._now_ms += ms
        self._monotonic_ms += ms

    def jump(self, ms: int) -> None:
        """Somebody sets the time of day, forward or back; no time passes."""
        self._now_ms += ms


def parse_moment(value: str) -> int:
    """A time in milliseconds since 1970, from such a number or from ISO 8601 (UTC unless it names a zone)."""
    if re.fullmatch(r"-?[0-9]{11,18}", value):
        return int(value)
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(
            f"{value!r} is neither ISO 8601 (2026-11-16T03:12) nor milliseconds since 1970 (13 digits)"
        ) from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1000)
