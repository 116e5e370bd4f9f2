"""The one door to the disk: every file that a log touches is opened, written, synced and renamed here.

`Files` is what a log asks for. `RealFiles` asks the operating system; `simulated_files.py` keeps everything in memory,
records each operation and can lose whatever was not synced, as a power cut would. Paths are plain strings.

Rules that the callers rely on: `append` and `write_at` put all bytes or raise; what was written is on the disk only
after `sync` of that file; a file that was created, renamed or removed stays so only after `sync_dir` of its directory.
"""

import contextlib
import errno
import fcntl
import os
from typing import ClassVar, NamedTuple, Protocol

from kohort.errors import StorageFailed

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors that leave what was there as it was."""


class DiskSpace(NamedTuple):
    """Bytes of a disk: all, and those that can still be written."""

    total: int
    usable: int


class File(Protocol):
    """An open file."""

    @property
    def path(self) -> str: ...

    def size(self) -> int: ...

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def append(self, data: bytes) -> None: ...

    def write_at(self, position: int, data: bytes) -> None: ...

    def truncate(self, size: int) -> None: ...

    def reserve(self, size: int) -> None:
        """Make room for so many bytes in all, zeros until they are written: a sync that need not note a new size is
        several times as fast."""

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Files(Protocol):
    """A place where files live."""

    def open(self, path: str, *, create: bool = False) -> File:
        """An existing file, or with `create` also a new one (mode 0600)."""

    def exists(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_dir(self, path: str) -> None:
        """A directory (mode 0700); it may exist already. The parent must exist."""

    def remove_dir(self, path: str) -> None:
        """Remove an empty directory."""

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces what stands under the new name."""

    def unlink(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def space(self, path: str) -> "DiskSpace | None":
        """How large the disk is on which a directory stands; None if there is none."""

    def lock(self, path: str) -> File:
        """Hold `path` for this process alone until the file is closed; `StorageFailed` if another holds it."""


def join(directory: str, name: str) -> str:
    return f"{directory}/{name}"


def parent_of(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


def write_whole(files: Files, path: str, data: bytes) -> None:
    """Put `data` under `path` so that a crash leaves the old content or the new, never a mixture."""
    temporary = path + ".tmp"
    with contextlib.closing(files.open(temporary, create=True)) as file:
        file.truncate(0)
        file.append(data)
        file.sync()
    files.rename(temporary, path)
    files.sync_dir(os.path.dirname(path))


def read_whole(files: Files, path: str) -> bytes:
    with contextlib.closing(files.open(path)) as file:
        return file.read_at(0, file.size())


class RealFile:
    """A file of the operating system, by its descriptor: no user-space buffer stands between."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return self._size

    def read_at(self, position: int, length: int) -> bytes:
        parts = []
        while length > 0 and (part := os.pread(self._descriptor, length, position)):
            parts.append(part)
            position += len(part)
            length -= len(part)
        return b"".join(parts)

    def append(self, data: bytes) -> None:
        self.write_at(self._size, data)

    def write_at(self, position: int, data: bytes) -> None:
        end = position + len(data)
        written = os.pwrite(self._descriptor, data, position)
        while written < len(data):
            written += os.pwrite(self._descriptor, memoryview(data)[written:], position + written)
        if end > self._size:
            self._size = end

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self._size = size

    def reserve(self, size: int) -> None:
        os.posix_fallocate(self._descriptor, 0, size)
        self._size = max(self._size, size)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class RealFiles:
    """The operating system's files."""

    file_type: ClassVar[type[RealFile]] = RealFile

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
        return self.file_type(path, os.open(path, flags, 0o600))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dir(self, path: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def sync_dir(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def space(self, path: str) -> DiskSpace:
        disk = os.statvfs(path)
        return DiskSpace(disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize)

    def lock(self, path: str) -> RealFile:
        file = self.open(path, create=True)
        try:
            fcntl.flock(file._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind of lock that a JVM takes
        except OSError:
            file.close()
            raise StorageFailed(f"{path} is held by another process: one broker per data directory") from None
        return file
