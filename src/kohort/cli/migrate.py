"""`kohort migrate`: topics with their records and groups with their offsets, copied into another cluster."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from kohort.admin.refusals import named
from kohort.cli.command_config import COMMAND_CONFIG_HELP
from kohort.cli.damage import DamageReport
from kohort.cli.group_options import format_option, names_of, open_cluster, text
from kohort.cli.output import progress, table
from kohort.cli.source import source_argument
from kohort.cli.whole_file import write_whole
from kohort.errors import KohortError
from kohort.log.source import LIVE_SCHEME
from kohort.migration.migration import Hearer, Wanted
from kohort.migration.migration import migrate as copy_all
from kohort.migration.report import GroupReport, PartitionReport, Report
from kohort.migration.source import Source
from kohort.records.json_text import to_json

_MISSING = "-"
_MOST_REPLICAS = (1 << 15) - 1


@click.command()
@source_argument
@click.option("--to", required=True, metavar="HOST:PORT", help="A broker of the cluster that gets everything.")
@click.option("--to-config", type=click.Path(path_type=Path), help="As --command-config, for that cluster.")
@click.option("--command-config", type=click.Path(path_type=Path), help=COMMAND_CONFIG_HELP)
@click.option("--topic", "topics", multiple=True, type=text, help="Only this topic; may be given several times.")
@click.option("--group", "names", multiple=True, type=text, help="Only this group; may be given several times.")
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1, max=_MOST_REPLICAS),
    help="Of topics that are made; the cluster's own by default.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--report", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write all of it, as JSON.")
@click.option(
    "--timeout",
    type=click.IntRange(min=1, max=86_400_000),
    default=30_000,
    show_default=True,
    help="How long to wait for a cluster, in milliseconds.",
)
@format_option("table", "json")
def migrate(
    source: str,
    to: str,
    to_config: Path | None,
    command_config: Path | None,
    topics: tuple[str, ...],
    names: tuple[str, ...],
    replication_factor: int | None,
    dry_run: bool,
    file: Path | None,
    timeout: int,
    format_: str,
) -> None:
    """Topics and groups into another cluster, verified.

    SOURCE is a log directory of kohort or of Kafka, or kafka://HOST:PORT of a live cluster. What readers of committed
    data see is copied, and each group goes on at the record where it was. Whatever interrupts it, the same command
    again goes on where it was.

    \b
    Examples:
      kohort migrate /var/lib/kafka/data --to localhost:9092 --dry-run
      kohort migrate data --to broker.example.com:9092 --to-config client.properties --report report.json
      kohort migrate kafka://localhost:9092 --to broker.example.com:9092 --topic orders --group billing
    """
    damage = DamageReport()
    wanted = Wanted(topics, names, replication_factor, dry_run)
    with (
        _opened(source, command_config, timeout) as opened,
        open_cluster(to, to_config, timeout) as cluster,
        progress("copy", opened.size) as advance,
    ):
        report = copy_all(opened, source, cluster, wanted, Hearer(damage, advance))
    told = to_json(report.as_json(), indent=1)
    if file is not None:
        write_whole(file, told + "\n")
    if format_ == "json":
        click.echo(told)
    else:
        for line in _tables(report):
            click.echo(line)
    for line in _notes(report):
        click.echo(f"kohort: {line}", err=True)
    if problems := list(_problems(report)):
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise KohortError(f"not all is {'as it should be' if dry_run else 'verified'}: {problems[0]}{more}")
    damage.exit()


@contextlib.contextmanager
def _opened(source: str, command_config: Path | None, timeout: int) -> Iterator[Source]:
    if source.startswith(LIVE_SCHEME):
        from kohort.migration.live_source import LiveSource

        address = source.removeprefix(LIVE_SCHEME).rstrip("/")
        with open_cluster(address, command_config, timeout) as cluster:
            yield LiveSource(cluster)
        return
    if command_config is not None:
        raise click.UsageError("--command-config is for a live SOURCE, --to-config for what --to names")
    from kohort.migration.directory_source import DirectorySource

    yield DirectorySource(source)


def _tables(report: Report) -> Iterator[str]:
    heads = ["TOPIC", "PARTITION", "FOUND", "COPIED", "ABORTED", "MARKERS", "SOURCE", "DESTINATION", "STATUS"]
    yield from table(heads, [_partition_cells(one, report.dry_run) for one in report.partitions])
    if report.groups:
        yield ""
        heads = ["GROUP", "OFFSETS", "LEFT-OUT", "STATUS"]
        yield from table(heads, [_group_cells(one, report.dry_run) for one in report.groups])


def _partition_cells(one: PartitionReport, dry_run: bool) -> list[str]:
    source = _MISSING if one.source_start is None else f"{one.source_start}-{one.source_end}"
    destination = _MISSING if one.destination_end is None else f"0-{one.destination_end}"
    counts = [str(count) for count in (one.found, one.copied, one.aborted, one.control)]
    return [one.topic, str(one.partition), *counts, source, destination, _status(one, dry_run)]


def _group_cells(one: GroupReport, dry_run: bool) -> list[str]:
    return [one.group, str(one.translated), str(one.left_out), _status(one, dry_run)]


def _status(one: PartitionReport | GroupReport, dry_run: bool) -> str:
    if one.problem is not None:
        return f"Error: {one.problem}"
    return "Dry run" if dry_run else "Verified"


def _notes(report: Report) -> Iterator[str]:
    """What is no failure, and what somebody should know."""
    for one in report.partitions:
        if one.undecided:
            where = named(f"{one.topic}-{one.partition}")
            yield f"{where}: {one.undecided} offsets from {one.source_end} on wait for an open transaction: not copied"
    for topic in report.topics:
        if topic.missing_partitions:
            told = ", ".join(map(str, topic.missing_partitions[:10]))
            yield f"{named(topic.topic)}: of {len(topic.missing_partitions)} partitions the source has nothing: {told}"
        for setting, reason in topic.settings_left_out.items():
            yield f"{named(topic.topic)}: {named(setting)} is left out: {reason}"
    unknown = [topic.topic for topic in report.topics if topic.settings is None and topic.problem is None]
    if unknown:
        until = "what is made of them keeps every record until somebody says otherwise"
        yield f"nobody knows the settings of these topics, {until}: {names_of(unknown)}"
    if left_out := sum(group.left_out for group in report.groups):
        yield f"{left_out} offsets of groups are left out: they are of partitions that are not copied"
    if report.dry_run:
        yield "nothing was changed: this is a dry run"


def _problems(report: Report) -> Iterator[str]:
    for topic in report.topics:
        if topic.problem is not None:
            yield f"topic {named(topic.topic)} {topic.problem}"
    for one in report.partitions:
        if one.problem is not None:
            yield f"{named(f'{one.topic}-{one.partition}')}: {one.problem}"
    for group in report.groups:
        if group.problem is not None:
            yield f"group {named(group.group)} {group.problem}"
