"""Everything that a page shows, from the tables of a run, step by step."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.report import generations, partitions, strips
from kohort.report.axis import BEFORE, Axis, find_axis
from kohort.report.binned import thin
from kohort.report.damage import damage
from kohort.report.difference import difference, two_times
from kohort.report.expiring import expiring
from kohort.report.groups import Groups, find_groups, worst
from kohort.report.jumps import jumps
from kohort.report.lag import lag_over_time
from kohort.report.limits import DETAILED
from kohort.report.run import Run
from kohort.report.series import differences, lines, packed_all
from kohort.report.storms import find_storms
from kohort.report.summary import Findings, sentences
from kohort.report.text import Strings
from kohort.report.topic import health
from kohort.report.transactions import transactions
from kohort.spark.pipeline import Watcher

STEPS = 12
GROUP_COLUMNS = (
    "state", "type", "generation", "protocol_type", "protocol", "members", "coordinator", "offsets", "lag",
    "lag_seconds", "lost", "proxies", "rebalances", "commits", "idle_commits", "bytes", "first_commit", "last_commit",
    "expiring", "expires", "pending", "jumps",
)  # fmt: skip
_TEXTS = frozenset(("state", "type", "protocol_type", "protocol"))

T = TypeVar("T")


class NoSuchGroup(ValueError):
    """A group that is asked for and that the tables do not know."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a report, beside the groups: times in milliseconds, or None for what is usual."""

    start: int | None = None
    earlier: int | None = None
    later: int | None = None


def gather(run: Run, wanted: Wanted, watcher: Watcher) -> dict[str, Any]:
    """The data of a page."""
    strings, steps = Strings(), _Steps(watcher)
    groups = steps.do("groups", lambda: find_groups(run))
    if missing := sorted(set(run.groups) - {row["group"] for row in groups.rows}):
        raise NoSuchGroup(missing[0])
    axis = steps.do("time", lambda: find_axis(run, len(groups.rows), wanted.start))
    table = _table(groups, strings)
    storms = steps.do("storms", lambda: find_storms(run))
    series, detail, earlier = _over_time(run, groups, axis, strings, steps)
    of_topic = steps.do("topic", lambda: health(run, strings)) | {"groups": groups.totals["groups"]}
    of_transactions = steps.do("transactions", lambda: transactions(run, strings))
    of_jumps = steps.do("jumps", lambda: jumps(run, strings))
    of_damage = steps.do("damage", lambda: damage(run, strings))
    of_expiry = steps.do("expiry", lambda: expiring(run, strings))
    changed = steps.do(
        "difference", lambda: difference(run, *two_times(run, axis, wanted.earlier, wanted.later), strings)
    )
    manifest = run.manifest
    found = Findings(
        groups, storms, manifest.at_millis, manifest.retention_minutes, manifest.accounting["records"],
        of_topic, of_transactions, of_jumps, of_damage,
    )  # fmt: skip
    return {
        "run": _run(run, strings),
        "axis": axis.as_dict() | {"earlier": earlier},
        "statuses": strips.STATUSES,
        "summary": sentences(found, strings),
        "groups": table,
        "series": series,
        "detail": detail,
        "topic": of_topic,
        "expiry": of_expiry,
        "transactions": of_transactions,
        "jumps": of_jumps,
        "difference": changed,
        "damage": of_damage,
        "strings": strings.all(),
    }


class _Steps:
    """Tells somebody what is being done."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def do(self, what: str, work: Callable[[], T]) -> T:
        with self.step(what):
            return work()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        self._watcher.begin(what)
        started = time.perf_counter()
        yield
        self._watcher.done(what, None, time.perf_counter() - started)


def _run(run: Run, strings: Strings) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "source": strings.number(manifest.source),
        "topic": strings.number(manifest.topic),
        "at": manifest.at_millis,
        "ends": manifest.ends,
        "rule": manifest.rule,
        "retention_minutes": manifest.retention_minutes,
        "records": manifest.accounting["records"],
        "only": [strings.number(group) for group in run.groups],
        "made_at": round(datetime.now(UTC).timestamp() * 1000),
        "version": version("kohort"),
    }


def _table(groups: Groups, strings: Strings) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {"name": [strings.number(row["group"]) for row in groups.rows]}
    for name in GROUP_COLUMNS:
        values = [row[name] for row in groups.rows]
        columns[name] = [strings.number(value) for value in values] if name in _TEXTS else [_short(v) for v in values]
    columns["status"] = [worst(row) for row in groups.rows]
    return {"columns": columns, "total": groups.totals["groups"], "detailed": DETAILED}


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 3)
    return value


def _over_time(
    run: Run, groups: Groups, axis: Axis, strings: Strings, steps: _Steps
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Lines of all groups, what is told of some of them one by one, and how many commits are older than the lines."""
    count = len(groups.rows)
    thinned = thin(run, groups.numbered, axis).persist()
    try:
        with steps.step("commits"):
            commits = lines(_of_groups(thinned), axis, "commits")["commits"]
            earlier = _earlier(thinned)
            by_partition = partitions.commits_by_partition(thinned, axis, strings)
        lag = steps.do("lag", lambda: lag_over_time(run, thinned, axis))
    finally:
        thinned.unpersist()
    with steps.step("members"):
        status = strips.status_over_time(run, groups.numbered, axis)
        rebalances = strips.rebalances_over_time(run, groups.numbered, axis)
        kept = generations.last_generations(run, groups.numbered)
        try:
            detail = {
                "commits": by_partition,
                "partitions": partitions.partitions_of(run, groups.numbered, strings),
                "rebalances": generations.rebalances_of(run, groups.numbered, strings),
                "members": generations.members_of(run, kept, strings),
                "owners": generations.owners_of(run, kept, strings),
            }
        finally:
            kept.unpersist()
    series = {
        "commits": commits,
        "status": status,
        "rebalances": rebalances,
        "lag": {g: differences(line) for g, line in lag["lag"].items()},
        "committed": {g: differences(line) for g, line in lag["committed"].items()},
        "steps_behind": {g: line * 1000 / axis.step for g, line in lag["seconds"].items()},
    }
    return {name: packed_all(of, count) for name, of in series.items()}, detail, earlier


def _of_groups(thinned: DataFrame) -> DataFrame:
    rows = thinned.where((fn.col("g") >= 0) & (fn.col("commits") > 0))
    return rows.groupBy("g", "bin").agg(fn.sum("commits").alias("commits"))


def _earlier(thinned: DataFrame) -> int:
    before = thinned.where((fn.col("g") >= 0) & (fn.col("bin") == BEFORE))
    return int(before.agg(fn.coalesce(fn.sum("commits"), fn.lit(0))).collect()[0][0])
