"""With KOHORT_TEST_STORE set, the brokers of all tests keep what they have in a store: the same tests for both."""

import os
from functools import cache
from pathlib import Path

from kohort.store.store import Store
from tests.store.shared_server import new_database

LEASE_MS = 5_000
ABOUT_FILES = frozenset(
    {
        "test_a_partition_that_cannot_be_opened_has_no_leader",
        "test_all_partitions_are_told_to_those_who_name_none",
        "test_sizes_are_those_of_the_files",
        "test_the_broker_tells_its_own_settings",
        "test_the_disk_is_as_large_as_the_system_says",
    }
)
"""Tests that look at the files of a broker, or damage them."""
ABOUT_MEMORY = frozenset(
    {
        "test_a_transactional_batch_needs_a_transactional_id",
        "test_committed_readers_are_told_what_was_aborted",
        "test_committed_readers_see_a_nearer_end",
        "test_what_groups_have_committed_for_a_topic_goes_with_it",
    }
)
"""And those to which a broker in memory has done everything as soon as it was asked."""


def fits(test: str) -> bool:
    """Whether a test means the same with a store."""
    return "KOHORT_TEST_STORE" not in os.environ or test.partition("[")[0] not in ABOUT_FILES | ABOUT_MEMORY


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
