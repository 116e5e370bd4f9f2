"""Where a plan of offsets goes: to stdout, unless that is a terminal that its names would move, or into a file."""

import sys
from pathlib import Path

import click

from kohort.cli.output import one_line
from kohort.cli.whole_file import write_whole
from kohort.errors import KohortError


def put_plan(text: str, out: Path | None, offsets: int, groups: int, *, instead: str) -> None:
    """`instead` says what takes names that a terminal cannot."""
    if out is not None:
        write_whole(out, text)
        click.echo(f"kohort: {offsets} offsets, {groups} groups: written to {out}", err=True)
        return
    if sys.stdout.isatty() and any(one_line(line) != line for line in text.split("\n")):
        raise KohortError(f"there are names that would move a terminal: {instead} takes them")
    click.echo(text, nl=False)
