"""The options of `format("kohort")`, checked, and what they ask for."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.clock import parse_moment
from kohort.errors import KohortError
from kohort.log.security import SETTINGS, parse_security
from kohort.log.source import LIVE_SCHEME, BadSource
from kohort.spark.choices import FAILFAST, PERMISSIVE, POSITION, RULES
from kohort.spark.inputs import OFFSETS_TOPIC
from kohort.spark.live import LiveAddress
from kohort.spark.schema import SOURCE_TABLES, columns_of

if TYPE_CHECKING:
    from kohort.spark.marks import Marks

_KNOWN = {
    "path": "a segment file, a partition directory, a Kafka log directory, a pattern, a URI of any of these, or "
    "kafka://HOST:PORT of a live cluster",
    "paths": "several of them, as a JSON list; what load([...]) makes",
    "table": f"one of {', '.join(SOURCE_TABLES)}",
    "columns": "the columns to read, with commas; all by default",
    "topic": f"which topic of a log directory; {OFFSETS_TOPIC} by default",
    "mode": f"{PERMISSIVE} (damage is passed over and told by the table quarantine) or {FAILFAST}",
    "startingtime": "only records from this time on: ISO 8601 (UTC unless it names a zone) or milliseconds since 1970",
    "endingtime": "only records up to this time",
    "partitions": "how many input partitions; by default as many as the bytes suggest",
    "kafka.bootstrap.servers": "HOST:PORT of a live cluster, with commas if there are several; instead of a path",
    **{f"kafka.{name}": meaning for name, meaning in SETTINGS.items()},
    "startingoffsets": "of a stream: earliest (the default), latest, or the marks of a stream as a JSON object",
    "maxoffsetspertrigger": "of a stream: about how many offsets a micro-batch holds at most; from Spark 4.2 on",
    "between": "of a table that a stream has to make: the two marks of its micro-batch, as a JSON list",
    "rule": "of a replay: position or kafka-2.6",
    "asof": "of a replay: the time at which it ends",
    "since": "of a replay: for each partition the offset from which on to take records, as a JSON object",
    "until": "of tables that are written: for each partition the offset before which it ends, as a JSON object",
    "into": "of tables that are written: where their directories are",
}


EARLIEST, LATEST = "earliest", "latest"

_ONLY_FOR = {"rule": "folded", "asof": "folded", "since": "folded", "until": "written", "into": "written"}


class BadOption(KohortError):
    """An option that means nothing, or not what was given."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    paths: tuple[str, ...]
    live: LiveAddress | None
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
    until: Mapping[int, int] | None
    into: str
    starting_offsets: str
    most: int | None
    between: "tuple[Marks, Marks] | None"


def parse_options(given: Mapping[str, str]) -> Options:
    options = {name.lower(): value for name, value in given.items()}
    table = options.get("table", "records")
    if table not in SOURCE_TABLES:
        raise BadOption(f"no table {table!r} to read; there are {', '.join(SOURCE_TABLES)}")
    live = live_address(options)
    for name in options:
        if name.startswith("kafka.") and live is not None:
            continue
        if name not in _KNOWN or _ONLY_FOR.get(name, table) != table:
            raise BadOption(f"no option {name!r} for {table}; there are {', '.join(_KNOWN)}")
    mode = options.get("mode", PERMISSIVE).lower()
    if mode not in (PERMISSIVE, FAILFAST):
        raise BadOption(f"mode is {mode!r}, must be {PERMISSIVE} or {FAILFAST}")
    return Options(
        paths=(live.url,) if live is not None else _paths(options),
        live=live,
        table=table,
        columns=_columns(table, options.get("columns")),
        topic=options.get("topic", OFFSETS_TOPIC),
        fail_fast=mode == FAILFAST,
        starting=_moment(options, "startingtime"),
        ending=_moment(options, "endingtime"),
        partitions=_count(options, "partitions"),
        rule=_rule(options.get("rule", POSITION)),
        as_of=_moment(options, "asof"),
        since=_offsets(options.get("since", "{}")),
        until=None if "until" not in options else _offsets(options["until"]),
        into=options.get("into", ""),
        starting_offsets=_starting_offsets(options.get("startingoffsets", EARLIEST)),
        most=_count(options, "maxoffsetspertrigger"),
        between=_between(options.get("between")),
    )


def _starting_offsets(value: str) -> str:
    if value.lower() in (EARLIEST, LATEST):
        return value.lower()
    _marks("startingOffsets", value)
    return value


def _between(value: str | None) -> "tuple[Marks, Marks] | None":
    if value is None:
        return None
    start, end = json.loads(value)
    return start, end


def _marks(name: str, value: str) -> "Marks":
    """Marks in JSON, by partition."""
    try:
        told = json.loads(value)
    except ValueError:
        raise BadOption(f"{name} is {value!r}, must be {EARLIEST}, {LATEST} or a JSON object") from None
    is_right = isinstance(told, dict) and all(
        partition.isdecimal() and isinstance(mark, dict) and isinstance(mark.get("offset"), int)
        for partition, mark in told.items()
    )
    if not is_right:
        raise BadOption(f'{name} is {value!r}, must be like {{"0": {{"offset": 12}}}}: by partition')
    marks: Marks = told
    return marks


def _offsets(value: str) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in json.loads(value).items()}


def live_address(options: Mapping[str, str]) -> LiveAddress | None:
    """The cluster that options name, which is instead of a path; their names are in lower case."""
    bootstrap, names = options.get("kafka.bootstrap.servers"), options.get("path") or options.get("paths")
    if names is not None:
        paths = _paths(options)
        live = [path for path in paths if path.startswith(LIVE_SCHEME)]
        if live and len(paths) > 1:
            raise BadSource(f"{live[0]}: a cluster is read alone, not together with other paths")
        if bootstrap is not None:
            raise BadOption("give a path or kafka.bootstrap.servers, not both")
        bootstrap = live[0].removeprefix(LIVE_SCHEME).rstrip("/") if live else None
    if bootstrap is None:
        return None
    settings = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}
    settings.pop("bootstrap.servers", None)
    return LiveAddress(bootstrap, parse_security(settings))


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in options:
        return tuple(str(path) for path in json.loads(options["paths"]))
    if not options.get("path"):
        raise BadSource("no path: give .option('path', ...) or .load(path), or .option('kafka.bootstrap.servers', ...)")
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
        return parse_moment(options[name])
    except ValueError as error:
        raise BadOption(f"{name}: {error}") from None


def _count(options: Mapping[str, str], name: str) -> int | None:
    if name not in options:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,5}", options[name]):
        raise BadOption(f"{name} is {options[name]!r}, must be a number from 1 to 999999")
    return int(options[name])
