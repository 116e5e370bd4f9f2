"""How far behind groups are: a row for each partition that a member has or an offset was committed for.

The rows are those of `kafka-consumer-groups --describe`: first what members have, the one with the most partitions
first, then what nobody reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kohort.admin.cluster import Cluster
from kohort.admin.groups import Described, Member
from kohort.admin.offsets import LogOffsets, Offset, Offsets, committed_offsets, log_offsets
from kohort.log.cluster import LATEST, TopicPartition


@dataclass(frozen=True, slots=True)
class LagRow:
    """A partition of a group; what nobody knows is None."""

    group: str
    topic: str
    partition: int
    committed: Offset | None
    log_end_offset: int | None
    member: Member | None
    problem: str | None
    """Why the end of the log is not known."""

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed.offset


def lag_of(cluster: Cluster, groups: Mapping[str, Described]) -> dict[str, list[LagRow]]:
    """The rows of each group."""
    committed = committed_offsets(cluster, groups)
    places = {name: _places(described, committed[name]) for name, described in groups.items()}
    ends = log_offsets(cluster, {key for theirs in places.values() for key, _ in theirs}, LATEST)
    return {
        name: [_row(name, key, member, committed[name], ends) for key, member in theirs]
        for name, theirs in places.items()
    }


def _places(described: Described, committed: Offsets) -> list[tuple[TopicPartition, Member | None]]:
    found: list[tuple[TopicPartition, Member | None]] = []
    for member in sorted(described.members, key=lambda member: (-len(member.assignment or ()), member.member_id)):
        found += [(key, member) for key in member.assignment or ()]
    assigned = {key for key, _ in found}
    return found + [(key, None) for key in sorted(committed) if key not in assigned]


def _row(group: str, key: TopicPartition, member: Member | None, committed: Offsets, ends: LogOffsets) -> LagRow:
    return LagRow(group, *key, committed.get(key), ends.found.get(key), member, ends.refused.get(key))
