"""The three streams that a command starts with, as they may be: closed, or of a terminal that lacks characters."""

import io
import os
import sys

from kohort.errors import KohortError


def mend_streams() -> None:
    """Make stdin, stdout and stderr usable.

    What is closed leaves its number free, and the next file that is opened would get it: output would go there. So
    the numbers are taken first. Nobody can read what is told to a closed stdout, and that is a failure.
    """
    stdout_is_closed = sys.stdout is None
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character gets its number
    if stdout_is_closed:
        raise KohortError("stdout is closed")


def drop_unwritten() -> None:
    """What stdout could not take is not tried again: Python would complain about it at the very end."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
