"""What is shown of a run on Spark: a bar on a terminal, else a line for each step, on stderr."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

_LOOK_EVERY_S = 0.5


class Lines:
    """A line for each step that is done."""

    def begin(self, what: str) -> None:
        """Nobody is waiting for it."""

    def done(self, what: str, rows: int | None, seconds: float) -> None:
        told = "" if rows is None else f"{rows:,} rows in "
        click.echo(f"kohort: {what}: {told}{seconds:.1f} s", err=True)


class Bar:
    """A bar that says which step is under way, and how many of Spark's tasks are done in it."""

    def __init__(self, spark: "SparkSession", bar: "Progress", task: "TaskID") -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._bar, self._task = bar, task
        self._what = ""

    def begin(self, what: str) -> None:
        self._what = what
        self._bar.update(self._task, description=what)

    def done(self, what: str, rows: int | None, seconds: float) -> None:  # noqa: ARG002  # the summary tells it
        self._bar.advance(self._task)

    def look(self) -> None:
        """Ask Spark how far it is."""
        stages = [self._tracker.getStageInfo(number) for number in self._tracker.getActiveStageIds()]
        running = [stage for stage in stages if stage is not None]
        if running:
            done, of = sum(stage.numCompletedTasks for stage in running), sum(stage.numTasks for stage in running)
            self._bar.update(self._task, description=f"{self._what} ({done} of {of} tasks)")


@contextlib.contextmanager
def spark_steps(spark: "SparkSession", count: int) -> Iterator[Lines | Bar]:
    """Show a run of so many steps to whoever waits for it."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        shown = Bar(spark, progress, progress.add_task("", total=count))
        over = threading.Event()
        looking = threading.Thread(target=_look, args=(shown, over), name="progress", daemon=True)
        looking.start()
        try:
            yield shown
        finally:
            over.set()
            looking.join()


def _look(shown: Bar, over: threading.Event) -> None:
    while not over.wait(_LOOK_EVERY_S):
        shown.look()
