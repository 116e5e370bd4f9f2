"""`kohort demo`: a broker, a story told by real clients, and the tables and the report that find it in the log."""

import contextlib
import importlib.util
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kohort.cli.output import printable
from kohort.cli.spark_session import need_spark, spark_for
from kohort.cli.spark_steps import spark_steps
from kohort.cli.whole_file import write_whole
from kohort.demo.place import Place
from kohort.errors import KohortError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.demo.stage import Stage

_SETTINGS = {"spark.sql.shuffle.partitions": "2"}
"""A few thousand records."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command(
    epilog="""\b
Examples:
  kohort demo
  kohort demo --keep
  kohort demo --out somewhere/else
"""
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("kohort-demo"),
    show_default=True,
    help="Directory for the log, the tables and the report; a former demo in it is replaced.",
)
@click.option("--keep", is_flag=True, help="The broker stays up with its clients, until Ctrl-C.")
def demo(out: Path, keep: bool) -> None:
    """A broker, a story told by real clients, and the report that finds it in the log.

    Three hours of a small shop in a minute or two: a group that keeps up, one that falls behind, one that rebalances
    in a storm, a static one that is restarted, one that commits in transactions, one that is abandoned and expires. The
    broker's clock runs fast, all else is as ever. Then the pipeline reads the broker's own log directory. Nothing is
    left running.
    """
    place = Place(out)
    place.prepare()
    # What clients log of a rebalance is part of the story, and what Spark's gateway logs of Ctrl-C is a traceback.
    logging.getLogger().addHandler(logging.NullHandler())
    with _whole_ends() as ends:
        why_not = _play(ends, place, keep)
    if why_not is not None:
        raise why_not


def _play(ends: contextlib.ExitStack, place: Place, keep: bool) -> KohortError | None:
    """The whole demo. Returns what stood in the way of tables and a report, if something did."""
    from kohort.demo.stage import Stage

    click.echo("Three hours of a small shop. The broker's clock runs fast, its clients are real; times are UTC.")
    stage = Stage(place.data, _tell)
    ends.callback(lambda: None if stage.is_told else place.clear())
    ends.enter_context(stage)
    click.echo(f"       the broker is at {stage.bootstrap_servers}, its page at {stage.http_url}")
    stage.begin()
    with contextlib.ExitStack() as java:
        ends.push(java)  # should somebody interrupt us before the end of this block
        why_not, spark = _started(java, place)  # Java starts while the story is told
        stage.wait()
        if spark is not None:
            _tell_findings(place, _report(spark, place))
    _tell_ways(place)
    if keep:
        if why_not is not None:
            click.echo(f"kohort: {why_not}", err=True)
        _keep(stage)
    return why_not


def _tell(at: str, sentence: str) -> None:
    click.echo(f"{at}  {sentence}")


def _started(ends: contextlib.ExitStack, place: Place) -> "tuple[KohortError | None, SparkSession | None]":
    """Spark, or why there is none."""
    try:
        need_spark()
        if importlib.util.find_spec("plotly") is None:
            raise KohortError("plotly is not installed: pip install 'kohort[spark]'")
        from kohort.spark.choices import PARQUET
        from kohort.spark.session import end_java

        ends.callback(end_java)
        return None, ends.enter_context(spark_for(None, _SETTINGS, PARQUET, place.tables))
    except KohortError as error:
        return error, None


def _report(spark: "SparkSession", place: Place) -> dict[str, Any]:
    """Tables and report from the log that the broker is still writing to. Returns what the page shows."""
    from kohort.demo.shop import RETENTION_MINUTES
    from kohort.report.contents import STEPS as REPORT_STEPS
    from kohort.report.contents import Wanted, gather
    from kohort.report.page import make_page
    from kohort.report.run import open_tables
    from kohort.spark.failures import one_line_failures
    from kohort.spark.order import Order
    from kohort.spark.pipeline import STEPS, run

    click.echo(f"\nThe pipeline reads the broker's own log, {place.data}:")
    order = Order(source=str(place.data), out=place.tables, retention_minutes=RETENTION_MINUTES)
    with spark_steps(spark, STEPS + REPORT_STEPS) as watcher:
        run(spark, order, watcher)
        with one_line_failures():
            data = gather(open_tables(spark, place.tables), Wanted(), watcher)
    write_whole(place.report, make_page(data))
    return data


def _tell_findings(place: Place, data: dict[str, Any]) -> None:
    """The sentences of the report that say something is wrong, as it has found them in the log."""
    click.echo(f"\n{click.style(f'Look at {place.report}. It says:', bold=True)}")
    for sentence in data["summary"]:
        if sentence["tone"] in ("bad", "warn"):
            parts = (part if isinstance(part, str) else data["strings"][part["s"]] for part in sentence["parts"])
            click.echo(f"  - {printable(''.join(parts))}")


def _tell_ways(place: Place) -> None:
    kohort = min(sys.argv[0], os.path.relpath(sys.argv[0]), key=len)
    click.echo(f"\n{click.style('Go on with it:', bold=True)}")
    for command, what in (
        (f"state {place.data}", "groups and offsets as a broker loads them"),
        (f"dump {place.data} --group ledger", "every record, also those that were aborted"),
        (f"report {place.tables} --group billing --out billing.html", "one group"),
        (f"demo --keep --out {place.out}", "the same with a page that lives, and a broker for your clients"),
        ("pipeline /var/lib/kafka/data --out tables", "a broker of your own; kafka://HOST:PORT will do too"),
    ):
        click.echo(f"  {kohort} {command}   # {what}")


def _keep(stage: "Stage") -> None:
    """The shop stays open until Ctrl-C, which is how it ends well."""
    stage.go_on()
    click.echo(f"\nThe shop stays open until Ctrl-C, on your clock. Its page: {stage.http_url}")
    click.echo(f"  kohort groups describe --bootstrap {stage.bootstrap_servers} --all-groups")
    with contextlib.suppress(KeyboardInterrupt):
        stage.wait_for_end()


@contextlib.contextmanager
def _whole_ends() -> Iterator[contextlib.ExitStack]:
    """What must happen at the end happens, whatever is typed meanwhile. SIGTERM is heard as Ctrl-C."""
    with contextlib.ExitStack() as restored, contextlib.ExitStack() as ends:
        restored.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _interrupt))
        restored.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        try:
            yield ends
        finally:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
