"""What people read when a job of Spark's fails."""

import pytest
from pyspark.errors import PySparkException

from kohort.spark.failures import SparkFailed, one_line_failures

OURS = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "reading.py", line 3, in read
    raise LogChanged(path)
kohort.spark.inputs.LogChanged: a.log: is gone: the log changed while it was read
"""
PYTHONS = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 7, in main
    process()
    ~~~~~~~^^
MemoryError: no room for 5 GiB

\tat org.apache.spark.api.python.BasePythonRunner
"""
JAVAS = """Job aborted due to stage failure
Caused by: java.io.IOException: No space left on device
"""


def test_jobs_that_ctrl_c_has_ended_are_no_failure_of_spark() -> None:
    with pytest.raises(KeyboardInterrupt), one_line_failures():
        raise PySparkException("[SPARK_JOB_CANCELLED] Job 5 cancelled as part of cancellation of all jobs")
    with pytest.raises(SparkFailed), one_line_failures():
        raise PySparkException("[SPARK_JOB_CANCELLED] Job 5 cancelled by somebody at the cluster")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (OURS, "a.log: is gone: the log changed while it was read"),
        (PYTHONS, "Spark failed: MemoryError: no room for 5 GiB"),
        (JAVAS, "Spark failed: No space left on device"),
        ("something else\nand more", "Spark failed: something else"),
    ],
)
def test_the_reason_is_told_in_one_line(said: str, told: str) -> None:
    with pytest.raises(SparkFailed) as failed, one_line_failures():
        raise PySparkException(said)
    assert str(failed.value) == told
