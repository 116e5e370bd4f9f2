"""`kohort groups delete` and `kohort groups delete-offsets`."""

import sys
from pathlib import Path

import click

from kohort.admin.groups import delete_groups
from kohort.admin.offsets import delete_offsets as forget_offsets
from kohort.admin.refusals import named
from kohort.cli.group_options import (
    Topics,
    check_groups,
    chosen_groups,
    cluster_options,
    expand_topics,
    format_option,
    group_options,
    names_of,
    open_cluster,
    text,
    topics_option,
)
from kohort.cli.output import table
from kohort.records.json_text import to_json


@click.command()
@cluster_options
@group_options
@click.option("--yes", is_flag=True, help="Do not ask before all groups are deleted.")
@format_option("table", "json")
def delete(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    names: tuple[str, ...],
    all_groups: bool,
    yes: bool,
    format_: str,
) -> None:
    """Delete groups that have no members, with all of their offsets.

    \b
    Examples:
      kohort groups delete --bootstrap localhost:9092 --group billing --group old-billing
      kohort groups delete --bootstrap localhost:9092 --all-groups --yes
    """
    check_groups(names, all_groups)
    if yes and not all_groups:
        raise click.UsageError("--yes goes with --all-groups")
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        chosen = chosen_groups(cluster, names, all_groups)
        if all_groups and chosen and not yes:
            click.confirm(f"Delete {len(chosen)} groups?", abort=True, err=True)
        told = delete_groups(cluster, chosen)
    deleted = sorted(name for name, reason in told.items() if reason is None)
    failed = {name: reason for name, reason in sorted(told.items()) if reason is not None}
    if format_ == "json":
        rows = [{"group": name, "status": _deletion(reason)} for name, reason in sorted(told.items())]
        click.echo(to_json(rows, indent=1))
    elif deleted:
        click.echo(f"Deletion of requested consumer groups ({names_of(deleted)}) was successful.")
    for name, reason in failed.items():
        click.echo(f"kohort: Group {named(name)} could not be deleted due to: {reason}", err=True)
    if failed:
        sys.exit(1)


def _deletion(reason: str | None) -> str:
    return "Successful" if reason is None else f"Error: {reason}"


@click.command("delete-offsets")
@cluster_options
@click.option("--group", required=True, type=text, help="The group.")
@topics_option(required=True)
@format_option("table", "json")
def delete_offsets(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    group: str,
    topics: tuple[Topics, ...],
    format_: str,
) -> None:
    """Have a group forget its offsets for topics that it is not subscribed to.

    \b
    Examples:
      kohort groups delete-offsets --bootstrap localhost:9092 --group billing --topic orders
      kohort groups delete-offsets --bootstrap localhost:9092 --group billing --topic orders:0,2 --topic payments
    """
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        partitions, missing = expand_topics(cluster, topics)
        refused = forget_offsets(cluster, group, partitions) if partitions else {}
    rows: list[tuple[str, int | None, str | None]] = [
        (topic, number, refused.get((topic, number))) for topic, number in sorted(partitions)
    ]
    rows += [(topic, None, "there is no such topic") for topic in missing]
    if format_ == "json":
        told = [
            {"group": group, "topic": topic, "partition": number, "status": _deletion(reason)}
            for topic, number, reason in rows
        ]
        click.echo(to_json(told, indent=1))
    else:
        cells = [
            [topic, "Not Provided" if number is None else str(number), _deletion(reason)]
            for topic, number, reason in rows
        ]
        for line in table(["TOPIC", "PARTITION", "STATUS"], cells):
            click.echo(line)
    if any(reason for *_, reason in rows):
        click.echo(f"kohort: not all offsets of {named(group)} were deleted", err=True)
        sys.exit(1)
