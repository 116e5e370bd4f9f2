"""What became of everything, as plain values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class PartitionReport:
    """One partition, there and here. What has not been looked at is None."""

    topic: str
    partition: int
    source_start: int | None = None
    source_end: int | None = None
    """Where copying stops: the end of the log, or where the first open transaction begins."""
    source_log_end: int | None = None
    found: int = 0
    """Records that the destination had already."""
    copied: int = 0
    """Records that were sent by this run, or would be."""
    aborted: int = 0
    """Records that no reader of committed data sees."""
    control: int = 0
    """Records that mark the ends of transactions."""
    damaged: int = 0
    """Places of the source that cannot be read."""
    destination_end: int | None = None
    checksum: str | None = None
    """Of all records, in their order."""
    verified: bool | None = None
    problem: str | None = None

    @property
    def undecided(self) -> int:
        """Offsets behind the beginning of an open transaction: they are not copied."""
        if self.source_end is None or self.source_log_end is None:
            return 0
        return self.source_log_end - self.source_end


@dataclass(slots=True)
class TopicReport:
    """A topic as a whole."""

    topic: str
    partitions: int
    made: bool = False
    """By this run or by an earlier one that has not come to an end."""
    settings: dict[str, str] | None = None
    """Those of the source; None if nobody knows them."""
    settings_left_out: dict[str, str] = field(default_factory=dict)
    """Settings that mean nothing in the destination, each with the reason."""
    missing_partitions: list[int] = field(default_factory=list)
    """Partitions of which the source has no records, since they are elsewhere."""
    problem: str | None = None


@dataclass(slots=True)
class GroupOffset:
    """An offset of a group, there and here."""

    topic: str
    partition: int
    source_offset: int
    offset: int | None
    """None if it is left out."""
    problem: str | None = None


@dataclass(slots=True)
class GroupReport:
    """A group."""

    group: str
    offsets: list[GroupOffset]
    verified: bool | None = None
    problem: str | None = None

    @property
    def translated(self) -> int:
        """How many offsets it has in the destination."""
        return sum(offset.offset is not None for offset in self.offsets)

    @property
    def left_out(self) -> int:
        return len(self.offsets) - self.translated


@dataclass(slots=True)
class Report:
    """All of it."""

    source: str
    destination: str
    dry_run: bool
    topics: list[TopicReport]
    partitions: list[PartitionReport]
    groups: list[GroupReport]

    @property
    def problems(self) -> int:
        """How many topics, partitions and groups have one."""
        told: list[TopicReport | PartitionReport | GroupReport] = [*self.topics, *self.partitions, *self.groups]
        return sum(one.problem is not None for one in told) + sum(one.damaged > 0 for one in self.partitions)

    @property
    def verified(self) -> bool:
        """Whether all that was asked for is in the destination, and was read back."""
        read_back = all(one.verified for one in self.partitions) and all(one.verified for one in self.groups)
        return read_back and not self.problems and not self.dry_run

    def as_json(self) -> Mapping[str, Any]:
        return {
            "source": self.source,
            "destination": self.destination,
            "dry_run": self.dry_run,
            "verified": self.verified,
            "topics": [asdict(topic) for topic in self.topics],
            "partitions": [asdict(one) | {"undecided": one.undecided} for one in self.partitions],
            "groups": [
                asdict(group) | {"translated": group.translated, "left_out": group.left_out} for group in self.groups
            ],
        }
