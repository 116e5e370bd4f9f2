"""Which errors an answer tells, found where its schema says that there may be some.

Every answer is looked through, so what it costs counts: most errors stand in a field of its own in a list of
partitions, and those lists are looked through without a call for each of their entries.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

Values = Mapping[str, Any]
FindErrors = Callable[[Values, list[int]], None]
"""Adds the error codes of an answer to a list; those that say that all is well are passed over."""


@dataclass(slots=True)
class _Places:
    """Where a schema has room for errors."""

    own: list[str] = field(default_factory=list)
    single: list[tuple[str, FindErrors]] = field(default_factory=list)
    flat: list[tuple[str, str]] = field(default_factory=list)
    """Lists whose entries have one error each and nothing else to look into, with the name that it has there."""
    deep: list[tuple[str, FindErrors]] = field(default_factory=list)

    @property
    def only(self) -> str | None:
        """The one error that there may be."""
        is_plain = len(self.own) == 1 and not self.single and not self.flat and not self.deep
        return self.own[0] if is_plain else None


@cache
def errors_of(schema: type[Any]) -> FindErrors | None:
    """None if there is no room for an error."""
    places = _places(schema)
    own, single, flat, deep = places.own, places.single, places.flat, places.deep
    if not own and not single and not flat and not deep:
        return None

    def find_all(values: Values, found: list[int]) -> None:
        for name in own:
            if code := values.get(name):
                found.append(code)  # noqa: PERF401 - there is one at most, and this costs less
        for name, error in flat:
            found += [code for entry in values.get(name) or () if (code := entry.get(error))]
        for name, find in deep:
            for entry in values.get(name) or ():
                find(entry, found)
        for name, find in single:
            if (value := values.get(name)) is not None:
                find(value, found)

    return find_all


def _places(schema: type[Any]) -> _Places:
    hints = get_type_hints(schema)
    places = _Places()
    for one in fields(schema):
        kafka_type = one.metadata.get("kafka_type")
        if kafka_type == "error_code":
            places.own.append(one.name)
        if kafka_type is not None:
            continue
        element, is_array = _element(hints[one.name])
        find = errors_of(element)
        if find is None:
            continue
        if not is_array:
            places.single.append((one.name, find))
        elif (only := _places(element).only) is not None:
            places.flat.append((one.name, only))
        else:
            places.deep.append((one.name, find))
    return places


def _element(hint: Any) -> tuple[Any, bool]:
    """The schema of a field, and whether there may be many of it."""
    arguments = get_args(hint)
    if type(None) in arguments:
        hint = next(argument for argument in arguments if argument is not type(None))
    is_array = get_origin(hint) is tuple
    return (get_args(hint)[0] if is_array else hint), is_array
