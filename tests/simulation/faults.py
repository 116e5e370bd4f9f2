"""What a disk does to those who use it: errors, once or from then on, room that runs out and comes back, slowness.

A fault is for one life of a broker. Its turn comes at the n-th call of the kind that it is about, so that it may hit
anything: an append, the sync of a journal, a rename of the cleaner, a read at the start.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import NoReturn

from kohort.log import faulty_files
from kohort.log.files import File
from kohort.log.recorded_files import RecordingFile, RecordingFiles

_READS = frozenset({"open", "exists", "list_dir", "read"})
_SYNCS = frozenset({"sync", "sync_dir"})
_GROWING = frozenset({"create", "make_dir", "write", "reserve", "rename"})
"""What needs room."""
_CHANGES = _GROWING | _SYNCS | {"truncate", "unlink", "remove_dir", "lock"}
_KINDS = {
    "any": (_READS | _CHANGES, (errno.EIO,)),
    "read": (_READS, (errno.EIO,)),
    "log": (frozenset({"read of a log"}), (errno.EIO,)),
    "write": (_CHANGES - _SYNCS, (errno.EIO,)),
    "sync": (_SYNCS, (errno.EIO,)),
    "full": (_GROWING, (errno.ENOSPC, errno.EDQUOT)),
    "slow": (_READS | _CHANGES, ()),
}
_FOR_EVER = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Calls that are hit: those of a kind, from the `first` on, so many."""

    kind: str
    first: int
    times: int
    error: int = 0
    short_write: int = 0
    """How many bytes a failing write puts before it fails."""


def any_fault(random: Random, within: int) -> Fault:
    """One of all faults, somewhere within the next calls."""
    kind = random.choice((*_KINDS, "sync", "sync"))
    errors = _KINDS[kind][1]
    often = kind in ("full", "slow")
    return Fault(
        kind=kind,
        first=random.randrange(max(1, within // 8) if kind in ("sync", "log") else within),
        times=random.choice((3, 30, _FOR_EVER) if often else (1, 1, 2, _FOR_EVER)),
        error=random.choice(errors) if errors else 0,
        short_write=random.choice((0, 1, 20, 100)),
    )


class FaultyFiles(faulty_files.FaultyFiles):
    """Recorded files with a fault."""

    def __init__(self, inner: RecordingFiles, fault: Fault, take_time: Callable[[], None]) -> None:
        super().__init__(inner)
        self._of_life = fault
        self._names = _KINDS[fault.kind][0]
        self._take_time = take_time
        self._in_turn = 0
        self.hits = 0

    def open(self, path: str, *, create: bool = False) -> faulty_files.FaultyFile:
        with self.call("create" if create and not self._inner.exists(path) else "open", path):
            return self._opened(self._inner.open(path, create=create))

    def _opened(self, inner: File) -> "FaultyFile":
        assert isinstance(inner, RecordingFile)
        return FaultyFile(inner, self)

    @contextmanager
    def call(self, name: str, path: str) -> Iterator[None]:
        """One call: it may pass, take its time, or fail."""
        if self.is_hit(name):
            self.give_up(path)
        yield

    def is_hit(self, name: str) -> bool:
        """Whether this call is to fail."""
        if name not in self._names:
            return False
        self._in_turn += 1
        if not self._of_life.first < self._in_turn <= self._of_life.first + self._of_life.times:
            return False
        self.hits += 1
        if self._of_life.error:
            return True
        self._take_time()
        return False

    def give_up(self, path: str) -> NoReturn:
        raise OSError(self._of_life.error, os.strerror(self._of_life.error), path)

    @property
    def short_write(self) -> int:
        return self._of_life.short_write


class FaultyFile(faulty_files.FaultyFile):
    """An open file of these."""

    def __init__(self, inner: RecordingFile, files: FaultyFiles) -> None:
        super().__init__(inner, files)
        self._recorded, self._faults = inner, files

    def read_at(self, position: int, length: int) -> bytes:
        if self.path.endswith(".log"):
            with self._faults.call("read", self.path), self._faults.call("read of a log", self.path):
                return self._inner.read_at(position, length)
        with self._faults.call("read", self.path):
            return self._inner.read_at(position, length)

    def append(self, data: bytes) -> None:
        self.write_at(self._inner.size(), data)

    def write_at(self, position: int, data: bytes) -> None:
        if self._faults.is_hit("write"):
            part = data[: self._faults.short_write]
            if part:
                self._inner.write_at(position, part)
            self._faults.give_up(self.path)
        self._inner.write_at(position, data)

    def sync(self) -> None:
        if self._faults.is_hit("sync"):
            self._recorded.note_failed_sync()
            self._faults.give_up(self.path)
        self._inner.sync()
