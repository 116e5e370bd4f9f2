"""The options of a command as a table, from the command itself."""

from collections.abc import Iterator

import click


def options(command: click.Command, name: str | None = None) -> Iterator[str]:
    yield f"Options of `kohort {name or command.name}`:"
    yield ""
    yield "| option | |"
    yield "|---|---|"
    for option in command.params:
        if isinstance(option, click.Option):
            names = ", ".join(f"`{name}`" for name in option.opts)
            yield cells(names, f"{option.help or ''}{_more(option)}")
    yield ""


def cells(*told: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in told)} |"


def _more(option: click.Option) -> str:
    choices = f" {' or '.join(f'`{choice}`' for choice in option.type.choices)}" if _chooses(option) else ""
    default = f" Default: `{option.default}`." if option.show_default else ""
    return f"{choices}{'.' if choices else ''}{default}"


def _chooses(option: click.Option) -> bool:
    return isinstance(option.type, click.Choice)
