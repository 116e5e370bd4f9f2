"""Where a run writes before anybody sees it, and how its tables take the place of the old ones.

All that a run makes stands in a hidden directory beside the tables. When everything is there, each table is renamed
into its place. A run that fails before that has changed nothing. One that dies in the middle of the renames has left a
note that it was at it, and the next run finishes them. A lock keeps two runs out of each other's way.
"""

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from kohort.errors import KohortError

_HIDDEN = ".kohort"
_REPLACING = "replacing"


class BadOutput(KohortError):
    """What was given is no directory that a run could write to."""


class Staging:
    """The hidden directory of one run, from `with` to the end of its block; what is not published by then is gone."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._hidden = out / _HIDDEN
        self.new, self._old = self._hidden / "new", self._hidden / "old"
        self._lock: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._lock = _locked(self._hidden, self._out)
            self._finish_what_was_begun()
            self._clear()
            self.new.mkdir()
        except OSError as error:
            raise BadOutput(f"{error.filename or self._out}: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._clear()
        assert self._lock is not None
        os.unlink(self._lock.name)
        self._hidden.rmdir()
        self._lock.close()

    def path(self, name: str) -> str:
        """Where to write a table."""
        return str(self.new / name)

    def publish(self, tables: Iterable[str]) -> None:
        """Put the new tables in the place of the old ones. Ctrl-C waits until that is done."""
        wanted = set(tables)
        for extra in self.new.iterdir():
            if extra.name not in wanted:
                shutil.rmtree(extra)
        with _uninterrupted():
            (self._hidden / _REPLACING).touch()
            self._replace()

    def _finish_what_was_begun(self) -> None:
        if (self._hidden / _REPLACING).exists():
            self._replace()

    def _replace(self) -> None:
        self._old.mkdir(exist_ok=True)
        for new in sorted(self.new.iterdir()):
            place = self._out / new.name
            if place.exists():
                os.rename(place, self._old / new.name)
            os.rename(new, place)
        (self._hidden / _REPLACING).unlink()

    def _clear(self) -> None:
        for directory in (self.new, self._old):
            if directory.exists():
                shutil.rmtree(directory)


def is_being_replaced(out: Path) -> bool:
    """Whether a run died while it put its tables into their places: some are new, some are old."""
    return (out / _HIDDEN / _REPLACING).exists()


def _locked(hidden: Path, out: Path) -> IO[bytes]:
    """A file that nobody else has locked, and nobody will until it is closed or this process ends."""
    import fcntl  # Spark does not start on systems without it

    while True:
        hidden.mkdir(parents=True, exist_ok=True)
        file = (hidden / "lock").open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise BadOutput(f"{out}: another run is writing to it") from None
        if os.path.exists(file.name) and os.path.samestat(os.stat(file.name), os.fstat(file.fileno())):
            return file
        file.close()  # a run that has just ended took it away


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C takes effect at the end of the block. Only the main thread hears of it in any case."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        signal.raise_signal(signal.SIGINT)
