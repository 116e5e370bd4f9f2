"""What a disk does to those who use it: errors, once or from then on, room that runs out and comes back, slowness.

A fault is for one life of a broker. Its turn comes at the n-th call of the kind that it is about, so that it may hit
anything: an append, the sync of a journal, a rename of the cleaner, a read at the start.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NoReturn

from kohort.log.files import DiskSpace
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


class FaultyFiles:
    """Recorded files with a fault."""

    def __init__(self, inner: RecordingFiles, fault: Fault, take_time: Callable[[], None]) -> None:
        self._inner = inner
        self._fault = fault
        self._names = _KINDS[fault.kind][0]
        self._take_time = take_time
        self._calls = 0
        self.hits = 0

    def open(self, path: str, *, create: bool = False) -> "FaultyFile":
        self.call("create" if create and not self._inner.exists(path) else "open", path)
        return FaultyFile(self._inner.open(path, create=create), self)

    def exists(self, path: str) -> bool:
        self.call("exists", path)
        return self._inner.exists(path)

    def list_dir(self, path: str) -> list[str]:
        self.call("list_dir", path)
        return self._inner.list_dir(path)

    def make_dir(self, path: str) -> None:
        self.call("make_dir", path)
        self._inner.make_dir(path)

    def remove_dir(self, path: str) -> None:
        self.call("remove_dir", path)
        self._inner.remove_dir(path)

    def rename(self, old: str, new: str) -> None:
        self.call("rename", old)
        self._inner.rename(old, new)

    def unlink(self, path: str) -> None:
        self.call("unlink", path)
        self._inner.unlink(path)

    def sync_dir(self, path: str) -> None:
        self.call("sync_dir", path)
        self._inner.sync_dir(path)

    def space(self, path: str) -> DiskSpace | None:
        return self._inner.space(path)

    def lock(self, path: str) -> "FaultyFile":
        self.call("lock", path)
        return FaultyFile(self._inner.lock(path), self)

    def call(self, name: str, path: str) -> None:
        """One call: it may pass, take its time, or fail."""
        if self.is_hit(name):
            self.fail(path)

    def is_hit(self, name: str) -> bool:
        """Whether this call is to fail."""
        if name not in self._names:
            return False
        self._calls += 1
        if not self._fault.first < self._calls <= self._fault.first + self._fault.times:
            return False
        self.hits += 1
        if self._fault.error:
            return True
        self._take_time()
        return False

    def fail(self, path: str) -> NoReturn:
        raise OSError(self._fault.error, os.strerror(self._fault.error), path)

    @property
    def short_write(self) -> int:
        return self._fault.short_write


class FaultyFile:
    """An open file of these."""

    def __init__(self, inner: RecordingFile, files: FaultyFiles) -> None:
        self._inner = inner
        self._files = files

    @property
    def path(self) -> str:
        return self._inner.path

    def size(self) -> int:
        return self._inner.size()

    def read_at(self, position: int, length: int) -> bytes:
        self._files.call("read", self.path)
        if self.path.endswith(".log"):
            self._files.call("read of a log", self.path)
        return self._inner.read_at(position, length)

    def append(self, data: bytes) -> None:
        self.write_at(self._inner.size(), data)

    def write_at(self, position: int, data: bytes) -> None:
        if self._files.is_hit("write"):
            part = data[: self._files.short_write]
            if part:
                self._inner.write_at(position, part)
            self._files.fail(self.path)
        self._inner.write_at(position, data)

    def truncate(self, size: int) -> None:
        self._files.call("truncate", self.path)
        self._inner.truncate(size)

    def reserve(self, size: int) -> None:
        self._files.call("reserve", self.path)
        self._inner.reserve(size)

    def sync(self) -> None:
        if self._files.is_hit("sync"):
            self._inner.note_failed_sync()
            self._files.fail(self.path)
        self._inner.sync()

    def close(self) -> None:
        self._inner.close()
