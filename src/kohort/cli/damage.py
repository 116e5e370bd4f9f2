"""Damage met on the way: each piece of it one line on stderr, and exit code 1 in the end."""

import click

from kohort.cli.output import one_line
from kohort.errors import CorruptLog


class DamageReport:
    """Tells and counts damage."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, damage: CorruptLog) -> None:
        self.count += 1
        click.echo(f"kohort: damaged: {one_line(str(damage))}", err=True)

    def exit(self) -> None:
        """End with exit code 1 if anything was damaged."""
        if self.count:
            raise click.exceptions.Exit(1)
