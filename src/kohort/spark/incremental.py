"""`--incremental`: a run that reads what has come since the run before, and merges it into its Delta or Iceberg tables.

The first such run makes everything, and keeps the state of the replay and how far it read. From then on a run reads the
log from there. The rows of the log's tables are added, commits whose transaction has ended get their fate, the current
tables are merged by key, and what is derived from the whole history is made anew from the tables themselves.

A run is done when `kohort.json` is replaced, which names the state that goes with the tables. One that dies before that
is undone by the next (`publishing`), which then starts from the same state.
"""

import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.errors import KohortError
from kohort.spark import publishing
from kohort.spark.accounting import Accounting, kinds_in
from kohort.spark.choices import PARQUET
from kohort.spark.compat import parallelism
from kohort.spark.data_segments import Ends
from kohort.spark.derived import DERIVED, Derivation
from kohort.spark.failures import idle_after_failures, one_line_failures
from kohort.spark.formats import check_format
from kohort.spark.increments import PIECES, Increment
from kohort.spark.lake import Lake
from kohort.spark.manifest import Manifest, TableMade, read_manifest
from kohort.spark.marks import Marks, followed, offsets_of
from kohort.spark.open_commits import FILE, TABLE, typed, write_commits
from kohort.spark.order import Order
from kohort.spark.pipeline import (
    TABLES,
    Watcher,
    ends_of,
    moment_of,
    run,
    settings_for_tables,
    timed,
    told_by,
    versions,
)
from kohort.spark.refreshing import records_in_state, rows_in
from kohort.spark.replaying import TABLES as REPLAYED
from kohort.spark.saved_state import load_state
from kohort.spark.schema import LOG_TABLES, schema_of
from kohort.spark.staging import Staging
from kohort.spark.tables.walk import walk

DIRECTORY = ".incremental"
_NEW, _MARKS = "new", "marks.json"
_DECIDED, _WALK = "decided", "walk"

KEYS = {
    "current_groups": ("group", "partition"),
    "current_offsets": ("group", "topic", "topic_partition", "partition"),
    "pending_offsets": ("group", "topic", "topic_partition", "partition", "producer_id"),
}
"""What tells the rows of a current table apart."""

_PLACE = ("partition", "offset")
_DAMAGE = ("path", "position")


class CannotIncrement(KohortError):
    """What was asked for cannot be made bit by bit."""


def run_incrementally(spark: SparkSession, order: Order, watcher: Watcher) -> Manifest:
    """Bring the tables of the run before up to now; if there is none that this could go on from, make all."""
    if order.as_of is not None:
        raise CannotIncrement("tables as of a time do not grow: give --as-of or --incremental, not both")
    if order.format == PARQUET:
        raise CannotIncrement(
            "only tables of format delta or iceberg can be merged into; --follow keeps Parquet current"
        )
    order.check()
    check_format(spark, order.format)
    before = _run_before(order)
    if before is None:
        return _begin(spark, order, watcher)
    with one_line_failures(), settings_for_tables(spark), Staging(order.out) as staging, idle_after_failures(spark):
        return _Incremental(spark, order, watcher, staging, before).all()


def _run_before(order: Order) -> Manifest | None:
    """The run whose tables can be gone on from: it was asked for the same, and has left its state."""
    try:
        found = read_manifest(order.out)
    except KohortError:
        return None
    is_same = (found.source, found.topic, found.format, found.rule, found.mode, found.as_of) == (
        (order.source, order.topic, order.format, order.rule, order.mode, None)
    )
    return found if is_same and _state_of(order, found).exists() else None


def _state_of(order: Order, manifest: Manifest) -> Path:
    return order.out / DIRECTORY / manifest.started_at.replace(":", "")


def _new_state(order: Order) -> Path:
    new = order.out / DIRECTORY / _NEW
    if new.exists():
        shutil.rmtree(new)
    new.mkdir(parents=True)
    return new


def _begin(spark: SparkSession, order: Order, watcher: Watcher) -> Manifest:
    """A run of everything, and what the next one needs of it."""
    new = _new_state(order)
    manifest = run(spark, order, watcher, keep_state=new / PIECES)
    with one_line_failures():
        commits = Lake(spark, order.format, order.out).read(TABLE)
        write_commits(typed(commits.where(fn.col("fate") == "open").toArrow()), new / FILE)
        ended = load_state(spark, str(new / PIECES)).next_offsets
    marks = {str(partition): {"offset": offset} for partition, offset in ended.items()}
    (new / _MARKS).write_text(json.dumps(marks))
    os.rename(new, _state_of(order, manifest))
    _forget_states(order, manifest)
    return manifest


def _forget_states(order: Order, but: Manifest) -> None:
    for state in (order.out / DIRECTORY).iterdir():
        if state != _state_of(order, but):
            shutil.rmtree(state)


