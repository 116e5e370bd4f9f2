"""A door to the disk that fails on order: at the n-th call, once or from then on.

`FaultyFiles` counts the calls that reach the operating system (opens, reads, writes, truncates, syncs, renames and the
rest; not the size of an open file, nor its closing) and raises the `OSError` that it was given at the chosen one. A
write may first put some of its bytes, as a full disk does. Without a chosen call it only counts.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kohort.log.files import DiskSpace, File, Files


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Which call fails (counted from 0), how, and whether all later ones do too."""

    call: int
    number: int
    persistent: bool = False
    short_write: int = 0
    """How many bytes a failing write puts before it fails."""


class FaultyFiles:
    """Any files, one call of which fails."""

    def __init__(self, inner: Files, fault: Fault | None = None) -> None:
        self._inner = inner
        self._fault = fault
        self.calls = 0
        self.failed: list[str] = []
        """What failed, as `name path`."""

    def open(self, path: str, *, create: bool = False) -> "FaultyFile":
        with self.call("open", path):
            return self._opened(self._inner.open(path, create=create))

    def exists(self, path: str) -> bool:
        with self.call("exists", path):
            return self._inner.exists(path)

    def list_dir(self, path: str) -> list[str]:
        with self.call("list_dir", path):
            return self._inner.list_dir(path)

    def make_dir(self, path: str) -> None:
        with self.call("make_dir", path):
            self._inner.make_dir(path)

    def remove_dir(self, path: str) -> None:
        with self.call("remove_dir", path):
            self._inner.remove_dir(path)

    def rename(self, old: str, new: str) -> None:
        with self.call("rename", old):
            self._inner.rename(old, new)

    def unlink(self, path: str) -> None:
        with self.call("unlink", path):
            self._inner.unlink(path)

    def sync_dir(self, path: str) -> None:
        with self.call("sync_dir", path):
            self._inner.sync_dir(path)

    def space(self, path: str) -> DiskSpace | None:
        with self.call("space", path):
            return self._inner.space(path)

    def lock(self, path: str) -> "FaultyFile":
        with self.call("lock", path):
            return self._opened(self._inner.lock(path))

    def _opened(self, inner: File) -> "FaultyFile":
        return FaultyFile(inner, self)

    @contextmanager
    def call(self, name: str, path: str) -> Iterator[None]:
        """Count one call, and fail instead of making it if its turn has come."""
        if self.fails():
            self.fail(name, path)
        self.calls += 1
        yield

    def fails(self) -> bool:
        fault = self._fault
        return fault is not None and (self.calls == fault.call or (fault.persistent and self.calls > fault.call))

    def fail(self, name: str, path: str) -> None:
        assert self._fault is not None
        self.calls += 1
        self.failed.append(f"{name} {path}")
        raise OSError(self._fault.number, os.strerror(self._fault.number), path)

    @property
    def short_write(self) -> int:
        return self._fault.short_write if self._fault is not None else 0


class FaultyFile:
    """An open file, one call of which may fail."""

    def __init__(self, inner: File, files: FaultyFiles) -> None:
        self._inner = inner
        self._files = files

    @property
    def path(self) -> str:
        return self._inner.path

    def size(self) -> int:
        return self._inner.size()

    def read_at(self, position: int, length: int) -> bytes:
        with self._files.call("read_at", self.path):
            return self._inner.read_at(position, length)

    def append(self, data: bytes) -> None:
        if self._files.fails() and self._files.short_write:
            self._inner.append(data[: self._files.short_write])
        with self._files.call("append", self.path):
            self._inner.append(data)

    def write_at(self, position: int, data: bytes) -> None:
        if self._files.fails() and self._files.short_write:
            self._inner.write_at(position, data[: self._files.short_write])
        with self._files.call("write_at", self.path):
            self._inner.write_at(position, data)

    def truncate(self, size: int) -> None:
        with self._files.call("truncate", self.path):
            self._inner.truncate(size)

    def reserve(self, size: int) -> None:
        with self._files.call("reserve", self.path):
            self._inner.reserve(size)

    def sync(self) -> None:
        with self._files.call("sync", self.path):
            self._inner.sync()

    def close(self) -> None:
        self._inner.close()
