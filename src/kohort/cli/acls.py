"""`kohort acls`: who may do what in a running cluster."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from kohort.admin.acls import create_acls, delete_acls, list_acls
from kohort.broker.security.acl import Acl, PatternType
from kohort.cli.acl_options import entries, entry_options, exactly, filters, principal, resource_options, words
from kohort.cli.group_options import cluster_options, format_option, open_cluster
from kohort.cli.output import printable, table
from kohort.records.json_text import to_json

_HEADS = ["TYPE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]


@click.group()
def acls() -> None:
    """Access control lists of a running cluster: who may do what with which topics and groups.

    Works with any Kafka. The words are those of kafka-acls.

    \b
    Examples:
      kohort acls list --bootstrap localhost:9092
      kohort acls add --bootstrap localhost:9092 --allow-principal User:alice --consumer --topic orders --group billing
      kohort acls remove --bootstrap localhost:9092 --topic orders --force
    """


@acls.command("list")
@cluster_options
@resource_options(PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY, PatternType.MATCH)
@click.option("--principal", "principals", multiple=True, type=principal, metavar="TYPE:NAME", help="Only of these.")
@format_option("table", "json")
def list_(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    principals: tuple[str, ...],
    format_: str,
    **said: Any,
) -> None:
    """Every entry, or those of some resources.

    With `--resource-pattern-type match` all that counts for a name is told: what is for it, for its beginnings, and for
    everything.

    \b
    Examples:
      kohort acls list --bootstrap localhost:9092
      kohort acls list --bootstrap localhost:9092 --topic orders --resource-pattern-type match
      kohort acls list --bootstrap localhost:9092 --principal User:alice --format json
    """
    wanted = filters(words(**said))
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        found = list_acls(cluster, wanted)
    _show([acl for acl in found if not principals or acl.principal in principals], format_)


@acls.command()
@cluster_options
@resource_options(PatternType.LITERAL, PatternType.PREFIXED)
@entry_options
@format_option("table", "json")
def add(bootstrap: str, command_config: Path | None, timeout: int, format_: str, **said: Any) -> None:
    """Allow or deny something. What is there already stays as it is.

    \b
    Examples:
      kohort acls add --bootstrap localhost:9092 --allow-principal User:alice --operation Read --topic orders
      kohort acls add --bootstrap localhost:9092 --allow-principal User:app --producer --topic orders
      kohort acls add --bootstrap localhost:9092 --deny-principal User:bob --deny-host 10.0.0.7 --group billing
    """
    meant = words(**said)
    if not meant.resources:
        raise click.UsageError("name a resource: --topic, --group, --transactional-id, --cluster, ...")
    if not meant.allowed and not meant.denied:
        raise click.UsageError("say who: --allow-principal or --deny-principal")
    new = entries(meant)
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        told = create_acls(cluster, new)
    _tell(told, format_, "added")


@acls.command()
@cluster_options
@resource_options(PatternType.LITERAL, PatternType.PREFIXED, PatternType.ANY, PatternType.MATCH)
@entry_options
@click.option("--force", is_flag=True, help="Do not ask.")
@format_option("table", "json")
def remove(bootstrap: str, command_config: Path | None, timeout: int, force: bool, format_: str, **said: Any) -> None:
    """Remove entries: those that `add` would make of the same words, or all of a resource if nobody is named.

    \b
    Examples:
      kohort acls remove --bootstrap localhost:9092 --allow-principal User:alice --operation Read --topic orders
      kohort acls remove --bootstrap localhost:9092 --topic orders --force
      kohort acls remove --bootstrap localhost:9092 --topic orders --resource-pattern-type match --force
    """
    meant = words(**said)
    if not meant.resources:
        raise click.UsageError("name a resource: --topic, --group, --transactional-id, --cluster, ...")
    is_of_some = bool(meant.allowed or meant.denied)
    if not is_of_some and (meant.operations or meant.is_producer or meant.is_consumer):
        raise click.UsageError("say whose: --allow-principal or --deny-principal")
    wanted = [exactly(acl, meant.pattern_type) for acl in entries(meant)] if is_of_some else filters(meant)
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        if not force:
            going = list_acls(cluster, wanted)
            for line in _lines(going):
                click.echo(line, err=True)
            click.confirm(f"Remove {len(going)} entries?", abort=True, err=True)
        told = delete_acls(cluster, wanted)
    _tell(told, format_, "removed")


def _row(acl: Acl) -> list[str]:
    return [
        acl.resource_type.name,
        acl.name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
    ]


def _object(acl: Acl) -> dict[str, str]:
    names = ("resource_type", "name", "pattern_type", "principal", "host", "operation", "permission")
    return dict(zip(names, _row(acl), strict=True))


def _lines(found: Iterable[Acl]) -> Iterable[str]:
    return table(_HEADS, [_row(acl) for acl in found])


def _show(found: list[Acl], format_: str) -> None:
    if format_ == "json":
        click.echo(to_json([_object(acl) for acl in found], indent=1))
    elif found:
        for line in _lines(found):
            click.echo(line)


def _tell(told: Mapping[Acl, str | None], format_: str, done: str) -> None:
    """What became of each entry."""
    failed = {acl: reason for acl, reason in told.items() if reason is not None}
    if format_ == "json":
        rows = [
            {**_object(acl), "status": "Successful" if reason is None else f"Error: {reason}"}
            for acl, reason in told.items()
        ]
        click.echo(to_json(rows, indent=1))
    else:
        _show([acl for acl in told if acl not in failed], format_)
    for acl, reason in failed.items():
        what = printable(" ".join(_row(acl)))
        click.echo(f"kohort: {what} was not {done}: {reason}", err=True)
    if failed:
        sys.exit(1)
