"""What the commands print: tables, JSON and CSV that no group id can break, and progress on a terminal."""

import contextlib
import csv
import io
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import click

from kohort.clock import parse_moment

_LARGE_INPUT = 32 * 1024 * 1024
_WIDEST_CELL = 80
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str) -> str:
    """Text for a terminal or a line: control, bidirectional and other invisible characters are shown as escapes."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return one_line(text.replace("\\", "\\\\"))


def one_line(text: str) -> str:
    """A message as one line; what it names has escapes already, or comes from a file system, where all is possible."""
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _UNPRINTABLE else character
        for character in text
    )


def time_text(timestamp: int) -> str:
    """A time in milliseconds as people read it; what lies outside of the calendar stays a number."""
    if timestamp == -1:
        return "-"
    try:
        second = datetime.fromtimestamp(timestamp // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp)
    return f"{second:%Y-%m-%d %H:%M:%S}.{timestamp % 1000:03d}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned lines; what is too long for people is cut, JSON has it whole."""
    cells = [[shortened(printable(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for row in (headings, *cells):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def shortened(text: str, longest: int = _WIDEST_CELL) -> str:
    """Text that is not endless: of what is too long, the beginning and the end."""
    return text if len(text) <= longest else f"{text[: longest - 21]}…{text[-20:]}"


def csv_line(cells: Sequence[object]) -> str:
    """A line of CSV whose text no spreadsheet takes for a formula."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([_csv_cell(cell) for cell in cells])
    return line.getvalue()


def _csv_cell(cell: object) -> object:
    """Text that might be a formula gets a quote in front, and so does text that begins with one, to be told apart."""
    if not isinstance(cell, str):
        return cell
    return ("'" if cell.startswith(("=", "+", "-", "@", "\t", "\r", "'")) else "") + printable(cell)


@contextlib.contextmanager
def progress(what: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, if that is a terminal and the input is large enough to wait for."""
    if total_bytes < _LARGE_INPUT or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total_bytes)
        yield lambda done: bar.advance(task, done)


def moment(value: str) -> int:
    """A time on the command line: ISO 8601 (UTC unless it names a zone) or milliseconds since 1970."""
    try:
        return parse_moment(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
