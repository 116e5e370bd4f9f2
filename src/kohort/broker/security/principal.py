"""Who asks: what a connection has proved of itself, and what permissions are given to."""

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    """Somebody, written `User:alice` as Kafka does."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Who did not have to say anything."""


def read_principals(text: str) -> frozenset[Principal]:
    """Several, with semicolons between them, for a name may have commas in it; `ValueError` if one is none."""
    found = set()
    for part in filter(None, map(str.strip, text.split(";"))):
        kind, colon, name = part.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"{part!r} is not TYPE:NAME, as in User:alice")
        found.add(Principal(kind, name))
    return frozenset(found)
