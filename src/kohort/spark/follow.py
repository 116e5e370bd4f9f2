"""`--follow`: the tables of a run are kept current by a structured stream.

A run makes all tables first. From where it ended, a stream says which stretch of the log has come, batch by batch, and
only that is read: its rows are added to the tables of the log, and what it does to the groups and offsets is merged
into the saved state of the replay. The tables that are derived from the whole history are made anew from time to time.

Everything that a batch leaves is named after it, and made from the state of the batch before. So a batch that is done
again, because this process died in the middle of it, leaves the same.
"""

import contextlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kohort.errors import KohortError
from kohort.spark.accounting import AccountsDiffer
from kohort.spark.choices import PARQUET
from kohort.spark.derived import DERIVED
from kohort.spark.failures import one_line_failures
from kohort.spark.increments import PIECES, Increment
from kohort.spark.manifest import Manifest, read_manifest
from kohort.spark.open_commits import FILE, TABLE, take_open, write_commits
from kohort.spark.order import Order
from kohort.spark.pipeline import Watcher, run, settings_for_tables
from kohort.spark.refreshing import Refreshed, records_in_state, rows_in, tell_rows
from kohort.spark.replaying import TABLES as REPLAYED
from kohort.spark.saved_state import load_state
from kohort.spark.schema import LOG_TABLES
from kohort.spark.staging import Staging

DIRECTORY = ".follow"
_ABOUT, _START = "about.json", "start.json"
_TRIGGER = "500 milliseconds"
_LOOK_EVERY_S = 0.2


class CannotFollow(KohortError):
    """What was asked for cannot be kept current."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch has brought."""

    number: int
    records: int
    seconds: float


OnBatch = Callable[[Batch], None]


