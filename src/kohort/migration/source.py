"""Where topics come from, whatever it is: a directory that a broker has left, or a cluster that runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from kohort.admin.offsets import Offsets
from kohort.broker.topics_file import INTERNAL_TOPICS, SECURITY_TOPIC
from kohort.log.source import OnDamage, OnProgress
from kohort.records.batch import BatchHeader

NEVER_COPIED = INTERNAL_TOPICS | {
    SECURITY_TOPIC,
    "__cluster_metadata",
    "__remote_log_metadata",
    "__share_group_state",
}
"""Topics that are a cluster's own: their records mean nothing in another."""


class Fate(Enum):
    """What a reader of committed data makes of a batch."""

    DATA = "data"
    ABORTED = "aborted"
    CONTROL = "control"


class SourceBatch(NamedTuple):
    """A batch at `header.position` of `data`; good until the next one is asked for."""

    header: BatchHeader
    data: bytes | memoryview
    fate: Fate


class SourcePartition(Protocol):
    """A partition that is to be copied, as it was when it was looked at."""

    @property
    def start(self) -> int:
        """The first offset that is not deleted."""

    @property
    def stable_end(self) -> int:
        """Behind what has been decided: open transactions begin here."""

    @property
    def log_end(self) -> int: ...

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[SourceBatch]:
        """Every sound batch before `stable_end`, in order."""


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic, and the partitions of it that are here."""

    name: str
    partition_count: int
    partitions: tuple[int, ...]
    settings: Mapping[str, str] | None
    """Those that differ from the broker's; None if nobody knows."""
    is_count_sure: bool = True
    """Whether there may be partitions behind the last one."""


class Source(Protocol):
    """All of it."""

    @property
    def size(self) -> int:
        """In bytes; 0 if nobody knows."""

    def topics(self) -> dict[str, SourceTopic]:
        """Those that can be copied, by their names."""

    def partition(self, topic: str, number: int) -> SourcePartition:
        """Look at one that is here."""

    def groups(self, on_damage: OnDamage) -> dict[str, Offsets]:
        """What each group has committed."""
