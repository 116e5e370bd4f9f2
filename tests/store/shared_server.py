"""One PostgreSQL server for all tests of a process that need a database of their own, from the first of them on."""

import atexit
import contextlib
import itertools
from collections.abc import Iterator
from functools import cache

import pytest

from tests.postgresql import NoPostgresql, Postgresql, postgresql

_numbers = itertools.count()


@contextlib.contextmanager
def own_server(**settings: str) -> Iterator[Postgresql]:
    """A server for one test alone. The test is skipped, loudly, if there can be none."""
    try:
        with postgresql(**settings) as server:
            yield server
    except NoPostgresql as reason:
        pytest.skip(f"NOT TESTED, there is no PostgreSQL: {reason}")


@cache
def server() -> Postgresql:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(own_server(max_connections="300", fsync="off"))


def new_database() -> str:
    """The address of an empty one."""
    name = f"kohort_{next(_numbers)}"
    with server().connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server().url_of("kohort", database=name)
