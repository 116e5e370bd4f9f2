"""All tables of a run: made from a log, accounted for, and put in the place of those of the run before.

The log is read twice. The replay comes first: it says how far the log reaches, and counts its records. Then all tables
that only the log can give are written in one pass. Whatever can be made from those is made from the Parquet that was
just written.
"""

import contextlib
import platform
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.spark import publishing
from kohort.spark.accounting import Accounting, kinds_in
from kohort.spark.arrays import FIRST_MS, LAST_MS
from kohort.spark.choices import PARQUET
from kohort.spark.data_segments import Ends, find_ends
from kohort.spark.derived import DERIVED, Derivation
from kohort.spark.failures import idle_after_failures, one_line_failures
from kohort.spark.formats import check_format
from kohort.spark.lake import Lake
from kohort.spark.live_ends import committed_offsets, find_live_ends
from kohort.spark.log_tables import LogTables, Reached, reached_by
from kohort.spark.manifest import Manifest, TableMade
from kohort.spark.order import Order
from kohort.spark.replaying import TABLES as REPLAYED
from kohort.spark.replaying import Replay, replay
from kohort.spark.schema import LOG_TABLES, schema_of
from kohort.spark.snapshot import copy_topic, tell_address
from kohort.spark.staging import Staging
from kohort.spark.tables.walk import walk

TABLES = (*LOG_TABLES, *REPLAYED, *DERIVED)
"""The tables of a run, in the order in which they are made."""

STEPS = len(TABLES) + 2
"""How many steps a run has: the replay, the walk through all commits, and the tables; of a cluster, one more."""

_REPLAY, _WALK, _FETCH = "replay", "walk", "fetch"

_COPY = "log"
"""Where the log of a live cluster is while a run lasts."""

