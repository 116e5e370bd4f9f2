"""The pipeline at scale: what it costs by byte, key and segment, measured here, and what a terabyte would take.

Logs of several shapes go through one process and through Spark's stages. Costs are fitted to all of them but a few,
which are held back: how well those are foretold is printed before any forecast. `bench/outlook.py` goes on from there.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.cost_model import ONCE, Costs, error_percent, fit
from bench.logs import BLOCK_RECORDS, GROUPS, SEGMENT_BYTES, write_log
from bench.machine import busy_s
from bench.outlook import (
    CLOCK,
    CORES,
    LEFT,
    ONE_PROCESS,
    PEAK,
    PIPELINE,
    PROCESSOR,
    REPLAYED,
    SHUFFLED,
    STAGES,
    WRITTEN,
    Merging,
    Quantity,
    outlook,
)
from bench.processes import watched
from bench.rows import Row, bounded, progress, told
from kohort.spark import offsets
from kohort.spark.order import Order
from kohort.spark.pipeline import run
from kohort.spark.session import get_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a log is like; a block has 300,000 records and 24 MiB.

    What is fast needs larger logs than the pipeline, which would take too long with those.
    """

    blocks: int
    partitions: int = 1
    groups: int = GROUPS
    segment_bytes: int = SEGMENT_BYTES
    with_pipeline: bool = True


QUANTITIES = tuple((stage, what) for stage in STAGES for what in (CLOCK, PROCESSOR, SHUFFLED, LEFT, PEAK))

MOST_ERROR = 30
"""Percent of processor time by which a forecast of what was held back may be off."""

