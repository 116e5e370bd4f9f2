"""Groups and offsets as a coordinator would hold them after loading a log: the result of a replay, as plain values."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kohort.records.groups import Group
from kohort.records.offsets_topic import Key, OffsetCommitValue, UnknownValue


class GroupTopicPartition(NamedTuple):
    """What an offset is committed for."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """A commit and its place in the log."""

    position: int
    value: OffsetCommitValue


@dataclass(slots=True)
class State:
    """Everything that a log tells about its groups."""

    groups: dict[str, Group] = field(default_factory=dict)
    offsets: dict[GroupTopicPartition, Committed] = field(default_factory=dict)
    pending: dict[int, dict[GroupTopicPartition, Committed]] = field(default_factory=dict)
    removed_groups: set[str] = field(default_factory=set)
    unreadable: list[tuple[Key, UnknownValue]] = field(default_factory=list)
    unreadable_keys: int = 0
    records: int = 0
