"""Spark's filters on group, topic and time, as what a request leaves out. What is not understood narrows nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kohort.spark.compat import filter_classes
from kohort.spark.request import Request

_KEYED_BY_TOPIC = ("records", "offset_commits")
"""Tables whose topic is that of the record's key."""

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)


def narrowed(request: Request, filter_: Any) -> dict[str, Any]:
    """The fields of a request that a filter changes. Times may be a millisecond too wide: Spark looks again."""
    kind = _kind(filter_)
    column = filter_.attribute[0] if kind and len(filter_.attribute) == 1 else None
    if column == "group" and kind in _CHOICES and request.table != "quarantine":
        return {"groups": _both(request.groups, _values(kind, filter_.value))}
    if column == "topic" and kind in _CHOICES and request.table in _KEYED_BY_TOPIC:
        return {"topics": _both(request.topics, _values(kind, filter_.value))}
    if column == "timestamp":
        return _time(request, str(kind), filter_.value)
    return {}


_CHOICES = ("EqualTo", "EqualNullSafe", "In")


def _kind(filter_: Any) -> str | None:
    return next((name for name, class_ in filter_classes().items() if type(filter_) is class_), None)


def _values(kind: str, value: Any) -> frozenset[str] | None:
    """The texts that a filter lets through; None if NULL is among them, which no list of texts can say."""
    values = value if kind == "In" else [value]
    return None if any(not isinstance(text, str) for text in values) else frozenset(values)


def _both(before: frozenset[str] | None, values: frozenset[str] | None) -> frozenset[str] | None:
    if before is None or values is None:
        return values if before is None else before
    return before & values


def _time(request: Request, kind: str, value: Any) -> dict[str, Any]:
    milliseconds = _milliseconds(value)
    if milliseconds is None:
        return {}
    found: dict[str, Any] = {}
    if kind in ("EqualTo", "GreaterThan", "GreaterThanOrEqual"):
        found["starting"] = milliseconds if request.starting is None else max(request.starting, milliseconds)
    if kind in ("EqualTo", "LessThan", "LessThanOrEqual"):
        end = milliseconds + 1
        found["ending"] = end if request.ending is None else min(request.ending, end)
    return found


def _milliseconds(value: Any) -> int | None:
    """A time of `records`, a number, or of the other tables, an instant; rounded down."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.astimezone()
        return (
            (aware - _EPOCH).days * 86_400_000 + (aware - _EPOCH).seconds * 1000 + (aware - _EPOCH).microseconds // 1000
        )
    return value if isinstance(value, int) else None