_MIB = 1 << 20
FITTED = (
    Shape(blocks=2),
    Shape(blocks=12),
    Shape(blocks=4, groups=16_000),
    Shape(blocks=8, groups=8_000),
    Shape(blocks=6, segment_bytes=_MIB // 2),
    Shape(blocks=8, partitions=4, groups=500, segment_bytes=4 * _MIB),
    Shape(blocks=48, with_pipeline=False),
    Shape(blocks=40, groups=16_000, with_pipeline=False),
    Shape(blocks=32, segment_bytes=_MIB, with_pipeline=False),
)
HELD_BACK = (
    Shape(blocks=10, groups=5_000, segment_bytes=10 * _MIB),
    Shape(blocks=20, partitions=4, groups=2_000),
    Shape(blocks=64, partitions=2, groups=4_000, with_pipeline=False),
)
QUICK_FITTED = (
    Shape(blocks=1),
    Shape(blocks=6),
    Shape(blocks=2, groups=8_000),
    Shape(blocks=2, segment_bytes=_MIB // 4),
    Shape(blocks=4, groups=4_000),
    Shape(blocks=32, with_pipeline=False),
    Shape(blocks=24, groups=8_000, with_pipeline=False),
)
QUICK_HELD_BACK = (Shape(blocks=5, partitions=2, groups=1_000), Shape(blocks=40, with_pipeline=False))

_SETTINGS = {"spark.driver.memory": "2g", "spark.ui.liveUpdate.period": "0"}
"""What Spark counts of itself is to be up to date."""

_WARM_UPS, _TURNS = 2, 2


@dataclass(slots=True)
class Measured:
    """A log and what each stage took of everything."""

    shape: Shape
    sizes: dict[str, float]
    taken: dict[Quantity, float] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)
    clock_s: float = 0.0
    others_s: float = 0.0
    """What everybody else used of the processor in that time."""


def measure(work: Path, quick: bool) -> list[Row]:
    """Measure, fit, foretell what was held back, and then what is far away."""
    work.mkdir(parents=True)
    began = time.perf_counter()
    fitted, held = (QUICK_FITTED, QUICK_HELD_BACK) if quick else (FITTED, HELD_BACK)
    spark = get_spark(f"local[{CORES}]", name="kohort-bench", settings=_SETTINGS)
    try:
        for _ in range(_WARM_UPS):  # Java and numba compile
            _measured(spark, work, Shape(blocks=1))
        of_fitted = [_measured(spark, work, shape) for shape in fitted]
        of_held = [_measured(spark, work, shape) for shape in held]
    finally:
        spark.stop()
    merging = _merging(work)
    costs = {
        what: fit([(m.sizes, m.taken[what]) for m in of_fitted if what in m.taken])
        for what in QUANTITIES
        if all(m.taken.get(what, 1) for m in of_fitted) and any(what in m.taken for m in of_fitted)
    }
    everything = (*of_fitted, *of_held)
    others = sum(m.others_s for m in everything) / sum(m.clock_s for m in everything)
    took = time.perf_counter() - began
    return [
        told("measured for", f"{took:.0f} s; others used {others:.2f} of {os.cpu_count()} cores"),
        *(row for m in of_fitted for row in _shown("fitted", m)),
        *(row for m in of_held for row in _shown("held back", m)),
        *(row for what, cost in costs.items() for row in _costs(what, cost)),
        *(row for m in of_held for row in _foretold(m, costs)),
        *outlook(costs, merging, others),
    ]


def _measured(spark: SparkSession, work: Path, shape: Shape) -> Measured:
    log, made = work / "log", work / "made"
    progress(f"scale: {shape.blocks * BLOCK_RECORDS / 1e6:.1f} M records, {shape.groups} groups a partition")
    records = write_log(
        log,
        shape.blocks * BLOCK_RECORDS,
        partitions=shape.partitions,
        groups=shape.groups,
        segment_bytes=shape.segment_bytes,
    )
    segments = list(log.rglob("*.log"))
    source = str(log)
    found = Measured(shape, {"records": records, "bytes": _bytes_in(log), "segments": len(segments)})
    steps: dict[str, Callable[[], object]] = {
        ONE_PROCESS: lambda: _state(found, log),
        WRITTEN: lambda: _write(offsets.commits(spark, source), made / WRITTEN),
        REPLAYED: lambda: _write(offsets.replay(spark, source).offsets, made / REPLAYED),
    }
    if shape.with_pipeline:
        steps[PIPELINE] = lambda: run(spark, Order(source=source, out=made / PIPELINE), _Nobody())
    for stage, step in steps.items():
        turns = [_turn(spark, found, step) for _ in range(1 if stage == PIPELINE else _TURNS)]
        for number, what in enumerate((CLOCK, PROCESSOR, SHUFFLED)):
            found.taken[stage, what] = min(turn[number] for turn in turns)
        found.taken[stage, LEFT] = _bytes_in(made / stage)
    found.sizes["keys"] = spark.read.parquet(str(made / REPLAYED)).count()
    shutil.rmtree(work)
    work.mkdir()
    return found


def _turn(spark: SparkSession, found: Measured, step: Callable[[], object]) -> tuple[float, float, float]:
    """Seconds by the clock and of the processor, and bytes shuffled."""
    shuffled, busy = _shuffled(spark), busy_s()
    with watched() as taken:
        started = time.perf_counter()
        step()
        seconds = time.perf_counter() - started
    found.clock_s += seconds
    found.others_s += max(0.0, busy_s() - busy - taken.processor_s)
    for kind, size in taken.peak_mib.items():
        found.peak_mib[kind] = max(size, found.peak_mib.get(kind, 0.0))
    return seconds, taken.processor_s, float(_shuffled(spark) - shuffled)


def _state(found: Measured, log: Path) -> None:
    """The state of the log without Spark, on one core."""
    process = subprocess.Popen([sys.executable, "-m", "bench.worker", "columns", str(log), "1"], stdout=subprocess.PIPE)
    told_by_it, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the replay in one process ended with status {process.returncode}")
    found.taken[ONE_PROCESS, PEAK] = json.loads(told_by_it)["max_rss_mib"] * _MIB


def _merging(work: Path) -> Merging:
    """What the largest merge takes for each key: two states of very different size, each in a process of its own."""
    found = []
    for groups in (GROUPS, 8 * GROUPS):
        progress(f"scale: merging, {groups} groups")
        log = work / f"of-{groups}"
        write_log(log, 16 * BLOCK_RECORDS, groups=groups)
        command = [sys.executable, "-m", "bench.worker", "merging", str(log), "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
        shutil.rmtree(log)
    few, many = found
    per_key = (many["max_rss_mib"] - few["max_rss_mib"]) / (many["keys"] - few["keys"])
    return Merging(
        once_mib=few["max_rss_mib"] - few["keys"] * per_key,
        mib_per_key=per_key,
        bytes_per_entry=many["bytes"] / many["entries"],
        seconds_per_entry=many["seconds"] / many["entries"],
    )


def _shown(role: str, measured: Measured) -> Iterator[Row]:
    """A log that was measured, and what was."""
    sizes, shape = measured.sizes, measured.shape
    counts = f"{sizes['keys']:,.0f} keys, {sizes['segments']:.0f} segments, {shape.partitions} partitions"
    yield told(f"{role}: {sizes['bytes'] / _MIB:.0f} MiB, {sizes['records'] / 1e6:.1f} M records", counts)
    for stage in (stage for stage in STAGES if (stage, CLOCK) in measured.taken):
        clock, processor = measured.taken[stage, CLOCK], measured.taken[stage, PROCESSOR]
        yield told(f"... {stage}", f"{clock:.1f} s; processor {processor:.1f} s")
    yield told("... memory", ", ".join(f"{kind} {size:.0f} MiB" for kind, size in measured.peak_mib.items()))


def _costs(what: Quantity, costs: Costs) -> Iterator[Row]:
    """What was fitted, in numbers that can be read."""
    each = costs.each
    unit = "s" if what[1] in (CLOCK, PROCESSOR) else "B"
    yield told(
        f"fitted: {what[0]}, {what[1]}",
        f"{each[ONCE]:.3g} {unit} + {each['bytes'] * 1e9:.3g} {unit} a GB + {each['keys'] * 1e6:.3g} {unit} a M keys "
        f"+ {each['segments'] * 1e3:.3g} {unit} a 1,000 segments",
    )


def _foretold(measured: Measured, costs: Mapping[Quantity, Costs]) -> Iterator[Row]:
    """What the fit says of a log that it has not seen, beside what was measured."""
    for what, cost in costs.items():
        if what not in measured.taken:
            continue
        predicted, found = cost.of(measured.sizes), measured.taken[what]
        error = error_percent(predicted, found)
        line = f"held back, {measured.sizes['bytes'] / _MIB:.0f} MiB: {what[0]}, {what[1]}"
        figure = f"{error:+.1f} %: {predicted:.4g} foretold, {found:.4g} measured"
        if what[1] == PROCESSOR:
            yield bounded(line, abs(error), MOST_ERROR, at_most=True) | {"figure": figure}
        else:
            yield told(line, figure)


def _shuffled(spark: SparkSession) -> int:
    """The bytes that tasks have left for other tasks since the session began."""
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(False)
    return sum(int(executors.apply(number).totalShuffleWrite()) for number in range(executors.size()))


def _bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _write(frame: DataFrame, path: Path) -> None:
    frame.write.mode("overwrite").parquet(str(path))


class _Nobody:
    """Nobody waits for a run."""

    def begin(self, what: str) -> None: ...

    def done(self, what: str, rows: int | None, seconds: float) -> None: ...
