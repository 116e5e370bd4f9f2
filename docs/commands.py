"""Writes `docs/reference/commands.md`: every command with what its `--help` says."""

from collections.abc import Iterator

import click

from kohort.cli.main import cli

INTRO = """# Commands

<!-- written by `python -m docs` from the commands themselves -->

Times are ISO 8601 (`2026-11-16T03:12`, UTC unless they say otherwise) or milliseconds since 1970. `SOURCE` is a segment
file, a partition directory, a Kafka log directory, or `kafka://HOST:PORT` of a live cluster. Exit codes: 0 done, 1 the
work failed or a log is damaged (a line on stderr says how), 2 wrong usage.
"""
WIDTH = 100


def page() -> str:
    """The whole of `docs/reference/commands.md`."""
    root = click.Context(cli, info_name="kohort", terminal_width=WIDTH, **cli.context_settings)
    return "\n".join([INTRO, *_told(cli, root)]).rstrip("\n") + "\n"


def _told(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}"
    yield ""
    yield "```text"
    yield command.get_help(context)
    yield "```"
    yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _told(below, click.Context(below, parent=context, info_name=name))
