"""`kohort quotas`: how much users and client ids of a running cluster may send, fetch and have computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kohort.admin.quotas import CLIENT_ID, USER, Names, alter_quotas, list_quotas
from kohort.cli.group_options import cluster_options, format_option, open_cluster, text
from kohort.cli.output import table
from kohort.records.json_text import to_json

F = TypeVar("F", bound=Callable[..., Any])

_RATES = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_DEFAULT = "<default>"


@click.group()
def quotas() -> None:
    """How much users and clients of a cluster may send, fetch and have done.

    Works with any Kafka from 2.6 on. A client that takes more is told to wait. Of all quotas that fit the most exact
    one counts: one for user and client id before one for the user, and that before one for the client id.

    \b
    Examples:
      kohort quotas list --bootstrap localhost:9092
      kohort quotas set --bootstrap localhost:9092 --user alice --producer-byte-rate 1048576
      kohort quotas remove --bootstrap localhost:9092 --user alice
    """


def _entity_options(command: F) -> F:
    """Whom a quota is for."""
    options = (
        click.option("--user", type=text, help="This user."),
        click.option("--user-defaults", is_flag=True, help="Users that have no quota of their own."),
        click.option("--client-id", type=text, help="This client id."),
        click.option("--client-defaults", is_flag=True, help="Client ids that have no quota of their own."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _names(
    user: str | None, user_defaults: bool, client_id: str | None, client_defaults: bool
) -> dict[str, str | None]:
    if (user is not None and user_defaults) or (client_id is not None and client_defaults):
        raise click.UsageError("give a name or the defaults, not both")
    names: dict[str, str | None] = {}
    if user is not None or user_defaults:
        names[USER] = user
    if client_id is not None or client_defaults:
        names[CLIENT_ID] = client_id
    return names


def _someone(names: Names) -> Names:
    if not names:
        raise click.UsageError("say whom it is for: --user, --user-defaults, --client-id or --client-defaults")
    return names


@quotas.command("list")
@cluster_options
@_entity_options
@format_option("table", "json")
def list_(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    user: str | None,
    user_defaults: bool,
    client_id: str | None,
    client_defaults: bool,
    format_: str,
) -> None:
    """Show quotas: all of them, or those of a user or a client id.

    \b
    Examples:
      kohort quotas list --bootstrap localhost:9092
      kohort quotas list --bootstrap localhost:9092 --user alice --format json
    """
    names = _names(user, user_defaults, client_id, client_defaults)
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        found = list_quotas(cluster, names)
    if format_ == "json":
        rows = [
            {
                "entity": [{"type": kind, "name": name} for kind, name in sorted(one.names.items(), reverse=True)],
                "quotas": dict(one.values),
            }
            for one in found
        ]
        click.echo(to_json(rows, indent=1))
        return
    keys = list(dict.fromkeys([*_RATES, *(key for one in found for key in one.values)]))
    cells = [
        [
            *(_shown(one.names, kind) for kind in (USER, CLIENT_ID)),
            *(f"{one.values[key]:.15g}" if key in one.values else "-" for key in keys),
        ]
        for one in found
    ]
    for line in table(["USER", "CLIENT-ID", *(key.upper().replace("_", "-") for key in keys)], cells):
        click.echo(line)


def _shown(names: Names, kind: str) -> str:
    if kind not in names:
        return "-"
    name = names[kind]
    return _DEFAULT if name is None else name


@quotas.command("set")
@cluster_options
@_entity_options
@click.option("--producer-byte-rate", type=click.IntRange(min=1), help="Bytes a second that may be sent.")
@click.option("--consumer-byte-rate", type=click.IntRange(min=1), help="Bytes a second that may be fetched.")
@click.option(
    "--request-percentage",
    type=click.FloatRange(min=0, min_open=True),
    help="Per cent of the time of a thread that requests may take.",
)
def set_(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    user: str | None,
    user_defaults: bool,
    client_id: str | None,
    client_defaults: bool,
    producer_byte_rate: int | None,
    consumer_byte_rate: int | None,
    request_percentage: float | None,
) -> None:
    """Set quotas of a user, a client id, or a user with a client id; what is not named stays as it is.

    \b
    Examples:
      kohort quotas set --bootstrap localhost:9092 --client-id reports --consumer-byte-rate 1048576
      kohort quotas set --bootstrap localhost:9092 --user-defaults --request-percentage 20
    """
    names = _someone(_names(user, user_defaults, client_id, client_defaults))
    given = zip(_RATES, (producer_byte_rate, consumer_byte_rate, request_percentage), strict=True)
    values = {key: float(value) for key, value in given if value is not None}
    if not values:
        raise click.UsageError("give --producer-byte-rate, --consumer-byte-rate or --request-percentage")
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        alter_quotas(cluster, names, values)


@quotas.command()
@cluster_options
@_entity_options
@click.option("--quota", "keys", multiple=True, type=click.Choice(_RATES), help="This one; all if none is named.")
def remove(
    bootstrap: str,
    command_config: Path | None,
    timeout: int,
    user: str | None,
    user_defaults: bool,
    client_id: str | None,
    client_defaults: bool,
    keys: tuple[str, ...],
) -> None:
    """Remove quotas of a user, a client id, or a user with a client id.

    \b
    Examples:
      kohort quotas remove --bootstrap localhost:9092 --client-defaults
      kohort quotas remove --bootstrap localhost:9092 --user alice --quota producer_byte_rate
    """
    names = _someone(_names(user, user_defaults, client_id, client_defaults))
    with open_cluster(bootstrap, command_config, timeout) as cluster:
        alter_quotas(cluster, names, {}, keys or _RATES)
