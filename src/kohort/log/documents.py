"""Small texts that a broker keeps besides its logs, each replaced as a whole: a crash leaves the old one or the new."""

from typing import Protocol

from kohort.log.failures import storage_errors
from kohort.log.files import Files, join, read_whole, write_whole


class Documents(Protocol):
    """Where they are kept. `StorageFailed` if that fails."""

    def place(self, name: str) -> str:
        """What people are told when something is wrong with a document."""

    def read(self, name: str) -> bytes | None:
        """None if there is no such document."""

    def write(self, name: str, data: bytes) -> None:
        """Durable when it returns."""


class FileDocuments:
    """Each a file in a directory."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def place(self, name: str) -> str:
        return join(self._directory, name)

    def read(self, name: str) -> bytes | None:
        path = self.place(name)
        with storage_errors(path):
            return read_whole(self._files, path) if self._files.exists(path) else None

    def write(self, name: str, data: bytes) -> None:
        path = self.place(name)
        with storage_errors(path):
            write_whole(self._files, path, data)
