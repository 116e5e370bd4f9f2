"""The `kohort` command: its options, its exit codes (0 done, 1 the work failed, 2 wrong usage), its subcommands."""

import contextlib
import importlib
import io
import os
import pickle
import sys
import threading
from collections.abc import Iterator

import click

from kohort import records
from kohort.errors import KohortError

_COMMANDS = {
    "demo": "A log made, dumped and replayed before your eyes.",
    "dump": "Every record of an offsets topic, decoded.",
    "groups": "Consumer groups of a running cluster.",
    "pipeline": "The offsets topic as tables, made by Spark.",
    "report": "The tables of a run as one HTML file.",
    "restore": "The offsets of groups as they were at a time.",
    "serve": "A broker that Kafka clients connect to.",
    "state": "Groups and offsets as a broker would load them.",
}


@contextlib.contextmanager
def _told_if_slow() -> Iterator[None]:
    """The first import on a machine compiles; somebody at a terminal is told why nothing happens."""
    line = "kohort: compiling the decoding loops; this happens once on a machine"
    timer = threading.Timer(1.5, click.echo, [line], {"err": True})
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Commands(click.Group):
    """Subcommands that are imported when they are asked for, so that each starts with no more than it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in _COMMANDS:
            return None
        try:
            with _told_if_slow():
                command: click.Command = getattr(importlib.import_module(f"kohort.cli.{name}"), name)
        except (EOFError, pickle.UnpicklingError):
            kept = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(os.path.dirname(records.__file__), "__pycache__")
            raise KohortError(f"the compiled code kept in {kept} is damaged: remove that directory") from None
        command.help = command.help or _COMMANDS[name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kohort")
def cli() -> None:
    """Kafka's consumer groups: their coordinator, and the log that it keeps."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character gets its number
    try:
        cli.main()
    except KohortError as error:
        click.echo(f"kohort: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"kohort: {where}{error.strerror or error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
