"""With KOHORT_TEST_STORE set, the brokers of all tests keep what they have in a store: the same tests for both."""

import os
from functools import cache
from pathlib import Path

from kohort.store.store import Store
from tests.store.shared_server import new_database

LEASE_MS = 5_000


def store_for(path: Path | None) -> Store | None:
    """The store that stands for an empty directory, taken over; None if directories are directories."""
    if "KOHORT_TEST_STORE" not in os.environ or (path is not None and path.exists() and any(path.iterdir())):
        return None
    return owned(new_database() if path is None else _database_of(path))


@cache
def _database_of(path: Path) -> str:  # noqa: ARG001 - what it is cached by
    return new_database()


def owned(url: str) -> Store:
    store = Store(url, broker_id=0, lease_ms=LEASE_MS)
    assert store.wait_until_free(lambda _: None)
    return store
