"""Errors of the operating system, told as what they mean here."""

from collections.abc import Iterator
from contextlib import contextmanager

from kohort.errors import StorageFailed
from kohort.log.files import DISK_FULL


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """An `OSError` within this block is a `StorageFailed` outside of it."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{path}: {error}") from error


def is_disk_full(failure: StorageFailed) -> bool:
    """Whether there was no room, which may come back."""
    return isinstance(failure.__cause__, OSError) and failure.__cause__.errno in DISK_FULL
