"""`kohort groups reset`, and how a plan of offsets is carried out and told."""

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kohort.admin.cluster import Cluster
from kohort.admin.groups import describe_groups
from kohort.admin.offsets import Offsets, committed_offsets
from kohort.admin.plan_file import read_plan
from kohort.admin.refusals import named
from kohort.admin.reset import Change, Goal, Where, apply, plan_goal, plan_offsets
from kohort.cli.group_options import (
    LARGEST_OFFSET,
    Topics,
    check_groups,
    chosen_groups,
    cluster_options,
    duration,
    expand_topics,
    format_option,
    group_options,
    names_of,
    open_cluster,
    topics_option,
)
from kohort.cli.output import moment, table
from kohort.errors import KohortError
from kohort.log.cluster import TopicPartition
from kohort.records.json_text import to_json

_MISSING = "-"
_OFFSET = click.IntRange(min=0, max=LARGEST_OFFSET)
_SHIFT = click.IntRange(min=-LARGEST_OFFSET, max=LARGEST_OFFSET)
_GOALS = "--to-earliest, --to-latest, --to-current, --to-offset, --to-datetime, --by-duration, --shift-by, --from-file"


@click.command()
@cluster_options
@group_options
@topics_option()
@click.option("--all-topics", is_flag=True, help="All partitions that the group has offsets for.")
@click.option("--to-earliest", is_flag=True, help="To where the logs begin.")
@click.option("--to-latest", is_flag=True, help="To where the logs end.")
@click.option("--to-current", is_flag=True, help="To where it is now.")
@click.option("--to-offset", type=_OFFSET, help="To this offset.")
@click.option(
    "--to-datetime", type=moment, metavar="TIME", help="To a time: 2026-11-16T03:12, UTC unless it names a zone."
)
@click.option("--by-duration", type=duration, metavar="DURATION", help="To so long ago: PnDTnHnMnS.")
@click.option("--shift-by", type=_SHIFT, help="So many offsets further, or back if negative.")
@click.option("--from-file", type=click.Path(path_type=Path), help="To the offsets in a file of `groups export`.")
@click.option("--execute", is_flag=True, help="Do it; without this it is only shown.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done; the default.")
@format_option("table", "json")
def reset(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    names: tuple[str, ...],
    all_groups: bool,
    topics: tuple[Topics, ...],
    all_topics: bool,
    from_file: Path | None,
    execute: bool,
    dry_run: bool,
    format_: str,
    **goals: Any,
) -> None:
    """Other offsets for groups that have no members.

    Nothing is changed without --execute. An offset that the log does not hold becomes the nearest one that it does. A
    group with a partition that cannot be reset is left as it is.

    \b
    Examples:
      kohort groups reset --bootstrap localhost:9092 --group billing --topic orders --to-earliest
      kohort groups reset --bootstrap localhost:9092 --group billing --topic orders:0,2 --shift-by -10 --execute
      kohort groups reset --bootstrap localhost:9092 --group billing --all-topics --by-duration PT2H --execute
      kohort groups reset --bootstrap localhost:9092 --all-groups --from-file offsets.csv --execute
    """
    check_groups(names, all_groups)
    if execute and dry_run:
        raise click.UsageError("either --execute or --dry-run")
    goal = _goal(goals, from_file)
    if goal is not None and bool(topics) == all_topics:
        raise click.UsageError("either --topic or --all-topics must be given")
    if goal is None and (topics or all_topics):
        raise click.UsageError("--from-file tells the topics itself")
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        if goal is None:
            assert from_file is not None  # so says _goal
            wanted = _from_file(cluster, from_file, names, all_groups)
            problems = [f"{from_file}: has no offsets of {named(name)}" for name in names if name not in wanted]
        else:
            partitions, problems = _partitions(cluster, chosen_groups(cluster, names, all_groups), topics)
        active = refuse_active(cluster, wanted if goal is None else partitions)
        problems += active.values()
        if goal is None:
            plan = plan_offsets(cluster, {name: wanted[name] for name in wanted if name not in active})
        else:
            plan = plan_goal(cluster, {name: partitions[name] for name in partitions if name not in active}, goal)
        carry_out(cluster, plan, problems, execute=execute, format_=format_)