def follow(
    spark: SparkSession,
    order: Order,
    watcher: Watcher,
    on_batch: OnBatch,
    *,
    refresh_s: float,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Make all tables, and keep them current until it is over, or Ctrl-C. A batch that is under way is finished."""
    if order.as_of is not None:
        raise CannotFollow("tables as of a time do not change: give --as-of or --follow, not both")
    if order.format != PARQUET:
        raise CannotFollow(f"only tables of format {PARQUET} can be followed, not {order.format}")
    order.check()
    with one_line_failures(), settings_for_tables(spark):
        following = _Following(spark, order, on_batch)
        if not following.goes_on():
            following.begin(watcher)
        with _heard_ctrl_c() as over:
            following.run(refresh_s, lambda: over.is_set() or is_over())


@contextlib.contextmanager
def _heard_ctrl_c() -> Iterator[threading.Event]:
    """Ctrl-C is noted in the block, not raised: Spark would cancel what is under way. Only the main thread hears it."""
    over = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield over
        return
    before = signal.signal(signal.SIGINT, lambda *_: over.set())
    try:
        yield over
    finally:
        signal.signal(signal.SIGINT, before)


class _Following:
    def __init__(self, spark: SparkSession, order: Order, on_batch: OnBatch) -> None:
        self._spark, self._order, self._on_batch = spark, order, on_batch
        self._out, self._home = order.out, order.out / DIRECTORY
        self._busy = threading.Lock()
        self._failure: BaseException | None = None
        self._is_stale = True

    def goes_on(self) -> bool:
        """Whether the tables that are there are of a run that was followed, and asked for the same."""
        try:
            about = json.loads((self._home / _ABOUT).read_text())
            manifest = read_manifest(self._out)
        except (FileNotFoundError, KohortError):
            return False
        return bool(about == _about(self._order, manifest))

    def begin(self, watcher: Watcher) -> None:
        """A run, and what the first batch needs of it."""
        if self._home.exists():
            shutil.rmtree(self._home)
        first = self._state(-1)
        first.mkdir(parents=True)
        manifest = run(self._spark, self._order, watcher, keep_state=first / PIECES)
        rows = take_open((self._out / TABLE).glob("*.parquet"))
        write_commits(rows, first / FILE)
        self._put(first / FILE, self._out / TABLE / FILE)
        ended = load_state(self._spark, str(first / PIECES)).next_offsets
        marks = {str(partition): {"offset": offset} for partition, offset in ended.items()}
        (self._home / _START).write_text(json.dumps(marks))
        (self._home / _ABOUT).write_text(json.dumps(_about(self._order, manifest)))
        self._is_stale = False

    def run(self, refresh_s: float, is_over: Callable[[], bool]) -> None:
        stream = self._spark.readStream.format("kohort").options(**self._source(), table="marks")
        begin = (self._home / _START).read_text()
        writer = stream.option("startingOffsets", begin).load().writeStream.foreachBatch(self._batch)
        query = (
            writer.option("checkpointLocation", str(self._home / "checkpoint")).trigger(processingTime=_TRIGGER).start()
        )
        refreshed = time.monotonic()
        try:
            while not is_over() and not query.awaitTermination(_LOOK_EVERY_S):  # type: ignore[arg-type]  # seconds
                if self._is_stale and time.monotonic() - refreshed > refresh_s:
                    self._refresh()
                    refreshed = time.monotonic()
        finally:
            with self._busy:
                query.stop()
        if self._failure is not None:
            raise self._failure

    def _batch(self, rows: DataFrame, number: int) -> None:
        began = time.perf_counter()
        with self._busy:
            try:
                told = rows.collect()
                if told:
                    records = self._take(json.loads(told[0]["start"]), json.loads(told[0]["end"]), number)
                    self._is_stale = True
            except KohortError as failure:
                self._failure = failure
                raise
        if told:
            self._on_batch(Batch(number, records, time.perf_counter() - began))

    def _take(self, start: Mapping[str, Any], end: Mapping[str, Any], number: int) -> int:
        """One batch, from the log into the tables. Returns how many records it had."""
        before, state = self._last_state(number), self._state(number)
        if state.exists():
            shutil.rmtree(state)
        state.mkdir()
        increment = Increment(self._source(), start, end, self._order.rule, before, state)
        with Staging(self._out) as staging:
            taken = increment.take(self._spark, staging)
            if len(taken.decided):
                write_commits(taken.decided, staging.new / TABLE / "decided.parquet")
            return self._publish(staging, number, state)

    def _publish(self, staging: Staging, number: int, state: Path) -> int:
        """Put the new files into their places, each in one step. Returns how many records have come."""
        records = rows_in(staging.new / "records")
        for table in LOG_TABLES:
            for old in (self._out / table).glob(f"part-{number:08d}-*"):  # of the same batch, before it was done again
                old.unlink()
            files = [file for file in sorted((staging.new / table).glob("*.parquet")) if rows_in(file)]
            for place, file in enumerate(files):
                os.rename(file, self._out / table / f"part-{number:08d}-{place}.snappy.parquet")
        self._put(state / FILE, self._out / TABLE / FILE)
        staging.publish(REPLAYED)
        rows = {table: rows_in(self._out / table) for table in (*LOG_TABLES, *REPLAYED)}
        tell_rows(self._out, rows, at=datetime.now(UTC).isoformat())
        read = records_in_state(state / PIECES)
        if read != rows["records"]:
            raise AccountsDiffer(f"{read} records were read, {rows['records']} are in records: is somebody else at it?")
        for old_state in self._home.glob("state-*"):
            if _number(old_state) < number - 1:
                shutil.rmtree(old_state)
        return records

    def _refresh(self) -> None:
        """Make the derived tables anew, from the tables as they are now, while batches go on."""
        self._is_stale = False
        home = self._home / "refresh"
        if home.exists():
            shutil.rmtree(home)
        with self._busy:
            for table in (*LOG_TABLES, *REPLAYED):
                (home / "tables" / table).mkdir(parents=True)
                for file in (self._out / table).glob("*.parquet"):
                    os.link(file, home / "tables" / table / file.name)
        made = Refreshed(self._spark, self._order, home)
        made.make()
        with self._busy, Staging(self._out) as staging:
            for table in DERIVED:
                os.rename(made.path(table), staging.path(table))
            staging.publish(DERIVED)
            rows = {table: rows_in(self._out / table) for table in DERIVED}
            tell_rows(self._out, rows, at=made.at.isoformat(), ends=made.ends)
        shutil.rmtree(home)

    def _source(self) -> dict[str, str]:
        order = self._order
        return {"paths": json.dumps([order.source]), "topic": order.topic, "mode": order.mode, **order.kafka}

    def _state(self, number: int) -> Path:
        return self._home / f"state-{number + 1}"

    def _last_state(self, number: int) -> Path:
        """The state before a batch; a batch that brought nothing has left none."""
        return max((path for path in self._home.glob("state-*") if _number(path) < number), key=_number)

    def _put(self, file: Path, place: Path) -> None:
        """A copy of a file that takes its place in one step."""
        partial = place.with_name(f".{place.name}")
        shutil.copyfile(file, partial)
        os.replace(partial, place)


def _number(state: Path) -> int:
    return int(state.name.partition("-")[2]) - 1


def _about(order: Order, manifest: Manifest) -> dict[str, str]:
    """What tables must be of to be followed on."""
    asked = (order.source, order.topic, order.rule, order.mode)
    return {"asked": "\n".join(asked), "retention": str(order.retention_minutes), "run": manifest.started_at}
