"""`kohort groups list` and `kohort groups describe`: which groups there are, their members, states and lag."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kohort.admin.groups import REBALANCING, STATES, TYPES, Described, Listed, Member, describe_groups, list_groups
from kohort.admin.lag import LagRow, lag_of
from kohort.admin.refusals import named
from kohort.cli.group_options import (
    check_groups,
    chosen_groups,
    cluster_options,
    format_option,
    group_options,
    open_cluster,
)
from kohort.cli.output import printable, table
from kohort.records.json_text import to_json

_MISSING = "-"
_ALL = ""


def _one_of(known: Sequence[str], what: str) -> Any:
    """A filter: nothing, or some of the known words with commas between, whatever their case."""

    def parse(value: str) -> frozenset[str]:
        words = {word.lower(): word for word in known}
        asked = [word.strip().lower() for word in value.split(",") if word.strip()]
        for word in asked:
            if word not in words:
                raise click.BadParameter(f"{word!r} is no {what}; there are {', '.join(known)}")
        return frozenset(words[word] for word in asked)

    return parse


@click.command("list")
@cluster_options
@click.option(
    "--state",
    "states",
    is_flag=False,
    flag_value=_ALL,
    type=_one_of(STATES, "state"),
    metavar="[STATE,...]",
    help="Tell the states too; only groups in some of them.",
)
@click.option(
    "--type",
    "types",
    is_flag=False,
    flag_value=_ALL,
    type=_one_of(TYPES, "type"),
    metavar="[TYPE,...]",
    help="Tell the types too (classic, consumer); only groups of some of them.",
)
@format_option("table", "json")
def list_(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    states: frozenset[str] | None,
    types: frozenset[str] | None,
    format_: str,
) -> None:
    """Every consumer group, one a line.

    \b
    Examples:
      kohort groups list --bootstrap localhost:9092
      kohort groups list --bootstrap localhost:9092 --state
      kohort groups list --bootstrap localhost:9092 --state stable,empty --format json
    """
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        listed = list_groups(cluster)
    if states:
        listed = [group for group in listed if group.state in states]
    if types:
        listed = [group for group in listed if group.type in types]
    if format_ == "json":
        click.echo(to_json([group._asdict() for group in listed], indent=1))
        return
    for line in _list_lines(listed, with_types=types is not None, with_states=states is not None):
        click.echo(line)


def _list_lines(listed: Sequence[Listed], *, with_types: bool, with_states: bool) -> Iterable[str]:
    if not with_types and not with_states:
        return [printable(group.group) for group in listed]
    heads = ["GROUP", *(["TYPE"] if with_types else []), *(["STATE"] if with_states else [])]
    return table(
        heads,
        [
            [group.group, *([group.type] if with_types else []), *([group.state] if with_states else [])]
            for group in listed
        ],
    )


@click.command()
@cluster_options
@group_options
@click.option("--offsets", is_flag=True, help="Offsets and lag; the default.")
@click.option("--members", is_flag=True, help="The members.")
@click.option("--state", is_flag=True, help="The state, the coordinator, how many members.")
@click.option("--verbose", is_flag=True, help="With --members what they have; with --offsets the leader epochs.")
@format_option("table", "json")
def describe(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    names: tuple[str, ...],
    all_groups: bool,
    offsets: bool,
    members: bool,
    state: bool,
    verbose: bool,
    format_: str,
) -> None:
    """Groups with their lag, members or state.

    \b
    Examples:
      kohort groups describe --bootstrap localhost:9092 --group billing
      kohort groups describe --bootstrap localhost:9092 --group billing --members --verbose
      kohort groups describe --bootstrap localhost:9092 --all-groups --state
      kohort groups describe --bootstrap localhost:9092 --all-groups --format json
    """
    check_groups(names, all_groups)
    if offsets + members + state > 1:
        raise click.UsageError("at most one of --offsets, --members and --state")
    if state and verbose:
        raise click.UsageError("--verbose goes with --offsets or --members")
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        found = describe_groups(cluster, chosen_groups(cluster, names, all_groups))
        there = {name: group for name, group in sorted(found.items()) if group.exists}
        lags = None if members or state else lag_of(cluster, there)
    if format_ == "json":
        click.echo(to_json(_json(there, lags), indent=1))
    else:
        _print_groups(there, lags, members=members, verbose=verbose)
    missing = [name for name, group in found.items() if not group.exists]
    for name in missing:
        click.echo(f"kohort: Consumer group {named(name)} does not exist.", err=True)
    if missing:
        sys.exit(1)


def _json(groups: Mapping[str, Described], lags: Mapping[str, Sequence[LagRow]] | None) -> dict[str, Any]:
    told: dict[str, Any] = {"groups": {name: _group(group) for name, group in groups.items()}}
    if lags is not None:
        told["offsets"] = [_lag(row) for rows in lags.values() for row in rows]
    return told


def _group(group: Described) -> dict[str, Any]:
    return {
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "coordinator": group.coordinator._asdict(),
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "instance_id": member.instance_id,
                "subscription": member.subscription,
                "assignment": member.assignment,
            }
            for member in group.members
        ],
    }


def _lag(row: LagRow) -> dict[str, Any]:
    return {
        "group": row.group,
        "topic": row.topic,
        "partition": row.partition,
        "offset": None if row.committed is None else row.committed.offset,
        "leader_epoch": None if row.committed is None else row.committed.leader_epoch,
        "metadata": None if row.committed is None else row.committed.metadata,
        "log_end_offset": row.log_end_offset,
        "lag": row.lag,
        "member_id": None if row.member is None else row.member.member_id,
        "client_host": None if row.member is None else row.member.client_host,
        "client_id": None if row.member is None else row.member.client_id,
        "problem": row.problem,
    }


def _print_groups(
    groups: Mapping[str, Described], lags: Mapping[str, Sequence[LagRow]] | None, *, members: bool, verbose: bool
) -> None:
    for name, group in groups.items():
        if group.state == "Empty":
            click.echo(f"\nConsumer group {named(name)} has no active members.", err=True)
        elif group.state in REBALANCING:
            click.echo(f"\nWarning: Consumer group {named(name)} is rebalancing.", err=True)
        if lags is not None:
            heads, rows = _offset_rows(lags[name], verbose)
        elif members:
            heads, rows = _member_rows(group, verbose)
        else:
            heads, rows = _state_rows(group)
        if rows:
            click.echo()
            for line in table(heads, rows):
                click.echo(line)
    for row in [row for rows in (lags or {}).values() for row in rows if row.problem]:
        where = named(f"{row.topic}-{row.partition}")
        click.echo(f"kohort: group {named(row.group)}: the end of {where} is not known: {row.problem}", err=True)


def _offset_rows(rows: Sequence[LagRow], verbose: bool) -> tuple[list[str], list[list[str]]]:
    heads = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "CURRENT-OFFSET"]
    heads += ["LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    cells = []
    for row in rows:
        offset, epoch = (None, -1) if row.committed is None else (row.committed.offset, row.committed.leader_epoch)
        who = ("", "", "") if row.member is None else _who(row.member)
        cells.append([row.group, row.topic, str(row.partition), *([_number(epoch)] if verbose else [])])
        cells[-1] += [
            _number(offset),
            _number(row.log_end_offset),
            _lag_text(row.lag),
            *(cell or _MISSING for cell in who),
        ]
    return heads, cells


def _who(member: Member) -> tuple[str, str, str]:
    return member.member_id, member.client_host, member.client_id


def _member_rows(group: Described, verbose: bool) -> tuple[list[str], list[list[str]]]:
    static = any(member.instance_id for member in group.members)
    heads = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", "#PARTITIONS"]
    cells = [
        [
            group.group,
            member.member_id,
            *([member.instance_id or _MISSING] if static else []),
            member.client_host,
            member.client_id,
            _MISSING if member.assignment is None else str(len(member.assignment)),
            *([_assignment(member)] if verbose else []),
        ]
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]
    return [*heads, *(["ASSIGNMENT"] if verbose else [])], cells


def _assignment(member: Member) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in member.assignment or ():
        topics.setdefault(topic, []).append(partition)
    told = [f"{topic}({','.join(map(str, numbers))})" for topic, numbers in topics.items()]
    return ", ".join(told) or _MISSING


def _state_rows(group: Described) -> tuple[list[str], list[list[str]]]:
    node = group.coordinator
    coordinator = f"{node.host}:{node.port} ({node.id})"
    heads = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    return heads, [[group.group, coordinator, group.protocol or _MISSING, group.state, str(len(group.members))]]


def _number(value: int | None) -> str:
    return _MISSING if value is None or value < 0 else str(value)


def _lag_text(value: int | None) -> str:
    return _MISSING if value is None else str(value)