def _goal(given: Mapping[str, Any], from_file: Path | None) -> Goal | None:
    """The one that was asked for; None if it is a file."""
    asked = [name for name, value in given.items() if value is not None and value is not False]
    if len(asked) + (from_file is not None) != 1:
        raise click.UsageError(f"one of these must be given: {_GOALS}")
    if from_file is not None:
        return None
    (name,) = asked
    if name == "by_duration":
        return Goal(Where.TIME, time.time_ns() // 1_000_000 - given[name])
    where = Where(name.replace("_", "-"))
    return Goal(where) if given[name] is True else Goal(where, given[name])


def _from_file(cluster: Cluster, path: Path, names: Sequence[str], all_groups: bool) -> dict[str, Offsets]:
    plan = read_plan(path, names[0] if len(names) == 1 else None)
    chosen = set(chosen_groups(cluster, names, all_groups))
    return {name: offsets for name, offsets in plan.items() if name in chosen}


def _partitions(
    cluster: Cluster, names: Sequence[str], topics: Sequence[Topics]
) -> tuple[dict[str, list[TopicPartition]], list[str]]:
    """The partitions that each group is to be reset for, and what there is none of."""
    if topics:
        found, missing = expand_topics(cluster, topics)
        if missing:
            raise KohortError(f"nothing was changed: there is no topic {names_of(missing)}")
        return dict.fromkeys(names, found), []
    offsets = committed_offsets(cluster, names)
    empty = [f"group {named(name)} has no offsets" for name, theirs in offsets.items() if not theirs]
    return {name: sorted(theirs) for name, theirs in offsets.items() if theirs}, empty


def refuse_active(cluster: Cluster, names: Iterable[str]) -> dict[str, str]:
    """Groups that have members, each with the sentence that refuses it."""
    return {
        name: f"Assignments can only be reset if the group {named(name)} is inactive, "
        f"but the current state is {group.state}."
        for name, group in describe_groups(cluster, names).items()
        if not group.is_at_rest
    }


def carry_out(
    cluster: Cluster, plan: Sequence[Change], problems: Sequence[str], *, execute: bool, format_: str
) -> None:
    """Set the offsets of a plan, or do not, and tell; a group that has a row with a problem is left as it is."""
    broken = {change.group for change in plan if change.problem}
    settable = [change for change in plan if change.group not in broken]
    refused = apply(cluster, settable) if execute else {}
    told = [replace(change, problem=change.problem or refused.get((change.group, change.key))) for change in plan]
    rows = [(change, _status(change, broken, execute)) for change in told]
    if format_ == "json":
        click.echo(to_json([_row(change, status) for change, status in rows], indent=1))
    elif rows:
        heads = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "CURRENT-OFFSET", "STATUS"]
        for line in table(heads, [_cells(change, status) for change, status in rows]):
            click.echo(line)
    for change in told:
        if change.wanted is not None and change.new is not None:
            _warn_of_range(change)
    for problem in problems:
        click.echo(f"kohort: {problem}", err=True)
    if not execute and settable:
        click.echo("kohort: nothing was changed: --execute does it", err=True)
    if broken:
        click.echo(f"kohort: left as they are: {names_of(sorted(broken))}", err=True)
    if problems or any(change.problem for change in told):
        sys.exit(1)


def _status(change: Change, broken: set[str], execute: bool) -> str:
    if change.problem:
        return f"Error: {change.problem}"
    if change.group in broken:
        return "Not done"
    return "Successful" if execute else "Dry run"


def _row(change: Change, status: str) -> dict[str, Any]:
    return {
        "group": change.group,
        "topic": change.topic,
        "partition": change.partition,
        "new_offset": None if change.new is None else change.new.offset,
        "current_offset": None if change.current is None else change.current.offset,
        "status": status,
    }


def _cells(change: Change, status: str) -> list[str]:
    new = _MISSING if change.new is None else str(change.new.offset)
    current = _MISSING if change.current is None else str(change.current.offset)
    return [change.group, change.topic, str(change.partition), new, current, status]


def _warn_of_range(change: Change) -> None:
    assert change.wanted is not None  # the caller has looked
    assert change.new is not None
    side = "higher than latest" if change.wanted > change.new.offset else "lower than earliest"
    where = named(f"{change.topic}-{change.partition}")
    line = f"new offset ({change.wanted}) is {side} offset of {where}: it becomes {change.new.offset}"
    click.echo(f"kohort: warning: {line}", err=True)
