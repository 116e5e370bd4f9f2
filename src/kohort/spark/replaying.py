"""The replay on Spark: each task folds its stretches of log, a second small stage merges what belongs together.

The result is that of the serial load, however the log was cut. No task needs more memory than a few pieces take, and a
piece has the size of the state, not of the log: where there are many, they are merged in rounds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from kohort.clock import parse_moment
from kohort.errors import KohortError
from kohort.spark.choices import PERMISSIVE, POSITION
from kohort.spark.compat import parallelism
from kohort.spark.inputs import OFFSETS_TOPIC, SHARE_BYTES, SMALLEST_SHARE, Log, find_logs
from kohort.spark.live import live_logs
from kohort.spark.options import live_address
from kohort.spark.saved_state import SavedState, load_state, save_state
from kohort.spark.schema import as_table, schema_of

FAN_IN = 16
"""How many pieces one task merges in one round."""

TABLES = ("current_groups", "current_offsets", "pending_offsets")

Moment = int | str | datetime
"""A time: milliseconds since 1970, ISO 8601 or a datetime, both UTC unless they name a zone."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a log says at its end, or at a time: one row of `merged` a partition of the offsets topic.

    Each table replays when it is asked for; whoever wants several takes `cached` first.
    """

    merged: DataFrame
    rule: str

    @property
    def groups(self) -> DataFrame:
        return self.table("current_groups")

    @property
    def offsets(self) -> DataFrame:
        return self.table("current_offsets")

    @property
    def pending(self) -> DataFrame:
        return self.table("pending_offsets")

    def table(self, name: str) -> DataFrame:
        """One of `TABLES`."""
        if name not in TABLES:
            raise KohortError(f"no table {name!r} of a replay: there are {', '.join(TABLES)}")
        return as_table(self.merged.mapInArrow(_Finish(name), schema_of(name)), name)

    def cached(self) -> "Replay":
        """The same replay, done once for all that is asked of it, until `unpersist`."""
        return Replay(self.merged.cache(), self.rule)

    def unpersist(self) -> None:
        self.merged.unpersist()

    def save(self, path: str) -> None:
        """Keep the state for a later replay that starts from there; not over the one that this replay started from."""
        save_state(self.merged, self.rule, path)


def replay(
    spark: SparkSession,
    paths: str | Sequence[str],
    *,
    as_of: Moment | None = None,
    rule: str = POSITION,
    topic: str = OFFSETS_TOPIC,
    mode: str = PERMISSIVE,
    since: str | None = None,
    partitions: int | None = None,
    kafka: Mapping[str, str] | None = None,
) -> Replay:
    """Groups and offsets as a coordinator would hold them after loading the log; as of a time, up to there.

    With `since`, a state that was saved earlier: only what stands behind it is read, and of a log that overlaps with it
    the rest. `partitions` is the number of tasks that fold. A cluster is a path too, kafka://HOST:PORT; `kafka` has the
    options that it takes to get in.
    """
    given = [paths] if isinstance(paths, str) else list(paths)
    saved = None if since is None else load_state(spark, since)
    live = live_address({"paths": json.dumps(given), **{name.lower(): value for name, value in (kafka or {}).items()}})
    logs = find_logs(given, topic) if live is None else live_logs(live, topic, saved.next_offsets if saved else None)
    ends = None if as_of is None else milliseconds(as_of)
    if saved is not None:
        saved.check(logs, rule, ends)
    shares = partitions or _shares(spark, logs)
    reader = spark.read.format("kohort").options(
        table="folded", topic=topic, mode=mode, rule=rule, partitions=str(shares), paths=json.dumps(given)
    )
    reader = reader.options(**(kafka or {}))
    if ends is not None:
        reader = reader.option("asOf", f"{ends:012d}")  # with fewer digits it would be refused
    if saved is not None:
        reader = reader.option("since", json.dumps(saved.next_offsets))
    return Replay(merge_pieces(reader.load(), shares, saved), rule)


def milliseconds(time: Moment) -> int:
    """A time in milliseconds since 1970."""
    if isinstance(time, datetime):
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(time, int):
        return time
    try:
        return parse_moment(time)
    except ValueError as error:
        raise KohortError(str(error)) from None


def _shares(spark: SparkSession, logs: Iterable[Log]) -> int:
    total = sum(segment.size for log in logs for segment in log.segments)
    per_core = -(-total // (2 * parallelism(spark)))
    return max(1, -(-total // max(SMALLEST_SHARE, min(SHARE_BYTES, per_core))))


def merge_pieces(folded: DataFrame, pieces: int, saved: SavedState | None) -> DataFrame:
    """One piece for each log. Each round merges neighbours, so that what ended early still ends what follows it."""
    if saved is not None:
        pieces += 1
        folded = saved.pieces.unionByName(folded.withColumn("place", folded["place"] + 1))
    while pieces > 1:
        merged = folded.groupBy("partition", _log(folded), _round(folded)).applyInArrow(_merge, schema_of("folded"))
        folded, pieces = merged, -(-pieces // FAN_IN)
    return folded


def _log(folded: DataFrame) -> Column:
    """Which log a piece belongs to, beside its partition: that is enough where it is known."""
    return fn.when(folded["partition"] >= 0, 0).otherwise(folded["log"])


def _round(folded: DataFrame) -> Column:
    return fn.floor(folded["place"] / FAN_IN)


def _merge(pieces: pa.Table) -> pa.Table:
    from kohort.spark.folding import from_table, merge, to_table

    merged = merge(from_table(pieces))
    return to_table([merged._replace(place=merged.place // FAN_IN)])


@dataclass(frozen=True, slots=True)
class _Finish:
    """Turns merged pieces into rows of a table, log by log."""

    table: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kohort.spark.finishing import finished
        from kohort.spark.folding import from_table

        for batch in batches:
            for log in from_table(pa.Table.from_batches([batch])):
                yield from finished(self.table, [log]).to_batches()
