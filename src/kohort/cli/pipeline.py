"""`kohort pipeline`: the offsets topic as tables, made by Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kohort.cli.command_config import COMMAND_CONFIG_HELP, client_settings
from kohort.cli.output import moment, table
from kohort.cli.source import source_argument
from kohort.cli.spark_session import need_spark, setting, spark_for
from kohort.cli.spark_steps import Lines, spark_steps
from kohort.config import GroupConfig
from kohort.spark.choices import FORMATS, MODES, PARQUET, PERMISSIVE, POSITION, RULES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.spark.manifest import Manifest
    from kohort.spark.order import Order


@click.command()
@source_argument
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Directory for the tables.")
@click.option("--topic", default="__consumer_offsets", show_default=True, help="Which topic of a log directory.")
@click.option("--as-of", type=moment, help="The tables at this time.")
@click.option(
    "--rule",
    type=click.Choice(RULES),
    default=POSITION,
    show_default=True,
    help="What a broker answers while it runs (and 4.x loads), or what brokers up to 3.9 make of their log.",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default=PERMISSIVE,
    show_default=True,
    help="Whether damage goes to the table quarantine or ends the run.",
)
@click.option(
    "--retention-minutes",
    type=click.IntRange(min=1, max=(1 << 31) - 1),
    default=GroupConfig().offsets_retention_minutes,
    show_default=True,
    help="offsets.retention.minutes for the table expiry.",
)
@click.option("--format", "format_", type=click.Choice(FORMATS), default=PARQUET, show_default=True)
@click.option("--command-config", type=click.Path(path_type=Path), help=COMMAND_CONFIG_HELP)
@click.option("--follow", "follows", is_flag=True, help="Keep the tables current, until Ctrl-C.")
@click.option(
    "--incremental",
    is_flag=True,
    help="Read what has come since the last such run, and merge it into its tables (delta and iceberg).",
)
@click.option(
    "--refresh-seconds",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    help="How often --follow makes the tables anew that are derived from the whole history.",
)
@click.option("--master", help="Spark's master; all cores of this machine by default.")
@click.option("--conf", "settings", multiple=True, type=setting, help="A setting of Spark's: spark.name=value.")
def pipeline(
    source: str,
    out: Path,
    topic: str,
    as_of: int | None,
    rule: str,
    mode: str,
    retention_minutes: int,
    format_: str,
    command_config: Path | None,
    follows: bool,
    incremental: bool,
    refresh_seconds: float,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
) -> None:
    """The offsets topic as tables, made by Spark.

    SOURCE is a segment file, a partition directory, a Kafka log directory, or kafka://HOST:PORT of a live cluster. The
    tables under --out are replaced when all of them are there; a run that fails changes nothing.

    \b
    Examples:
      kohort pipeline /var/lib/kafka/data --out tables
      kohort pipeline kafka://localhost:9092 --out tables --follow
      kohort pipeline /mnt/rescued --out tables --format delta --incremental
      kohort pipeline /mnt/rescued --out tables --as-of 2026-11-16T03:12 --master spark://host:7077
    """
    need_spark()
    from kohort.spark.order import Order

    order = Order(
        source=source,
        out=out,
        topic=topic,
        as_of=as_of,
        rule=rule,
        mode=mode,
        format=format_,
        retention_minutes=retention_minutes,
        kafka=client_settings(command_config),
    )
    if follows and incremental:
        raise click.UsageError("give --follow or --incremental, not both")
    order.check()
    with spark_for(master, dict(settings), format_, out) as spark:
        if follows:
            _follow(spark, order, refresh_seconds)
            return
        from kohort.spark.incremental import run_incrementally
        from kohort.spark.pipeline import STEPS, run

        with spark_steps(spark, STEPS + (order.live is not None)) as watcher:
            manifest = (run_incrementally if incremental else run)(spark, order, watcher)
    for line in _summary(manifest, out):
        click.echo(line)


def _follow(spark: "SparkSession", order: "Order", refresh_seconds: float) -> None:
    """Keep the tables current until Ctrl-C, which is how it ends well."""
    from kohort.spark.follow import Batch, follow

    def tell(batch: Batch) -> None:
        click.echo(f"kohort: {batch.records:,} records more, in the tables after {batch.seconds:.1f} s", err=True)

    follow(spark, order, Lines(), tell, refresh_s=refresh_seconds)


def _summary(manifest: "Manifest", out: Path) -> Iterator[str]:
    yield from table(
        ["TABLE", "ROWS", "SECONDS"],
        [[name, f"{made.rows:,}", f"{made.seconds:.1f}"] for name, made in manifest.tables.items()],
    )
    counted = manifest.accounting
    yield ""
    yield (
        f"{counted['read'] + counted['damaged']:,} records read = {counted['records']:,} in records "
        f"+ {counted['quarantined']:,} in quarantine"
    )
    yield f"as of {manifest.at}; {manifest.seconds:.1f} s; written to {out}"
