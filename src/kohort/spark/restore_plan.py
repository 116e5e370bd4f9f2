"""Offsets that are to be set: the file that Kafka's own tool reads, and what they change in a cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kohort.admin import plan_file
from kohort.admin.offsets import Offset, Offsets
from kohort.log.cluster import TopicPartition


class Planned(NamedTuple):
    """An offset that a group is to have."""

    group: str
    topic: str
    partition: int
    offset: int
    metadata: str


class Bounds(NamedTuple):
    """What a cluster holds of a topic partition."""

    start: int
    end: int


class Verdict(Enum):
    """What an offset of a plan means for a cluster."""

    SAME = "as it is"
    CHANGED = "changed"
    NEW = "new"
    BEFORE_START = "before the log's start"
    BEHIND_END = "behind the log's end"
    UNKNOWN = "of no topic partition there"


@dataclass(frozen=True, slots=True)
class Compared:
    """An offset of a plan beside what a cluster has."""

    planned: Planned
    present: int | None
    bounds: Bounds | None

    @property
    def verdict(self) -> Verdict:
        if self.bounds is None:
            return Verdict.UNKNOWN
        if self.planned.offset < self.bounds.start:
            return Verdict.BEFORE_START
        if self.planned.offset > self.bounds.end:
            return Verdict.BEHIND_END
        if self.present is None:
            return Verdict.NEW
        return Verdict.SAME if self.present == self.planned.offset else Verdict.CHANGED

    def clamped(self) -> Planned:
        """The same with the nearest offset that the cluster holds."""
        if self.bounds is None:
            return self.planned
        return self.planned._replace(offset=min(max(self.planned.offset, self.bounds.start), self.bounds.end))


def compare(
    plan: Iterable[Planned],
    present: Mapping[str, Mapping[TopicPartition, int]],
    bounds: Mapping[TopicPartition, Bounds],
) -> list[Compared]:
    """Each offset of a plan beside the offsets that groups have now, and the logs that they point into."""
    return [
        Compared(
            planned,
            present.get(planned.group, {}).get((planned.topic, planned.partition)),
            bounds.get((planned.topic, planned.partition)),
        )
        for planned in plan
    ]


def by_group(plan: Iterable[Planned]) -> dict[str, Offsets]:
    """The offsets of each group."""
    found: dict[str, Offsets] = {}
    for planned in plan:
        offset = Offset(planned.offset, metadata=planned.metadata)
        found.setdefault(planned.group, {})[planned.topic, planned.partition] = offset
    return found


def to_csv(plan: Iterable[Planned]) -> str:
    """A file for `kafka-consumer-groups --reset-offsets --from-file`: the group only if there are several."""
    groups = by_group(plan)
    return plan_file.to_csv(groups, with_group=len(groups) > 1)


def unwritable(plan: Iterable[Planned]) -> list[str]:
    """Groups that such a file cannot name."""
    return sorted(plan_file.unwritable(by_group(plan)))


def formulas(plan: Iterable[Planned]) -> list[str]:
    """Groups whose names a spreadsheet would take for formulas."""
    return sorted(plan_file.formulas(by_group(plan)))
