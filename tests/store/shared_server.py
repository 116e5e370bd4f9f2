"""One PostgreSQL server for all tests of a process that need a database of their own, from the first of them on."""

import atexit
import contextlib
import itertools
from functools import cache

import pytest

from tests.postgresql import NoPostgresql, Postgresql, postgresql

_numbers = itertools.count()


@cache
def server() -> Postgresql:
    """The test is skipped, loudly, if there can be none."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    try:
        return stack.enter_context(postgresql(max_connections="300", fsync="off"))
    except NoPostgresql as reason:
        pytest.skip(f"NOT TESTED, there is no PostgreSQL: {reason}")


def new_database() -> str:
    """The address of an empty one."""
    name = f"kohort_{next(_numbers)}"
    with server().connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server().url_of("kohort", database=name)