_SETTINGS = {
    # Spark's default is a type that hardly anybody else reads, and that has no zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}

T = TypeVar("T")


class Watcher(Protocol):
    """Somebody who wants to know how a run comes along."""

    def begin(self, what: str) -> None: ...

    def done(self, what: str, rows: int | None, seconds: float) -> None: ...


def run(spark: SparkSession, order: Order, watcher: Watcher, keep_state: Path | None = None) -> Manifest:
    """Make all tables. Whatever goes wrong before the last step leaves the tables of the run before as they were.

    With `keep_state`, the state of the replay is saved there, for another replay to go on from.
    """
    order.check()
    check_format(spark, order.format)
    with one_line_failures(), settings_for_tables(spark), Staging(order.out) as staging, idle_after_failures(spark):
        return _Run(spark, order, watcher, staging).all(keep_state)


@contextlib.contextmanager
def settings_for_tables(spark: SparkSession) -> Iterator[None]:
    """What a session has to have while the tables are written; afterwards it is as it was."""
    before = {name: spark.conf.get(name) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


class _Run:
    """One run, step by step."""

    def __init__(self, spark: SparkSession, order: Order, watcher: Watcher, staging: Staging) -> None:
        self._spark, self._order, self._watcher, self._staging = spark, order, watcher, staging
        self._made: dict[str, TableMade] = {}
        self._started = datetime.now(UTC)
        self._live = order.live
        self._source = order.source if self._live is None else staging.path(_COPY)

    def all(self, keep_state: Path | None) -> Manifest:
        order, started = self._order, time.perf_counter()
        if live := self._live:
            timed(self._watcher, _FETCH, lambda: copy_topic(self._spark, live, order.topic, Path(self._source)))
        replayed = timed(self._watcher, _REPLAY, self._replayed)
        if keep_state is not None:
            replayed.save(str(keep_state))
        reached = reached_by(replayed)
        self._from_log(reached, replayed)
        accounting = self._accounting(reached)
        accounting.check()
        ends = ends_of(order, reached.last_timestamp, self._table("current_offsets"))
        at = moment_of(order, reached.last_timestamp, ends, self._started)
        self._derived(ends, at)
        self._publish()
        manifest = Manifest(
            source=order.source,
            topic=order.topic,
            format=order.format,
            rule=order.rule,
            mode=order.mode,
            retention_minutes=order.retention_minutes,
            started_at=self._started.isoformat(),
            seconds=round(time.perf_counter() - started, 3),
            as_of=None if order.as_of is None else _instant(order.as_of).isoformat(),
            at=at.isoformat(),
            ends=told_by(order, ends),
            accounting=accounting.as_dict(),
            versions=versions(),
            tables=self._made,
        )
        manifest.write(order.out)
        publishing.end(order.out)
        return manifest

    def _replayed(self) -> Replay:
        """The replay of the log, done and kept for as long as the run lasts."""
        order = self._order
        replayed = replay(
            self._spark, self._source, as_of=order.as_of, rule=order.rule, topic=order.topic, mode=order.mode
        )
        self._save(_REPLAY, replayed.merged)
        return Replay(self._spark.read.schema(schema_of("folded")).parquet(self._staging.path(_REPLAY)), order.rule)

    def _from_log(self, reached: Reached, replayed: Replay) -> None:
        log = LogTables(self._spark, self._source, self._order.topic, self._order.mode, reached)
        self._watcher.begin(LOG_TABLES[0])
        started = time.perf_counter()
        shares = log.write(self._staging.new)
        took = time.perf_counter() - started
        if self._live is not None:
            tell_address(self._staging.new / "quarantine", Path(self._source), self._live)
        for name in LOG_TABLES:
            if name != LOG_TABLES[0]:
                self._watcher.begin(name)
            self._done(name, took * shares[name])
        for name in REPLAYED:
            self._write(name, partial(replayed.table, name))

    def _derived(self, ends: Ends | None, at: datetime) -> None:
        end_offsets = None if ends is None else self._spark.createDataFrame(ends.end_offsets)
        topic_times = None if ends is None else self._spark.createDataFrame(ends.topic_times)
        commits = self._table("offset_commits")
        walking = partial(walk, commits, end_offsets, topic_times, as_of=at)
        count = self._made["offset_commits"].rows
        timed(self._watcher, _WALK, lambda: self._save(_WALK, walking(commit_count=count)))
        walked = self._spark.read.parquet(self._staging.path(_WALK))
        derivation = Derivation(self._table, walked, at, self._order.retention_minutes, end_offsets, topic_times)
        for name in DERIVED:
            self._write(name, partial(derivation.make, name))

    def _publish(self) -> None:
        if self._order.format != PARQUET:
            timed(self._watcher, "copy", self._replace)
        else:
            self._staging.publish(TABLES)

    def _replace(self) -> None:
        lake = Lake(self._spark, self._order.format, self._order.out)
        publishing.begin(lake, self._order.out)
        for name in TABLES:
            lake.replace(name, self._table(name))

    def _accounting(self, reached: Reached) -> Accounting:
        commits, groups = kinds_in(self._table("records"))
        told = self._table("quarantine").agg(fn.coalesce(fn.sum("records"), fn.lit(0)).alias("n")).collect()
        quarantined = int(told[0]["n"])
        return Accounting(
            read=reached.records,
            # As of a time the replay stops somewhere behind it, so its count of damage says nothing.
            damaged=reached.damaged if self._order.as_of is None else quarantined,
            records=self._made["records"].rows,
            quarantined=quarantined,
            offset_commits=self._made["offset_commits"].rows,
            offset_commits_in_records=commits,
            group_generations=self._made["group_generations"].rows,
            group_generations_in_records=groups,
        )

    def _write(self, name: str, make: Callable[[], DataFrame]) -> None:
        self._watcher.begin(name)
        started = time.perf_counter()
        self._save(name, make())
        self._done(name, time.perf_counter() - started)

    def _done(self, name: str, seconds: float) -> None:
        made = TableMade(_rows_in(self._staging.path(name)), round(seconds, 3))
        self._made[name] = made
        self._watcher.done(name, made.rows, made.seconds)

    def _save(self, name: str, rows: DataFrame) -> None:
        rows.write.parquet(self._staging.path(name))

    def _table(self, name: str) -> DataFrame:
        """A table that is made already."""
        return self._spark.read.schema(schema_of(name)).parquet(self._staging.path(name))


def timed(watcher: Watcher, what: str, work: Callable[[], T]) -> T:
    """A step that makes no table."""
    watcher.begin(what)
    started = time.perf_counter()
    result = work()
    watcher.done(what, None, time.perf_counter() - started)
    return result


def moment_of(order: Order, last_timestamp: int, ends: Ends | None, started: datetime) -> datetime:
    """The time for which the tables speak; a clock that ran ahead does not put it behind the present."""
    if order.as_of is not None:
        return _instant(order.as_of)
    if order.live is not None and ends is not None and ends.last_time is not None:
        return _instant(ends.last_time)
    heard = max(last_timestamp, (ends and ends.last_time) or last_timestamp)
    return min(_instant(heard), started) if heard >= 0 else started


def ends_of(order: Order, last_timestamp: int, current_offsets: DataFrame) -> Ends | None:
    """Where the data topics end, as their segments tell or a live cluster."""
    if order.live is None:
        return find_ends(order.source, order.topic, last_timestamp)
    return find_live_ends(order.live, order.topic, committed_offsets(current_offsets))


def told_by(order: Order, ends: Ends | None) -> str:
    """Where ends are from, for the manifest."""
    return "furthest_group" if ends is None else "data_segments" if order.live is None else "live_cluster"


def versions() -> dict[str, str]:
    """What made a run."""
    return {"kohort": version("kohort"), "spark": pyspark.__version__, "python": platform.python_version()}


def _instant(milliseconds: int) -> datetime:
    """A time as Spark can hold it; what lies outside of the calendar is its end."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=min(max(milliseconds, FIRST_MS), LAST_MS))


def _rows_in(directory: str) -> int:
    """The rows of a table, from the footers of its files."""
    return sum(pq.read_metadata(path).num_rows for path in Path(directory).glob("*.parquet"))
