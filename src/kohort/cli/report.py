"""`kohort report`: the tables of a run as one HTML file."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kohort.cli.output import moment, printable
from kohort.cli.spark_session import need_spark, setting, spark_for
from kohort.cli.spark_steps import spark_steps
from kohort.cli.whole_file import write_whole
from kohort.errors import KohortError

if TYPE_CHECKING:
    from kohort.spark.manifest import Manifest

_NAME = "report.html"
_SETTINGS = {"spark.sql.shuffle.partitions": "16"}
"""What a report is made from is short once commits are counted by steps of time."""


@click.command(
    epilog="""\b
Examples:
  kohort report tables
  kohort report tables --out stuck.html --group billing --group checkout
  kohort report tables --as-of 2026-11-16T02:00 --and 2026-11-16T03:40
"""
)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help=f"The file. Default: DIRECTORY/{_NAME}.")
@click.option("--group", "groups", multiple=True, help="Only this group; may be given several times.")
@click.option("--from-time", type=moment, help="Where plots over time begin; by default where the log does.")
@click.option("--as-of", type=moment, help="The first of two times whose offsets are compared.")
@click.option("--and", "later", type=moment, help="The second of them; by default the end of the tables.")
@click.option("--master", help="Spark's master; all cores of this machine by default.")
@click.option("--conf", "settings", multiple=True, type=setting, help="A setting of Spark's: spark.name=value.")
def report(
    directory: Path,
    out: Path | None,
    groups: tuple[str, ...],
    from_time: int | None,
    as_of: int | None,
    later: int | None,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
) -> None:
    """The tables of a run as one HTML file that needs no network.

    DIRECTORY holds the tables of `kohort pipeline`. The file opens in any browser, from disk: a summary in sentences,
    then plots and tables of groups, lag, rebalances, expiry, the offsets topic, transactions, jumps, the difference of
    two times, and what could not be read.
    """
    need_spark()
    if importlib.util.find_spec("plotly") is None:
        raise KohortError("plotly is not installed: pip install 'kohort[spark]'")
    manifest = _manifest_of(directory)
    _check_times(manifest, from_time, as_of, later)
    target = directory / _NAME if out is None else out
    if not target.absolute().parent.is_dir():
        raise click.UsageError(f"{target.parent}: no such directory")
    text = _made(directory, manifest, groups, (from_time, as_of, later), master, dict(settings))
    write_whole(target, text)
    click.echo(f"{target}: {len(text.encode()) / 1e6:.1f} MB, as of {manifest.at}")


def _manifest_of(directory: Path) -> "Manifest":
    from kohort.spark.manifest import BadRun
    from kohort.spark.restore import open_run

    try:
        return open_run(directory)
    except BadRun as error:
        raise click.UsageError(str(error)) from None


def _check_times(manifest: "Manifest", start: int | None, as_of: int | None, later: int | None) -> None:
    if later is not None and as_of is None:
        raise click.UsageError("--and needs --as-of")
    if as_of is not None and as_of >= (manifest.at_millis if later is None else later):
        raise click.UsageError("--as-of is not before --and")
    if start is not None and start >= manifest.at_millis:
        raise click.UsageError(f"--from-time is not before the end of the tables, {manifest.at}")


def _made(
    directory: Path,
    manifest: "Manifest",
    groups: tuple[str, ...],
    times: tuple[int | None, int | None, int | None],
    master: str | None,
    settings: dict[str, str],
) -> str:
    from kohort.report.contents import STEPS, NoSuchGroup, Wanted, gather
    from kohort.report.page import make_page
    from kohort.report.run import open_tables
    from kohort.spark.failures import one_line_failures

    with (
        spark_for(master, _SETTINGS | settings, manifest.format, directory) as spark,
        spark_steps(spark, STEPS) as watcher,
    ):
        with one_line_failures():
            run = open_tables(spark, directory, groups)
            try:
                data = gather(run, Wanted(*times), watcher)
            except NoSuchGroup as error:
                raise click.UsageError(f"the tables know of no group {printable(str(error))}") from None
        return make_page(data)
