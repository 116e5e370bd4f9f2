"""The whole command, run inside of the test: what it prints, how it ends, and that no exception gets out."""

import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import click

from kohort.cli.main import cli, main


class Done(NamedTuple):
    code: int | str | None
    stdout: str
    stderr: str


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and subcommand, by the words that name it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield (*path, name), found
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))


class _Stream(io.TextIOWrapper):
    """Text that is kept, and that somebody may look at while it is written."""

    def __init__(self, on_write: Callable[[str], None]) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self._on_write = on_write

    def write(self, text: str) -> int:
        written = super().write(text)
        self._on_write(text)
        return written

    def text(self) -> str:
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


def run_main(*arguments: str | Path, on_stderr: Callable[[str], None] = lambda _: None) -> Done:
    """`kohort ARGUMENTS`; anything but a proper end is raised, as people would see it in a traceback."""
    out, err = _Stream(lambda _: None), _Stream(on_stderr)
    given, sys.argv = sys.argv, ["kohort", *map(str, arguments)]
    code: int | str | None = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = given
    return Done(code, out.text(), err.text())


@contextmanager
def ctrl_c_as_usual() -> Iterator[None]:
    """SIGINT does what it does in a process that somebody has started at a terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def silent_broker(on_connect: Callable[[], None]) -> Iterator[str]:
    """A port that takes connections and never says a word; the first one is told of."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def accept() -> None:
            taken.append(server.accept()[0])
            taken[0].recv(1)  # a request is under way
            on_connect()

        waiting = threading.Thread(target=accept, daemon=True)
        waiting.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for connection in taken:
            connection.close()


def interrupt_this_process() -> None:
    os.kill(os.getpid(), signal.SIGINT)
