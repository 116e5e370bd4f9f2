"""`kohort users`: who can log in with a password, in a running cluster or before there is one.

A password is asked for, or read from a file or stdin; it is no argument, which everybody on the machine could read. It
is salted here, so that it does not travel.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kohort.admin.users import delete_user, list_users, put_user
from kohort.broker.security.scram_credentials import (
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    USUAL_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_of,
    new_salt,
    salted,
)
from kohort.broker.security.users import Change
from kohort.cli.command_config import COMMAND_CONFIG_HELP
from kohort.cli.group_options import format_option, open_cluster, text
from kohort.cli.output import printable, table
from kohort.errors import KohortError
from kohort.records.json_text import to_json

F = TypeVar("F", bound=Callable[..., Any])
_BY_NAME = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}


class _NotDone(KohortError):
    """Why a user could not be added or deleted."""


@click.group()
def users() -> None:
    """Users who log in with SCRAM, or with PLAIN to a broker of ours.

    --bootstrap changes a running cluster, any Kafka from 2.7 on. --data changes the directory of a broker of ours that
    does not run, so that there is a first user who can log in.

    \b
    Examples:
      kohort users add admin --data broker
      kohort users add alice --bootstrap localhost:9093 --command-config admin.properties
      kohort users list --bootstrap localhost:9093 --command-config admin.properties
    """


def _place_options(command: F) -> F:
    options = (
        click.option("--bootstrap", "--bootstrap-server", metavar="HOST:PORT", help="A broker of the cluster."),
        click.option("--command-config", type=click.Path(path_type=Path), help=COMMAND_CONFIG_HELP),
        click.option(
            "--timeout",
            type=click.IntRange(min=1, max=86_400_000),
            default=30_000,
            show_default=True,
            help="How long to wait for the cluster, in milliseconds.",
        ),
        click.option(
            "--data",
            type=click.Path(file_okay=False, path_type=Path),
            help="The directory of a broker that does not run.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _mechanisms_option(command: F) -> F:
    return click.option(
        "--mechanism",
        "mechanisms",
        multiple=True,
        type=click.Choice(list(_BY_NAME), case_sensitive=False),
        help="For this mechanism alone; may be given twice.  [default: both]",
    )(command)


@users.command("list")
@_place_options
@format_option("table", "json")
def list_(bootstrap: str | None, command_config: Path | None, timeout: int, data: Path | None, format_: str) -> None:
    """Who can log in, and by which mechanisms.

    \b
    Examples:
      kohort users list --bootstrap localhost:9093 --command-config admin.properties
      kohort users list --data broker --format json
    """
    if _is_offline(bootstrap, data):
        assert data is not None
        found = asyncio.run(_listed_offline(data))
    else:
        assert bootstrap is not None
        with open_cluster(bootstrap, command_config, timeout) as cluster:
            found = [(user.name, user.iterations) for user in list_users(cluster)]
    if format_ == "json":
        rows = [
            {"user": name, "mechanisms": {one.sasl_name: count for one, count in sorted(known.items())}}
            for name, known in found
        ]
        click.echo(to_json(rows, indent=1))
    elif found:
        cells = [[name, ", ".join(one.sasl_name for one in sorted(known))] for name, known in found]
        click.echo("\n".join(table(["USER", "MECHANISMS"], cells)))


@users.command("add")
@click.argument("name", type=text)
@_place_options
@_mechanisms_option
@click.option("--password-file", type=click.File(encoding="utf-8"), help="Where the password is; - reads stdin.")
@click.option(
    "--iterations",
    type=click.IntRange(LEAST_ITERATIONS, MOST_ITERATIONS),
    default=USUAL_ITERATIONS,
    show_default=True,
    help="How often it is salted: how hard it is to guess for whoever has stolen what the broker keeps.",
)
def add(
    name: str,
    bootstrap: str | None,
    command_config: Path | None,
    timeout: int,
    data: Path | None,
    mechanisms: tuple[str, ...],
    password_file: Any,
    iterations: int,
) -> None:
    """Let somebody log in, or give him another password.

    The password is asked for, twice, or read from a file: its first line.

    \b
    Examples:
      kohort users add admin --data broker
      kohort users add alice --bootstrap localhost:9093 --command-config admin.properties --password-file -
    """
    is_offline = _is_offline(bootstrap, data)
    if not name:
        raise click.UsageError("a user has a name")
    wanted = [_BY_NAME[one] for one in mechanisms] or list(ScramMechanism)
    password = _password(password_file)
    if is_offline:
        assert data is not None
        changes: dict[Change, ScramCredential | None] = {}
        for mechanism in wanted:
            salt = new_salt()
            salted_password = salted(mechanism, password, salt, iterations)
            changes[name, mechanism] = credential_of(mechanism, salted_password, salt, iterations)
        asyncio.run(_change_offline(data, changes))
    else:
        assert bootstrap is not None
        with open_cluster(bootstrap, command_config, timeout) as cluster:
            _check(name, put_user(cluster, name, password, wanted, iterations))
    click.echo(f"User {printable(name)} can log in with {', '.join(one.sasl_name for one in wanted)}.")


@users.command("delete")
@click.argument("name", type=text)
@_place_options
@_mechanisms_option
def delete(
    name: str,
    bootstrap: str | None,
    command_config: Path | None,
    timeout: int,
    data: Path | None,
    mechanisms: tuple[str, ...],
) -> None:
    """Let somebody log in no more. Whoever is logged in stays so until a login has to be new.

    \b
    Examples:
      kohort users delete alice --bootstrap localhost:9093 --command-config admin.properties
    """
    wanted = [_BY_NAME[one] for one in mechanisms]
    if _is_offline(bootstrap, data):
        assert data is not None
        known = dict(asyncio.run(_listed_offline(data))).get(name, {})
        doomed = [one for one in wanted or known if one in known]
        _check(name, None if doomed else f"there is no user {name!r}")
        asyncio.run(_change_offline(data, {(name, one): None for one in doomed}))
    else:
        assert bootstrap is not None
        with open_cluster(bootstrap, command_config, timeout) as cluster:
            known = {user.name: user.iterations for user in list_users(cluster)}.get(name, {})
            _check(name, delete_user(cluster, name, wanted or known or ScramMechanism))
    click.echo(f"User {printable(name)} can log in no more{' with ' + ', '.join(mechanisms) if mechanisms else ''}.")


def _is_offline(bootstrap: str | None, data: Path | None) -> bool:
    if (bootstrap is None) == (data is None):
        raise click.UsageError("give either --bootstrap or --data")
    return data is not None


def _check(name: str, reason: str | None) -> None:
    if reason is not None:
        raise _NotDone(f"user {name!r}: {reason}")


def _password(file: Any) -> str:
    if file is not None:
        password = str(file.readline()).rstrip("\r\n")
    elif sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        raise click.UsageError("there is nobody to be asked for the password: --password-file - reads it from stdin")
    if not password:
        raise click.UsageError("a password is not empty")
    return password


async def _listed_offline(data: Path) -> list[tuple[str, dict[ScramMechanism, int]]]:
    from kohort.broker.offline import offline_broker

    if not data.is_dir():
        raise _NotDone(f"{data}: is no directory")
    with offline_broker(str(data.absolute())) as broker:
        return [(name, broker.users.mechanisms_of(name)) for name in broker.users.names()]


async def _change_offline(data: Path, changes: dict[Change, ScramCredential | None]) -> None:
    from kohort.broker.offline import offline_broker

    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    with offline_broker(str(data.absolute())) as broker:
        broker.users.change(changes, told.set_result)
        error = await told
    if error:
        raise _NotDone(f"{data}: {error.name}")
