"""The pipeline on Spark, beside what Spark itself needs to copy the table that comes out.

One session on two cores measures everything in turns, and the best of a few turns counts, for machines are noisy. Each
figure is told by the processor too: what all processes together used does not depend on who else is at work.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from bench import librdkafka
from bench.logs import write_log
from bench.processes import watched
from bench.rows import Row, bounded, progress, told
from kohort.spark import offsets
from kohort.spark.order import Order
from kohort.spark.pipeline import run
from kohort.spark.session import get_spark

COMMITS = 10_000_000
SIZES = (1_000_000, 10_000_000)
QUICK_SIZES = (1_000_000, 3_000_000)
HUGE = 100_000_000
TURNS = 3
_CONSUMED = 2_000_000

READ, WRITTEN, COPIED, REPLAYED, PIPELINE = "noop", "offset_commits", "copy", "current_offsets", "pipeline"


class Cost(NamedTuple):
    """What something took: seconds by the clock, and of the processor in all processes."""

    seconds: float
    processor: float


def measure(work: Path, quick: bool, huge: bool) -> list[Row]:
    """Every figure of the pipeline: `quick` measures on a fifth of the log, `huge` lets it grow to 100 million."""
    work.mkdir(parents=True)
    spark = get_spark("local[2]", name="kohort-bench", settings={"spark.driver.memory": "2g"})
    sizes = (*SIZES, HUGE) if huge else QUICK_SIZES if quick else SIZES
    try:
        return [*beside_a_copy(spark, work, quick), *growing(spark, work, sizes)]
    finally:
        spark.stop()


def beside_a_copy(spark: SparkSession, work: Path, quick: bool) -> list[Row]:
    log, served = work / "log", work / "served"
    records = write_log(log, COMMITS // 5 if quick else COMMITS)
    write_log(served, _CONSUMED)
    steps = _steps(spark, work, log)
    costs: dict[str, list[Cost]] = {step: [] for step in steps}
    consumed = []
    for turn in range(TURNS):
        for name, step in steps.items():
            progress(f"spark: {records / 1e6:.0f} M records, turn {turn + 1} of {TURNS}: {name}")
            costs[name].append(_cost(step))
        consumed.append(librdkafka.records_per_second(served))
    best = {name: Cost(min(c.seconds for c in found), min(c.processor for c in found)) for name, found in costs.items()}
    rows = spark.read.parquet(str(work / WRITTEN)).count()
    shutil.rmtree(work)
    work.mkdir()
    written, copied, replayed, whole = (best[name] for name in (WRITTEN, COPIED, REPLAYED, PIPELINE))
    return [
        told("offset_commits from raw segments, read only", _rate(rows, best[READ])),
        told("... to Parquet", _rate(rows, written)),
        told("that table copied by Spark, Parquet to Parquet", _rate(rows, copied)),
        bounded("... ours, time against it", written.seconds / copied.seconds, 1.3, at_most=True, digits=2),
        told("... the same by processor", f"{written.processor / copied.processor:.2f}"),
        told("librdkafka's Python consumer, the same records", f"{max(consumed) / 1e6:.2f} M records/s"),
        bounded("... rate of offset_commits to Parquet against it", rows / written.seconds / max(consumed), 2.5),
        told("current_offsets from raw segments to Parquet", _rate(records, replayed)),
        bounded("... rate against that of offset_commits", written.seconds / replayed.seconds, 3),
        told("... the same by processor", f"{written.processor / replayed.processor:.1f}"),
        told("the whole pipeline, all tables", _rate(records, whole)),
        _of_full_size(quick, "... time against that of offset_commits", whole.seconds / written.seconds),
        told("... the same by processor", f"{whole.processor / written.processor:.2f}"),
    ]


def _steps(spark: SparkSession, work: Path, log: Path) -> dict[str, Callable[[], object]]:
    """What is measured on a log, by name; tables go to directories of those names."""
    source, table = str(log), str(work / WRITTEN)
    return {
        READ: lambda: offsets.commits(spark, source).write.format("noop").mode("overwrite").save(),
        WRITTEN: lambda: _write(offsets.commits(spark, source), table),
        COPIED: lambda: _write(spark.read.parquet(table), str(work / COPIED)),
        REPLAYED: lambda: _write(offsets.replay(spark, source).offsets, str(work / REPLAYED)),
        PIPELINE: lambda: run(spark, Order(source=source, out=work / PIPELINE), _Nobody()),
    }


def growing(spark: SparkSession, work: Path, sizes: tuple[int, ...]) -> list[Row]:
    """Time per record and memory as logs grow."""
    found: list[Row] = []
    first: tuple[float, ...] | None = None
    names = (WRITTEN, REPLAYED, PIPELINE)
    for size in sizes:
        log = work / f"of-{size}"
        records = write_log(log, size)
        steps = _steps(spark, work, log)
        costs = []
        with watched() as taken:
            for name in names:
                progress(f"spark: {records / 1e6:.0f} M records: {name}")
                turns = 2 if size < HUGE else 1
                costs.append(min(_cost(steps[name]).seconds for _ in range(turns)) / records)
        shutil.rmtree(work)
        work.mkdir()
        peak = taken.peak_mib
        figures = (*costs, sum(peak.values()))
        first = first or figures
        each = ", ".join(f"{cost * 1e9:.0f}" for cost in costs)
        memory = ", ".join(f"{kind} {size:.0f}" for kind, size in peak.items())
        found.append(told(f"{records / 1e6:.0f} M records: {', '.join(names)}", f"{each} ns a record; MiB: {memory}"))
        if figures is not first:
            found += [
                bounded(f"... {name}, time against the smallest", cost / smallest, 1.2, at_most=True, digits=2)
                for name, cost, smallest in zip(names, costs, first, strict=False)
            ]
            found.append(
                bounded("... memory against the smallest", figures[-1] / first[-1], 1.5, at_most=True, digits=2)
            )
    return found


def _of_full_size(quick: bool, what: str, figure: float) -> Row:
    """On a small log most of a run is what Spark takes to plan and compile its queries, so nothing is asked of that."""
    if quick:
        return told(what, f"{figure:.2f} (at most 4 on the full log)")
    return bounded(what, figure, 4, at_most=True, digits=2)


class _Nobody:
    """Nobody waits for a run."""

    def begin(self, what: str) -> None: ...

    def done(self, what: str, rows: int | None, seconds: float) -> None: ...


def _rate(rows: int, cost: Cost) -> str:
    return f"{rows / cost.seconds / 1e6:.2f} M/s; processor {cost.processor:.1f} s"


def _write(frame: DataFrame, path: str) -> None:
    frame.write.mode("overwrite").parquet(path)


def _cost(step: Callable[[], object]) -> Cost:
    with watched() as taken:
        started = time.perf_counter()
        step()
        seconds = time.perf_counter() - started
    return Cost(seconds, taken.processor_s)
