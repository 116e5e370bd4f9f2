"""The `kohort` command: its options, its subcommands, and how it ends.

Exit codes: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted. Whatever goes wrong is one line on stderr.
"""

import contextlib
import importlib
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from kohort import records
from kohort.cli.output import one_line
from kohort.cli.streams import drop_unwritten, mend_streams
from kohort.errors import KohortError

_INTERRUPTED = 130
"""As shells have it: 128 and the number of the signal."""

_COMMANDS = {
    "acls": "Who may do what in a running cluster.",
    "certs": "Certificates for development: an authority, brokers, clients.",
    "completion": "A script that has a shell complete commands, options and files.",
    "demo": "A broker, a story told by real clients, and its report.",
    "dump": "Every record of an offsets topic, decoded.",
    "groups": "Consumer groups of a running cluster.",
    "migrate": "Topics and groups into another cluster, verified.",
    "pipeline": "The offsets topic as tables, made by Spark.",
    "quotas": "How much users and clients of a cluster may send, fetch and have done.",
    "report": "The tables of a run as one HTML file.",
    "restore": "The offsets of groups as they were at a time.",
    "serve": "A broker that Kafka clients connect to.",
    "state": "Groups and offsets as a broker would load them.",
    "users": "Users who log in with a password.",
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

    def invoke(self, ctx: click.Context) -> Any:
        """Ctrl-C is not the answer "no" to a question, which has an exit code of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """The commands by their names alone: whoever presses Tab does not wait for imports."""
        if not ctx.args and not incomplete.startswith("-"):
            return [CompletionItem(name, help=told) for name, told in _COMMANDS.items() if name.startswith(incomplete)]
        return super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


class _Interrupted(Exception):
    """Somebody has pressed Ctrl-C, and what was under way is put in order."""


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  kohort demo
  kohort serve --memory
  kohort state /var/lib/kafka/data
  kohort pipeline /var/lib/kafka/data --out tables && kohort report tables
  eval "$(kohort completion bash)"
""",
)
@click.version_option(package_name="kohort")
def cli() -> None:
    """Kafka's consumer groups: their coordinator, and the log that it keeps."""


def main() -> None:
    try:
        mend_streams()
        cli.main(prog_name="kohort", color=False if os.environ.get("NO_COLOR") else None)
    except KohortError as error:
        _end(str(error), 1)
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        _end(f"{where}{error.strerror or error}", 1)
    except (_Interrupted, KeyboardInterrupt):
        _end("interrupted", _INTERRUPTED)


def _end(told: str, code: int) -> None:
    click.echo(f"kohort: {one_line(told)}", err=True)
    drop_unwritten()
    sys.exit(code)


if __name__ == "__main__":
    main()
