"""Errors of the operating system, told as what they mean here."""

from collections.abc import Iterator
from contextlib import contextmanager

from kohort.errors import StorageFailed


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """An `OSError` within this block is a `StorageFailed` outside of it."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{path}: {error}") from error
