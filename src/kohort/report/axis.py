"""Time in steps: what all plots over time have in common."""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as fn

from kohort.report.limits import BINS, CELLS, FEWEST_BINS
from kohort.report.run import Run

BEFORE = -1
"""The step of everything that was before the axis begins."""

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_STEPS = (
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)
_EARLY = 0.005
"""Part of the records that may lie before the axis: old ones that compaction has left would make it long and empty."""


@dataclass(frozen=True, slots=True)
class Axis:
    """`bins` steps of `step` milliseconds, from `start` on."""

    start: int
    step: int
    bins: int

    def bin_of(self, time: Column | str) -> Column:
        """The step of an instant; NULL if it has none. What is later than the end is in the last one."""
        millis = fn.unix_millis(fn.col(time) if isinstance(time, str) else time)
        number = fn.floor((millis - fn.lit(self.start)) / fn.lit(self.step))
        inside = fn.greatest(fn.least(number, fn.lit(self.bins - 1)), fn.lit(BEFORE)).cast("int")
        return fn.when(millis.isNotNull(), inside).otherwise(fn.lit(None))

    def as_dict(self) -> dict[str, int]:
        return {"start": self.start, "step": self.step, "bins": self.bins}


def find_axis(run: Run, groups: int, start: int | None = None) -> Axis:
    """The time that the tables cover, or from a time on, in a number of steps that fits the number of groups."""
    end = run.manifest.at_millis
    times = run.table("offset_commits").select("timestamp")
    times = times.unionByName(run.table("group_generations").select("timestamp"))
    millis = times.select(fn.unix_millis("timestamp").alias("millis")).where(fn.col("millis") <= end)
    if start is None:
        found = millis.agg(fn.percentile_approx("millis", fn.array(fn.lit(_EARLY), fn.lit(1.0)), 10_000)).collect()
        start = int(found[0][0][0]) if found[0][0] else end
        if found[0][0] and end - found[0][0][1] > 4 * max(found[0][0][1] - start, _MINUTE):
            end = found[0][0][1]  # the tables speak of a time long after the last that they know
    return fit(start, end, min(BINS, max(FEWEST_BINS, CELLS // max(groups, 1))))


def fit(start: int, end: int, most: int) -> Axis:
    """The shortest step with which a span of time needs no more than so many."""
    for step in _STEPS:
        first = start // step * step
        if (end - first) // step + 1 <= most:
            return Axis(first, step, max((end - first) // step + 1, 1))
    step = -(-(end - start) // most) + 1
    return Axis(start, step, most)