class _Incremental:
    """One run that goes on from another."""

    def __init__(self, spark: SparkSession, order: Order, watcher: Watcher, staging: Staging, before: Manifest) -> None:
        self._spark, self._order, self._watcher, self._staging, self._before = spark, order, watcher, staging, before
        self._lake = Lake(spark, order.format, order.out)
        self._state, self._new = _state_of(order, before), _new_state(order)
        self._started = datetime.now(UTC)
        self._made: dict[str, TableMade] = {}

    def all(self) -> Manifest:
        order, started = self._order, time.perf_counter()
        publishing.put_back(self._lake, order.out)
        decided = timed(self._watcher, "increment", self._take)
        accounting = self._accounting()
        publishing.begin(self._lake, order.out)
        for name in LOG_TABLES:
            self._write(name, self._append)
        timed(self._watcher, "fates", lambda: self._decide(decided))
        last_timestamp = load_state(self._spark, str(self._new / PIECES)).last_timestamp
        ends = ends_of(order, last_timestamp, self._staged("current_offsets"))
        at = moment_of(order, last_timestamp, ends, self._started)
        self._derive(ends, at)
        for name in REPLAYED:
            self._write(name, lambda name: self._lake.merge(name, self._staged(name), KEYS[name]))
        for name in DERIVED:
            self._write(name, lambda name: self._lake.replace(name, self._staged(name)))
        manifest = dataclasses.replace(
            self._before,
            retention_minutes=order.retention_minutes,
            started_at=self._started.isoformat(),
            seconds=round(time.perf_counter() - started, 3),
            at=at.isoformat(),
            ends=told_by(order, ends),
            accounting={name: count + self._before.accounting[name] for name, count in accounting.as_dict().items()},
            versions=versions(),
            tables={name: self._made[name] for name in TABLES},
        )
        os.rename(self._new, _state_of(order, manifest))
        manifest.write(order.out)
        publishing.end(order.out)
        _forget_states(order, manifest)
        return manifest

    def _take(self) -> bool:
        """What has come, into the staging directory; whether transactions of before have ended."""
        order = self._order
        start: Marks = json.loads((self._state / _MARKS).read_text())
        log = followed(order.live, (order.source,), order.topic)
        try:
            end = log.last(start, None)
        finally:
            log.close()
        (self._new / _MARKS).write_text(json.dumps(end))
        if offsets_of(end) == offsets_of(start):
            return self._take_nothing()
        source = {"paths": json.dumps([order.source]), "topic": order.topic, "mode": order.mode, **order.kafka}
        pieces = 2 * parallelism(self._spark)
        increment = Increment(source, start, end, order.rule, self._state, self._new, pieces)
        taken = increment.take(self._spark, self._staging)
        write_commits(taken.opened, self._staging.new / TABLE / FILE)
        write_commits(taken.decided, Path(self._staging.path(_DECIDED)))
        return len(taken.decided) > 0

    def _take_nothing(self) -> bool:
        """The log is as it was, and so are its tables; what is derived may be later."""
        for name in (PIECES, FILE):
            copy = shutil.copytree if (self._state / name).is_dir() else shutil.copyfile
            copy(self._state / name, self._new / name)
        for name in LOG_TABLES:
            self._spark.createDataFrame([], schema_of(name)).write.parquet(self._staging.path(name))
        for name in REPLAYED:
            self._lake.read(name).write.parquet(self._staging.path(name))
        return False

    def _accounting(self) -> Accounting:
        """The records that have come, counted by the replay and in the tables.

        Damage without an offset may be met again where it was told of before, so it is counted as it is told.
        """
        rows = {name: rows_in(self._staging.new / name) for name in LOG_TABLES}
        commits, groups = kinds_in(self._staged("records"))
        told = self._new_damage().agg(fn.coalesce(fn.sum("records"), fn.lit(0)).alias("n")).collect()[0]["n"]
        accounting = Accounting(
            read=records_in_state(self._new / PIECES) - records_in_state(self._state / PIECES),
            damaged=int(told),
            records=rows["records"],
            quarantined=int(told),
            offset_commits=rows["offset_commits"],
            offset_commits_in_records=commits,
            group_generations=rows["group_generations"],
            group_generations_in_records=groups,
        )
        accounting.check()
        return accounting

    def _new_damage(self) -> DataFrame:
        there = self._lake.read("quarantine").select(*_DAMAGE)
        return self._staged("quarantine").join(there, list(_DAMAGE), "left_anti").select(schema_of("quarantine").names)

    def _append(self, name: str) -> None:
        rows = self._new_damage() if name == "quarantine" else self._staged(name)
        if rows_in(self._staging.new / name):
            self._lake.append(name, rows)

    def _decide(self, is_any: bool) -> None:
        if is_any:
            decided = self._spark.read.schema(schema_of(TABLE)).parquet(self._staging.path(_DECIDED))
            self._lake.update(TABLE, decided, _PLACE)

    def _derive(self, ends: Ends | None, at: datetime) -> None:
        end_offsets = None if ends is None else self._spark.createDataFrame(ends.end_offsets)
        topic_times = None if ends is None else self._spark.createDataFrame(ends.topic_times)
        count = self._made[TABLE].rows
        walked = walk(self._table(TABLE), end_offsets, topic_times, as_of=at, commit_count=count)
        timed(self._watcher, _WALK, lambda: walked.write.parquet(self._staging.path(_WALK)))
        walked = self._spark.read.parquet(self._staging.path(_WALK))
        retention = self._order.retention_minutes
        derivation = Derivation(self._table, walked, at, retention, end_offsets, topic_times)
        for name in DERIVED:
            derivation.make(name).write.parquet(self._staging.path(name))

    def _table(self, name: str) -> DataFrame:
        """A table as it will be: of the log's the whole history, which is in the format by then."""
        return self._lake.read(name) if name in LOG_TABLES else self._staged(name)

    def _staged(self, name: str) -> DataFrame:
        return self._spark.read.schema(schema_of(name)).parquet(self._staging.path(name))

    def _write(self, name: str, write: Callable[[str], None]) -> None:
        self._watcher.begin(name)
        started = time.perf_counter()
        write(name)
        self._made[name] = TableMade(self._lake.read(name).count(), round(time.perf_counter() - started, 3))
        self._watcher.done(name, self._made[name].rows, self._made[name].seconds)
