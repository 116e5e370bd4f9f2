"""The clients, and what each of them can do beyond what all of them can."""

from dataclasses import dataclass, field
from enum import Enum, auto

import pytest

from tests_clients.building import GO, JAVA, JAVASCRIPT, Toolchain


class Can(Enum):
    """What not every client has."""

    STATIC_MEMBERS = auto()
    COOPERATIVE_STICKY = auto()
    REGEX = auto()
    """Subscribe to all topics whose names match."""
    REGEX_FOLLOWS = auto()
    """... and notice topics that are made later."""
    DELETE_OFFSETS = auto()
    FENCED_OFFSETS = auto()
    """The offsets in a transaction come with the member and its generation (KIP-447): workers may share a group."""


_EVERYTHING = frozenset(Can)


@dataclass(frozen=True)
class Kind:
    """A client library and our program around it."""

    name: str
    toolchain: Toolchain = field(repr=False)
    program: str
    eager: str
    """The assignor of its members that give everything back before each rebalance."""
    can: frozenset[Can] = _EVERYTHING
    arguments: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ("gzip", "snappy", "lz4", "zstd")
    """How it compresses without further libraries."""

    def __str__(self) -> str:
        return self.name


KINDS = (
    Kind("java", JAVA, "Driver", "range"),
    Kind("franz-go", GO, "franzgo", "range"),
    Kind("sarama", GO, "sarama", "range", _EVERYTHING - {Can.REGEX, Can.REGEX_FOLLOWS}),
    Kind("sarama-newest", GO, "sarama", "range", _EVERYTHING - {Can.REGEX, Can.REGEX_FOLLOWS}, ("--newest",)),
    Kind("kafkajs", JAVASCRIPT, "driver.js", "RoundRobinAssigner", frozenset({Can.REGEX}), codecs=("gzip",)),
)
"""sarama speaks as to a broker of 2.8 unless it is told otherwise; `--newest` tells it so."""


def with_clients(*needed: Can) -> pytest.MarkDecorator:
    """A test for each client that has what it needs."""
    able = [kind for kind in KINDS if kind.can.issuperset(needed)]
    return pytest.mark.parametrize("kind", able, ids=str)
