"""Where a demo leaves what it makes. What is no former demo is never touched."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from kohort.errors import KohortError, StorageFailed
from kohort.log.directory import LOCK
from kohort.log.files import RealFiles

_MARK = ".kohort-demo"
_MARKED = "Made by `kohort demo`. The next one in this directory replaces data, tables and report.html.\n"


class BadPlace(KohortError):
    """A directory that a demo must not write to."""


@dataclass(frozen=True, slots=True)
class Place:
    """A directory with the broker's data, the tables and the report."""

    out: Path

    @property
    def data(self) -> Path:
        return self.out / "data"

    @property
    def tables(self) -> Path:
        return self.out / "tables"

    @property
    def report(self) -> Path:
        return self.out / "report.html"

    def prepare(self) -> None:
        """Make the directory, or remove the demo from it that was there before."""
        out = self.out
        if out.exists() and not out.is_dir():
            raise BadPlace(f"{out}: is not a directory")
        if not out.absolute().parent.is_dir():
            raise BadPlace(f"{out.parent}: no such directory")
        mark = out / _MARK
        if out.is_dir() and not mark.is_file() and any(out.iterdir()):
            raise BadPlace(f"{out}: holds something that is not from `kohort demo` and stays as it is; try --out")
        self._check_unused()
        out.mkdir(exist_ok=True)
        mark.write_text(_MARKED, encoding="utf-8")
        self._remove_made()

    def clear(self) -> None:
        """Take everything away that a demo has made; what somebody has put beside it stays."""
        self._remove_made()
        (self.out / _MARK).unlink(missing_ok=True)
        if not any(self.out.iterdir()):
            self.out.rmdir()

    def _remove_made(self) -> None:
        for directory in (self.data, self.tables):
            if directory.exists():
                shutil.rmtree(directory)
        self.report.unlink(missing_ok=True)

    def _check_unused(self) -> None:
        """A broker that was kept up, or started on the data of a demo, has them locked."""
        lock = self.data / LOCK
        if not lock.exists():
            return
        try:
            RealFiles().lock(os.fspath(lock)).close()
        except StorageFailed:
            raise BadPlace(f"{self.data}: a broker is running on it; end it first, or try --out") from None
