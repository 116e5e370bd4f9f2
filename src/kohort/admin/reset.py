"""Other offsets for groups: which they are to be, beside what the logs hold and the groups have now.

A goal is one of those of `kafka-consumer-groups --reset-offsets`, and is taken as there: what lies before a log's start
or behind its end becomes the start or the end, a time behind the last record is the end, and a group that keeps its
offsets gets the end where it has none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kohort.admin.cluster import Cluster
from kohort.admin.offsets import LogOffsets, Offset, Offsets, commit, committed_offsets, log_offsets
from kohort.log.cluster import EARLIEST, LATEST, TopicPartition


class Where(Enum):
    """Where a group is to go on."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    OFFSET = "to-offset"
    SHIFT = "shift-by"
    TIME = "to-datetime"


class Goal(NamedTuple):
    """Where to, with the offset, the number of offsets or the time in milliseconds that belongs to it."""

    where: Where
    value: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """An offset that is to be set."""

    group: str
    topic: str
    partition: int
    current: Offset | None
    new: Offset | None
    """None if it cannot be told."""
    wanted: int | None = None
    """What it would be if the log held it; None if it does."""
    problem: str | None = None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition


class _Logs(NamedTuple):
    starts: LogOffsets
    ends: LogOffsets
    at_time: LogOffsets


def plan_goal(cluster: Cluster, asked: Mapping[str, Iterable[TopicPartition]], goal: Goal) -> list[Change]:
    """What reaching a goal means for partitions of groups."""
    partitions = {group: list(dict.fromkeys(keys)) for group, keys in asked.items()}
    committed = committed_offsets(cluster, partitions)
    time = goal.value if goal.where is Where.TIME else None
    logs = _logs(cluster, {key for keys in partitions.values() for key in keys}, time)
    return [
        _change(group, key, goal, committed[group].get(key), logs) for group, keys in partitions.items() for key in keys
    ]


def plan_offsets(cluster: Cluster, wanted: Mapping[str, Offsets]) -> list[Change]:
    """What setting these very offsets means. Leader epochs are left behind: they belong to the log that gave them."""
    committed = committed_offsets(cluster, wanted)
    logs = _logs(cluster, {key for offsets in wanted.values() for key in offsets}, None)
    return [
        _within(group, key, committed[group].get(key), offset._replace(leader_epoch=-1), logs)
        for group, offsets in wanted.items()
        for key, offset in sorted(offsets.items())
    ]


def apply(cluster: Cluster, changes: Iterable[Change]) -> dict[tuple[str, TopicPartition], str]:
    """Set the offsets of a plan; those that were refused come back, each with the reason."""
    by_group: dict[str, Offsets] = {}
    for change in changes:
        if change.new is not None:
            by_group.setdefault(change.group, {})[change.key] = change.new
    return commit(cluster, by_group)


def _logs(cluster: Cluster, asked: set[TopicPartition], time: int | None) -> _Logs:
    none = LogOffsets({}, {}, set())
    return _Logs(
        log_offsets(cluster, asked, EARLIEST),
        log_offsets(cluster, asked, LATEST),
        none if time is None else log_offsets(cluster, asked, max(time, 0)),
    )


def _change(group: str, key: TopicPartition, goal: Goal, current: Offset | None, logs: _Logs) -> Change:
    if problem := _problem(key, logs):
        return Change(group, *key, current, None, problem=problem)
    start, end = logs.starts.found[key], logs.ends.found[key]
    match goal.where:
        case Where.EARLIEST:
            new = start
        case Where.LATEST:
            new = end
        case Where.CURRENT:
            new = end if current is None else current.offset
        case Where.TIME:
            found = logs.at_time.found[key]
            new = end if found < 0 else found
        case Where.OFFSET:
            return _within(group, key, current, Offset(goal.value), logs)
        case Where.SHIFT:
            if current is None:
                return Change(group, *key, current, None, problem="there is no offset to shift")
            return _within(group, key, current, Offset(current.offset + goal.value), logs)
    return Change(group, *key, current, Offset(new))


def _within(group: str, key: TopicPartition, current: Offset | None, wanted: Offset, logs: _Logs) -> Change:
    if problem := _problem(key, logs):
        return Change(group, *key, current, None, problem=problem)
    nearest = min(max(wanted.offset, logs.starts.found[key]), logs.ends.found[key])
    if nearest == wanted.offset:
        return Change(group, *key, current, wanted)
    return Change(group, *key, current, Offset(nearest, metadata=wanted.metadata), wanted=wanted.offset)


def _problem(key: TopicPartition, logs: _Logs) -> str | None:
    return next((told.refused[key] for told in logs if key in told.refused), None)
