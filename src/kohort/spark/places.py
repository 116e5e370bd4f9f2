"""Paths of any kind to files that can be listed and read: plain ones, patterns, and URIs of stores that Arrow knows."""

import errno
import fnmatch
import os
import posixpath
import re
from typing import Any

from kohort.log.place import LOCAL, OpenFile, Place
from kohort.log.source import BadSource

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):/(?!/?$)")
_PATTERN = re.compile(r"[*?\[]")
_HADOOP_NAMES = {"s3a": "s3", "s3n": "s3"}
"""What Hadoop calls a store, and what Arrow calls it."""


class RemotePlace:
    """A store that Arrow knows. It is named by its address alone, so that it can travel to other machines.

    Each question is a request, so sizes that came with a listing are not asked for again, except where it travels to.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._files: Any = None
        self._sizes: dict[str, int] = {}

    def __getstate__(self) -> str:
        return self._address

    def __setstate__(self, address: str) -> None:
        self._address, self._files, self._sizes = address, None, {}

    def is_directory(self, path: str) -> bool:
        from pyarrow import fs

        return bool(self.files.get_file_info(path).type == fs.FileType.Directory)

    def names(self, directory: str) -> list[str]:
        from pyarrow import fs

        entries = self.files.get_file_info(fs.FileSelector(directory))
        self._sizes |= {entry.path: int(entry.size) for entry in entries if entry.size is not None}
        return sorted(entry.base_name for entry in entries)

    def size(self, path: str) -> int:
        from pyarrow import fs

        if path in self._sizes:
            return self._sizes[path]
        info = self.files.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return int(info.size or 0)

    def open(self, path: str) -> OpenFile:
        opened: OpenFile = self.files.open_input_file(path)
        return opened

    @property
    def files(self) -> Any:
        """Arrow's view of the store, opened where it is needed."""
        if self._files is None:
            from pyarrow import fs

            self._files = fs.FileSystem.from_uri(self._address)[0]
        return self._files


def locate(path: str) -> tuple[Place, str]:
    """The store of a path, and the path inside of it."""
    scheme = _SCHEME.match(path)
    if scheme is None:
        return LOCAL, path
    if scheme[1] == "file":
        return LOCAL, "/" + path[len("file:") :].lstrip("/")
    from pyarrow import ArrowInvalid, fs

    address = _HADOOP_NAMES.get(scheme[1], scheme[1]) + path[len(scheme[1]) :]
    try:
        _, inside = fs.FileSystem.from_uri(address)
    except (ArrowInvalid, OSError, NotImplementedError) as error:
        raise BadSource(f"{path}: no store of this kind can be read ({error})") from None
    return RemotePlace(address), inside


def expand(place: Place, pattern: str) -> list[str]:
    """The paths that a pattern with `*`, `?` or `[...]` stands for; what exists under that very name is no pattern."""
    if not _PATTERN.search(pattern) or _exists(place, pattern):
        return [pattern]
    plain = _PATTERN.split(pattern, maxsplit=1)[0].rpartition("/")[0]
    paths = [plain or ("/" if pattern.startswith("/") else ".")]
    for part in pattern[len(plain) :].strip("/").split("/"):
        paths = [
            posixpath.join(path, name)
            for path in paths
            if place.is_directory(path)
            for name in place.names(path)
            if fnmatch.fnmatchcase(name, part)
        ]
    if not paths:
        raise BadSource(f"{pattern}: nothing is there that matches")
    return paths


def _exists(place: Place, path: str) -> bool:
    try:
        return place.is_directory(path) or place.size(path) >= 0
    except OSError:
        return False
