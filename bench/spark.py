"""The pipeline on Spark, beside what Spark itself needs to copy the table that comes out.

One session on two cores measures everything in turns, and the best of a few turns counts, for machines are noisy.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.logs import write_log
from bench.rows import Row, bounded, progress, told
from kohort.spark import offsets
from kohort.spark.session import get_spark

COMMITS = 10_000_000
SIZES = (1_000_000, 10_000_000, 100_000_000)
TURNS = 4


def measure(work: Path, quick: bool) -> list[Row]:
    """Every figure of the pipeline; `quick` measures on a tenth of the log."""
    work.mkdir(parents=True)
    spark = get_spark("local[2]", name="kohort-bench", settings={"spark.driver.memory": "2g"})
    try:
        rows = beside_a_copy(spark, work, COMMITS // 10 if quick else COMMITS)
        return [*rows, *growing(spark, work, SIZES[:2] if quick else SIZES)]
    finally:
        spark.stop()


def beside_a_copy(spark: SparkSession, work: Path, commits: int) -> list[Row]:
    log, table = str(work / "log"), str(work / "offset_commits")
    records = write_log(Path(log), commits)
    best: dict[str, float] = {}
    for turn in range(TURNS):
        progress(f"spark: {records / 1e6:.0f} M records, turn {turn + 1} of {TURNS}")
        for what, step in (
            ("noop", lambda: offsets.commits(spark, log).write.format("noop").mode("overwrite").save()),
            ("parquet", lambda: _write(offsets.commits(spark, log), table)),
            ("copy", lambda: _write(spark.read.parquet(table), f"{table}-copied")),
            ("replay", lambda: _write(offsets.replay(spark, log).offsets, str(work / "current_offsets"))),
        ):
            best[what] = min(_seconds(step), best.get(what, float("inf")))
    rows = spark.read.parquet(table).count()
    shutil.rmtree(log)
    return [
        told("offset_commits from raw segments, read only", f"{rows / best['noop'] / 1e6:.2f} M rows/s"),
        told("... to Parquet", f"{rows / best['parquet'] / 1e6:.2f} M rows/s"),
        told("that table copied by Spark, Parquet to Parquet", f"{rows / best['copy'] / 1e6:.2f} M rows/s"),
        bounded("... ours, time against it", best["parquet"] / best["copy"], 1.3, at_most=True, digits=2),
        told("current_offsets from raw segments to Parquet", f"{records / best['replay'] / 1e6:.2f} M records/s"),
        bounded("... rate against that of offset_commits", best["parquet"] / best["replay"], 3),
    ]


def growing(spark: SparkSession, work: Path, sizes: tuple[int, ...]) -> list[Row]:
    """Time per record and memory as logs grow."""
    found: list[Row] = []
    first: tuple[float, float, float] | None = None
    table = str(work / "grown")
    for size in sizes:
        log = str(work / f"of-{size}")
        records = write_log(Path(log), size)
        progress(f"spark: {records / 1e6:.0f} M records")
        times = []
        with _peak_memory() as peak:
            for step in (
                lambda log=log: _write(offsets.commits(spark, log), table),
                lambda log=log: _write(offsets.replay(spark, log).offsets, table),
            ):
                turns = 2 if size < SIZES[-1] else 1
                times.append(min(_seconds(step) for _ in range(turns)) / records)
        shutil.rmtree(log)
        shutil.rmtree(table)
        first = first or (*times, sum(peak.values()))
        each = f"{times[0] * 1e9:.0f} and {times[1] * 1e9:.0f} ns a record"
        memory = f"Java {peak['java']:.0f}, Python {peak['python']:.0f} MiB"
        found += [
            told(f"{records / 1e6:.0f} M records, offset_commits and current_offsets", f"{each}; {memory}"),
            bounded("... time against the smallest", times[0] / first[0], 1.2, at_most=True, digits=2),
            bounded("... of current_offsets", times[1] / first[1], 1.2, at_most=True, digits=2),
            bounded("... memory against the smallest", sum(peak.values()) / first[2], 1.5, at_most=True, digits=2),
        ]
    return found


def _write(frame: DataFrame, path: str) -> None:
    frame.write.mode("overwrite").parquet(path)


def _seconds(step: Callable[[], None]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


@contextmanager
def _peak_memory() -> Iterator[dict[str, float]]:
    """The most that Java, and the largest of the Python workers, had in memory meanwhile, in MiB."""
    peak = {"java": 0.0, "python": 0.0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            for kind, size in _children(os.getpid()):
                peak[kind] = max(peak[kind], size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def _children(process: int) -> Iterator[tuple[str, float]]:
    """Which processes descend from one, and how much memory each has."""
    threads = Path(f"/proc/{process}/task").glob("*/children")
    for number in [number for thread in threads for number in thread.read_text().split()]:
        try:
            name = Path(f"/proc/{number}/comm").read_text()
            pages = int(Path(f"/proc/{number}/statm").read_text().split()[1])
            yield "java" if "java" in name else "python", pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
            yield from _children(int(number))
        except FileNotFoundError:
            continue  # it has ended meanwhile
