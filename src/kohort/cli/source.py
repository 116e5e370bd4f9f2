"""The argument SOURCE: a place on disk or a live cluster."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def _files(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The shell knows what is on disk."""
    return [CompletionItem(incomplete, type="file")]


def source_argument(command: F) -> F:
    return click.argument("source", shell_complete=_files)(command)
