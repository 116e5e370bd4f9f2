"""Ctrl-C in the middle of what Spark is asked: it ends, and the session is as good as before."""

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kohort.spark.failures import idle_after_failures, one_line_failures
from kohort.spark.interrupts import interrupts_between_calls


def endless(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        while True:
            time.sleep(0.01)
            yield batch


def press_when_busy(spark: SparkSession) -> threading.Thread:
    """Somebody who presses Ctrl-C as soon as a task is running."""
    tracker, main = spark.sparkContext.statusTracker(), threading.main_thread().ident
    assert main is not None

    def press() -> None:
        while not any(
            (stage := tracker.getStageInfo(number)) is not None and stage.numActiveTasks
            for number in tracker.getActiveStageIds()
        ):
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    return presser


def test_a_job_is_cancelled_and_nothing_is_said(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    presser = press_when_busy(spark)
    with pytest.raises(KeyboardInterrupt), interrupts_between_calls(), one_line_failures(), idle_after_failures(spark):
        spark.range(2).mapInArrow(endless, "id long").count()
    presser.join()
    assert signal.getsignal(signal.SIGINT) == before
    assert spark.range(3).count() == 3
    assert spark.sparkContext.statusTracker().getActiveStageIds() == []
    said = capfd.readouterr().err  # clients of other tests may speak there too
    assert "Traceback" not in said
    assert "py4j" not in said


def test_no_task_writes_when_the_interruption_is_let_through(spark: SparkSession, tmp_path: Path) -> None:
    presser = press_when_busy(spark)
    with pytest.raises(KeyboardInterrupt), interrupts_between_calls(), one_line_failures(), idle_after_failures(spark):
        spark.range(2).mapInArrow(endless, "id long").write.parquet(str(tmp_path / "table"))
    presser.join()
    files = {path: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert spark.range(3).count() == 3  # a job later
    assert {path: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()} == files


def test_between_calls_it_is_python_s_own(spark: SparkSession) -> None:
    with pytest.raises(KeyboardInterrupt), interrupts_between_calls():
        signal.raise_signal(signal.SIGINT)
    assert spark.range(3).count() == 3
