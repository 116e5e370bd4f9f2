"""What went wrong in Spark, in one line for people."""

import contextlib
import re
import time
from collections.abc import Iterator

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kohort.errors import KohortError

_OURS = re.compile(r"^(?:\w+: )*kohort(?:\.\w+)+: (.+)$", re.MULTILINE)
"""The last line of a Python traceback whose error is ours, as Spark retells it."""

_PYTHONS = re.compile(r"^Traceback .*\n(?: .*\n|\n)*([A-Za-z_][\w.]*(?:: .+)?)$", re.MULTILINE)
"""The last line of any other Python traceback."""

_CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+: (.+)$", re.MULTILINE)
"""What Java has thrown, and what that came of."""

_LONGEST = 500
_PATIENCE_S, _LOOK_S = 30.0, 0.05

_CANCELLED = "as part of cancellation of all jobs"
"""What Spark says of jobs that its own handler of Ctrl-C has ended. It may come before Python hears of the signal."""


class SparkFailed(KohortError):
    """A job of Spark's that failed."""


@contextlib.contextmanager
def one_line_failures() -> Iterator[None]:
    """Failures of Spark are `SparkFailed`, except for those that are Ctrl-C; what they came from is still there for
    whoever looks."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if _CANCELLED in str(error) or isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise SparkFailed(_told(error)) from error


@contextlib.contextmanager
def idle_after_failures(spark: SparkSession) -> Iterator[None]:
    """A failure, or Ctrl-C, is let through when no task is left that could still write files."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Py4JError):  # Spark has gone, and its tasks with it
            until = time.monotonic() + _PATIENCE_S  # others may be at work in the same session
            while _running_tasks(spark) and time.monotonic() < until:
                time.sleep(_LOOK_S)
        raise


def _running_tasks(spark: SparkSession) -> int:
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())


def _told(error: PySparkException | Py4JError) -> str:
    """Our own error if a task met one, else Python's, else the innermost cause that Spark names."""
    whole = str(error)
    if isinstance(error, Py4JJavaError):
        whole = f"{error}\n{error.java_exception}"
    if ours := _OURS.findall(whole):
        return _shortened(ours[-1])
    causes = _PYTHONS.findall(whole) or _CAUSE.findall(whole)
    first = next((line for line in whole.splitlines() if line.strip()), type(error).__name__)
    return f"Spark failed: {_shortened(causes[-1] if causes else first)}"


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
