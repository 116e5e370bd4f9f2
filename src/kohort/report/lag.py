"""Lag over time, in messages and in seconds, at the end of each step.

The end of a topic partition at a time is the furthest that any group had committed by then, or what the tables know of
it, if that is more. Lag in time is for how long the next message of a group had been there: exact to a step.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.report.axis import Axis
from kohort.report.binned import OTHERS
from kohort.report.run import Run
from kohort.report.series import Line, lines

_SCHEMA = pa.schema([("g", pa.int32()), ("bin", pa.int32()), ("lag", pa.float64()), ("seconds", pa.float64()),
                     ("committed", pa.float64())])  # fmt: skip
_DDL = "g int, bin int, lag double, seconds double, committed double"
_NONE = -1.0

Ends = NDArray[np.float64]


def lag_over_time(run: Run, thinned: DataFrame, axis: Axis) -> dict[str, dict[int, Line]]:
    """`lag` in messages and `seconds`, and `committed`, the sum of the offsets of a group."""
    known = fn.col("source") != "furthest_group"
    ends = (
        run.whole("lag_status")
        .where(known)
        .select("topic", "topic_partition", axis.bin_of("at").alias("bin"), fn.col("end_offset").alias("end"))
    )
    now = (
        run.whole("lag")
        .where(known)
        .select("topic", "topic_partition", fn.lit(axis.bins - 1).alias("bin"), fn.col("end_offset").alias("end"))
    )
    # The last row of `lag_status` of an offset is told at its commit, that of `lag` at the end.
    samples = ends.unionByName(now).where("bin IS NOT NULL").groupBy("topic", "topic_partition", "bin")
    rows = thinned.unionByName(
        samples.agg(fn.max("end").alias("furthest")).withColumn("g", fn.lit(OTHERS)), allowMissingColumns=True
    )
    rows = rows.select("topic", "topic_partition", "g", "bin", "furthest", "last", "gone")
    each = rows.groupBy("topic", "topic_partition").applyInArrow(_walker(axis.bins, axis.step / 1000), _DDL)
    summed = each.groupBy("g", "bin").agg(
        fn.sum("lag").alias("lag"), fn.max("seconds").alias("seconds"), fn.sum("committed").alias("committed")
    )
    return lines(summed, axis, "lag", "seconds", "committed")


def _walker(bins: int, step_s: float) -> Callable[[pa.Table], pa.Table]:
    def walk(rows: pa.Table) -> pa.Table:
        return walk_partition(rows, bins, step_s)

    return walk


def walk_partition(rows: pa.Table, bins: int, step_s: float) -> pa.Table:
    """One topic partition: for every group and step from its first commit on, how far it was behind."""
    of, at = rows["g"].to_numpy(), rows["bin"].to_numpy() + 1  # what was before the axis is the first
    # Not every offset is exact as a float: one in the quintillions may be off by some hundreds, which no plot shows.
    furthest = rows["furthest"].cast(pa.float64(), safe=False).fill_null(_NONE).to_numpy()
    last = rows["last"].cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy().copy()
    last[rows["gone"].fill_null(False).to_numpy(zero_copy_only=False).astype(bool)] = _NONE
    ends = np.full(bins + 1, _NONE)
    np.maximum.at(ends, at, furthest)
    ends = np.maximum.accumulate(ends)
    pieces = [_of_group(int(g), at[of == g], last[of == g], ends, step_s) for g in np.unique(of) if g != OTHERS]
    return pa.concat_tables(pieces) if pieces else _SCHEMA.empty_table()


def _of_group(g: int, at: NDArray[np.int32], last: Ends, ends: Ends, step_s: float) -> pa.Table:
    line = np.full(len(ends), np.nan)
    line[at] = last
    known = np.where(np.isnan(line), 0, np.arange(len(line)))
    line = line[np.maximum.accumulate(known)]
    steps = np.flatnonzero(line[1:] >= 0) + 1  # neither before the first commit nor after a tombstone
    committed = line[steps]
    since = np.searchsorted(ends, committed, side="right")  # the first step that knew a message that is not read
    lag = np.maximum(ends[steps] - committed, 0)
    waited = np.where(lag > 0, np.maximum(steps - since, 0) * step_s, 0.0)
    columns = [np.full(len(steps), g, np.int32), (steps - 1).astype(np.int32), lag, waited, committed]
    return pa.table(columns, schema=_SCHEMA)
