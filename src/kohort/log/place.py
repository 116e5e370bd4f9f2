"""Where a log lies that is only looked at: this machine's files, or another store that offers the same few things."""

import io
import os
from types import TracebackType
from typing import Protocol, Self


class OpenFile(Protocol):
    """A file to be read."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

    def close(self) -> None: ...

    def seek(self, position: int, whence: int = 0, /) -> int: ...

    def read(self, size: int, /) -> bytes | None: ...

    def readinto(self, buffer: memoryview, /) -> int | None: ...


class Place(Protocol):
    """What it takes to find and to read a log. Whatever fails is an OSError."""

    def is_directory(self, path: str) -> bool: ...

    def names(self, directory: str) -> list[str]:
        """What is in a directory, sorted."""

    def size(self, path: str) -> int: ...

    def open(self, path: str) -> OpenFile: ...


class LocalPlace:
    """The files of this machine."""

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def names(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def size(self, path: str) -> int:
        return os.path.getsize(path)

    def open(self, path: str) -> OpenFile:
        return io.FileIO(path)


LOCAL = LocalPlace()
