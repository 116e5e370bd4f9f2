"""`kohort groups export` and `kohort groups import`: offsets of groups into a file, and back."""

import sys
from pathlib import Path

import click

from kohort.admin.offsets import Offsets, committed_offsets
from kohort.admin.plan_file import formulas, read_plan, to_csv, to_json_plan, unwritable
from kohort.admin.refusals import named
from kohort.admin.reset import plan_offsets
from kohort.cli.group_options import (
    check_groups,
    chosen_groups,
    cluster_options,
    format_option,
    group_options,
    open_cluster,
    text,
)
from kohort.cli.group_reset import carry_out, refuse_active
from kohort.cli.plan_output import put_plan


@click.command()
@cluster_options
@group_options
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write here, not to stdout.")
@format_option("csv", "json")
def export(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    names: tuple[str, ...],
    all_groups: bool,
    out: Path | None,
    format_: str,
) -> None:
    """The offsets of groups as a file.

    CSV is what kafka-consumer-groups --reset-offsets --from-file reads: topic, partition, offset, with the group in
    front unless there is one --group. JSON has metadata and leader epochs too, and can hold every name.

    \b
    Examples:
      kohort groups export --bootstrap localhost:9092 --all-groups --out offsets.csv
      kohort groups export --bootstrap localhost:9092 --group billing --format json
    """
    check_groups(names, all_groups)
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        found = committed_offsets(cluster, chosen_groups(cluster, names, all_groups))
    plan = {name: offsets for name, offsets in sorted(found.items()) if offsets}
    left_out: list[str] = []
    if format_ == "csv":
        left_out = unwritable(plan) if all_groups or len(names) > 1 else []
        plan = {name: offsets for name, offsets in plan.items() if name not in left_out}
        told = to_csv(plan, with_group=all_groups or len(names) > 1)
    else:
        told = to_json_plan(plan)
    put_plan(told, out, sum(map(len, plan.values())), len(plan), instead="--out FILE or --format json")
    _tell(plan, [name for name in names if not found[name]], left_out, format_)


def _tell(plan: dict[str, Offsets], empty: list[str], left_out: list[str], format_: str) -> None:
    if format_ == "csv" and (odd := formulas(plan)):
        told = ", ".join(named(name) for name in odd[:5])
        click.echo(f"kohort: warning: a spreadsheet would take these names for formulas: {told}", err=True)
    for name in empty:
        click.echo(f"kohort: group {named(name)} has no offsets", err=True)
    for name in left_out:
        click.echo(f"kohort: left out, for no line of CSV can hold the name: {named(name)}", err=True)
    if empty or left_out:
        sys.exit(1)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@cluster_options
@click.option("--group", "names", multiple=True, type=text, help="Only this group; may be given several times.")
@click.option("--execute", is_flag=True, help="Do it; without this it is only shown.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done; the default.")
@format_option("table", "json")
def import_(
    file: Path,
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    names: tuple[str, ...],
    execute: bool,
    dry_run: bool,
    format_: str,
) -> None:
    """Set the offsets that stand in FILE, as `kohort groups export` writes it.

    Nothing is changed without --execute; groups that have members are refused. A file without group names needs the
    --group that it belongs to.

    \b
    Examples:
      kohort groups import offsets.csv --bootstrap localhost:9092
      kohort groups import offsets.csv --bootstrap localhost:9092 --execute
      kohort groups import billing.csv --bootstrap localhost:9092 --group billing --execute
    """
    if execute and dry_run:
        raise click.UsageError("either --execute or --dry-run")
    plan = read_plan(file, names[0] if len(names) == 1 else None)
    problems = [f"{file}: has no offsets of {named(name)}" for name in names if name not in plan]
    wanted = {name: offsets for name, offsets in plan.items() if not names or name in names}
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        active = refuse_active(cluster, wanted)
        plan_now = plan_offsets(cluster, {name: wanted[name] for name in wanted if name not in active})
        carry_out(cluster, plan_now, [*problems, *active.values()], execute=execute, format_=format_)
