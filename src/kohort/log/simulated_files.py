"""Files that live in memory: what `--memory` keeps its logs in, and the disk on which crashes are tried out.

A tree of directories and contents stands behind the `Files` protocol, with the operating system's manners: an open file
outlives its name, a rename replaces, a directory that is not empty stays, a path that is not there is the `OSError`
that the operating system would raise. Nothing is kept of the past, and syncs have nothing to do.

`image` gives the whole tree as plain values and `SimulatedFiles(image)` makes files of it again. Contents are shared
between an image and the files made of it until somebody writes, so that a thousand copies of a disk cost little. What
may be left of a disk when the power fails is the subject of `crash_images.py`.
"""

import errno
import os
from collections.abc import Mapping

from kohort.errors import StorageFailed

Image = dict[str, bytes | None]
"""Every path of a disk with its content, or None for a directory; parents come before what is in them."""


class _Content:
    """The bytes of one file, whatever names it has: shared and immutable until the first write."""

    __slots__ = ("data", "locked")

    def __init__(self, data: bytes = b"") -> None:
        self.data: bytes | bytearray = data
        self.locked = False

    def writable(self) -> bytearray:
        if not isinstance(self.data, bytearray):
            self.data = bytearray(self.data)
        return self.data


class _Directory:
    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, _Content | _Directory] = {}


class SimulatedFile:
    """An open file in memory."""

    def __init__(self, path: str, content: _Content, *, holds_lock: bool = False) -> None:
        self._path = path
        self._content: _Content | None = content
        self._holds_lock = holds_lock

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return len(self._open().data)

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._open().data[position : position + length])

    def append(self, data: bytes) -> None:
        content = self._open().writable()
        content += data

    def write_at(self, position: int, data: bytes) -> None:
        content = self._open().writable()
        if position > len(content):
            content += bytes(position - len(content))
        content[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        content = self._open().writable()
        if size < len(content):
            del content[size:]
        else:
            content += bytes(size - len(content))

    def reserve(self, size: int) -> None:
        content = self._open().writable()
        content += bytes(max(0, size - len(content)))

    def sync(self) -> None:
        self._open()

    def close(self) -> None:
        content = self._open()
        if self._holds_lock:
            content.locked = False
        self._content = None

    def _open(self) -> _Content:
        if self._content is None:
            raise _error(errno.EBADF, self._path)
        return self._content


class SimulatedFiles:
    """A disk in memory, empty or made of an image."""

    def __init__(self, image: Mapping[str, bytes | None] | None = None) -> None:
        self._root = _Directory()
        for path, data in (image or {}).items():
            parent, name = self._parent(path)
            parent.entries[name] = _Directory() if data is None else _Content(data)

    def image(self) -> Image:
        """The whole disk as it stands."""
        out: Image = {}
        self._collect("", self._root, out)
        return out

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        return SimulatedFile(path, self._content(path, create))

    def exists(self, path: str) -> bool:
        try:
            self._find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._directory(path).entries)

    def make_dir(self, path: str) -> None:
        parent, name = self._parent(path)
        parent.entries.setdefault(name, _Directory())

    def remove_dir(self, path: str) -> None:
        if self._directory(path).entries:
            raise _error(errno.ENOTEMPTY, path)
        parent, name = self._parent(path)
        del parent.entries[name]

    def rename(self, old: str, new: str) -> None:
        """Atomic; within one directory, as every rename of a log is (others are refused as across devices)."""
        moved = self._find(old)
        (parent, name), (target, new_name) = self._parent(old), self._parent(new)
        if parent is not target:
            raise _error(errno.EXDEV, old)
        replaced = target.entries.get(new_name)
        if isinstance(replaced, _Directory):
            if not isinstance(moved, _Directory):
                raise _error(errno.EISDIR, new)
            if replaced.entries and replaced is not moved:
                raise _error(errno.ENOTEMPTY, new)
        elif isinstance(moved, _Directory) and replaced is not None:
            raise _error(errno.ENOTDIR, new)
        del parent.entries[name]
        target.entries[new_name] = moved

    def unlink(self, path: str) -> None:
        if isinstance(self._find(path), _Directory):
            raise _error(errno.EISDIR, path)
        parent, name = self._parent(path)
        del parent.entries[name]

    def sync_dir(self, path: str) -> None:
        self._directory(path)

    def space(self, path: str) -> None:
        """Memory is no disk."""
        self._directory(path)

    def lock(self, path: str) -> SimulatedFile:
        content = self._content(path, create=True)
        if content.locked:
            raise StorageFailed(f"{path} is held by another process: one broker per data directory")
        content.locked = True
        return SimulatedFile(path, content, holds_lock=True)

    def _content(self, path: str, create: bool) -> _Content:
        parent, name = self._parent(path)
        found = parent.entries.get(name)
        if found is None:
            if not create:
                raise _error(errno.ENOENT, path)
            found = parent.entries[name] = _Content()
        if isinstance(found, _Directory):
            raise _error(errno.EISDIR, path)
        return found

    def _directory(self, path: str) -> _Directory:
        found = self._find(path)
        if not isinstance(found, _Directory):
            raise _error(errno.ENOTDIR, path)
        return found

    def _find(self, path: str) -> _Content | _Directory:
        node: _Content | _Directory = self._root
        for name in path.split("/"):
            if not name:
                continue
            if not isinstance(node, _Directory):
                raise _error(errno.ENOTDIR, path)
            found = node.entries.get(name)
            if found is None:
                raise _error(errno.ENOENT, path)
            node = found
        return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name

    def _collect(self, path: str, directory: _Directory, out: Image) -> None:
        for name, node in sorted(directory.entries.items()):
            below = f"{path}/{name}"
            if isinstance(node, _Directory):
                out[below] = None
                self._collect(below, node, out)
            else:
                out[below] = bytes(node.data)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
