"""The options of `format("kohort")`, checked, and what they ask for."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kohort.errors import KohortError
from kohort.log.source import BadSource
from kohort.spark.choices import FAILFAST, PERMISSIVE, POSITION, RULES
from kohort.spark.inputs import OFFSETS_TOPIC
from kohort.spark.schema import SOURCE_TABLES, columns_of

_KNOWN = {
    "path": "a segment file, a partition directory, a Kafka log directory, a pattern, or a URI of any of these",
    "paths": "several of them, as a JSON list; what load([...]) makes",
    "table": f"one of {', '.join(SOURCE_TABLES)}",
    "columns": "the columns to read, with commas; all by default",
    "topic": f"which topic of a log directory; {OFFSETS_TOPIC} by default",
    "mode": f"{PERMISSIVE} (damage is passed over and told by the table quarantine) or {FAILFAST}",
    "startingtime": "only records from this time on: ISO 8601 (UTC unless it names a zone) or milliseconds since 1970",
    "endingtime": "only records up to this time",
    "partitions": "how many input partitions; by default as many as the bytes suggest",
    "rule": "of a replay: position or kafka-2.6",
    "asof": "of a replay: the time at which it ends",
    "since": "of a replay: for each partition the offset from which on to take records, as a JSON object",
}


_OF_A_REPLAY = ("rule", "asof", "since")


class BadOption(KohortError):
    """An option that means nothing, or not what was given."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    paths: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    topic: str
    fail_fast: bool
    starting: int | None
    ending: int | None
    partitions: int | None
    rule: str
    as_of: int | None
    since: Mapping[int, int]


def parse_options(given: Mapping[str, str]) -> Options:
    options = {name.lower(): value for name, value in given.items()}
    table = options.get("table", "records")
    if table not in SOURCE_TABLES:
        raise BadOption(f"no table {table!r} to read; there are {', '.join(SOURCE_TABLES)}")
    for name in options:
        if name not in _KNOWN or (name in _OF_A_REPLAY and table != "folded"):
            raise BadOption(f"no option {name!r} for {table}; there are {', '.join(_KNOWN)}")
    mode = options.get("mode", PERMISSIVE).lower()
    if mode not in (PERMISSIVE, FAILFAST):
        raise BadOption(f"mode is {mode!r}, must be {PERMISSIVE} or {FAILFAST}")
    return Options(
        paths=_paths(options),
        table=table,
        columns=_columns(table, options.get("columns")),
        topic=options.get("topic", OFFSETS_TOPIC),
        fail_fast=mode == FAILFAST,
        starting=_moment(options, "startingtime"),
        ending=_moment(options, "endingtime"),
        partitions=_count(options, "partitions"),
        rule=_rule(options.get("rule", POSITION)),
        as_of=_moment(options, "asof"),
        since={int(partition): int(offset) for partition, offset in json.loads(options.get("since", "{}")).items()},
    )


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in options:
        return tuple(str(path) for path in json.loads(options["paths"]))
    if not options.get("path"):
        raise BadSource("no path: give .option('path', ...) or .load(path)")
    return (options["path"],)


def _columns(table: str, wanted: str | None) -> tuple[str, ...]:
    there = tuple(column.name for column in columns_of(table))
    if wanted is None:
        return there
    names = tuple(name.strip() for name in wanted.split(","))
    return checked_columns(table, names)


def checked_columns(table: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The same names, if the table has them all."""
    there = [column.name for column in columns_of(table)]
    for name in names:
        if name not in there:
            raise BadOption(f"{table} has no column {name!r}; it has {', '.join(there)}")
    return names


def _rule(value: str) -> str:
    if value not in RULES:
        raise BadOption(f"rule is {value!r}, must be {' or '.join(RULES)}")
    return value


def _moment(options: Mapping[str, str], name: str) -> int | None:
    if name not in options:
        return None
    try:
        return moment(options[name])
    except ValueError as error:
        raise BadOption(f"{name}: {error}") from None


def moment(value: str) -> int:
    """A time in milliseconds since 1970, from such a number or from ISO 8601 (UTC unless it names a zone)."""
    if re.fullmatch(r"[0-9]{11,18}", value):
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


def _count(options: Mapping[str, str], name: str) -> int | None:
    if name not in options:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,5}", options[name]):
        raise BadOption(f"{name} is {options[name]!r}, must be a number from 1 to 999999")
    return int(options[name])
