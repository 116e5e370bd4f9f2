"""How far a stream has read: a mark for each partition, and what stands between two marks.

A mark is the offset of the next record. In files it also says in which segment the last batch before it stands, and
where that begins and ends, so that what was read needs not be looked at again. Segments may be cleaned meanwhile: if
that batch is not there any more, the offset alone counts. Nothing is read twice or left out either way.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kohort.log.cluster import LiveCluster
from kohort.log.source import BadSource
from kohort.log.stretch import batch_borders
from kohort.spark.inputs import Log, LogChanged, Segment, Stretch, find_logs, share_out
from kohort.spark.live import LiveAddress, bounds_of, live_logs
from kohort.spark.reading import open_segment

_SHARE_BYTES = 64 * 1024 * 1024
"""What a task gets of the files of one micro-batch, about."""

Mark = Mapping[str, int]
Marks = Mapping[str, Mark]
"""By partition, in a form that JSON has: keys are strings."""


def offsets_of(marks: Marks) -> dict[int, int]:
    """The offset of each partition's mark."""
    return {int(partition): mark["offset"] for partition, mark in marks.items()}


class Followed(Protocol):
    """A log that grows."""

    def last(self, start: Marks, most: int | None) -> dict[str, Mark]:
        """Where each partition ends now, or so many offsets behind `start`, shared out by what each partition has."""

    def between(self, start: Marks, end: Marks, shares: int | None) -> list[list[Stretch]]:
        """The stretches from one mark to another, for some tasks. They may hold more: offsets tell what counts."""

    def close(self) -> None:
        """Leave it."""


class FollowedCluster:
    """A topic of a live cluster. It keeps its connection, for it is asked ever again; it travels without."""

    def __init__(self, address: LiveAddress, topic: str) -> None:
        self._address, self._topic = address, topic
        self._cluster: LiveCluster | None = None

    def __getstate__(self) -> tuple[LiveAddress, str]:
        return self._address, self._topic

    def __setstate__(self, state: tuple[LiveAddress, str]) -> None:
        self._address, self._topic = state
        self._cluster = None

    def last(self, start: Marks, most: int | None) -> dict[str, Mark]:
        if self._cluster is None:
            self._cluster = self._address.connect()
        try:
            bounds = bounds_of(self._cluster, self._topic)
        except BadSource:
            self.close()
            raise
        begun = offsets_of(start)
        ends = {partition: max(end, begun.get(partition, 0)) for partition, (_, end) in bounds.items()}
        begins = {partition: max(begun.get(partition, 0), first) for partition, (first, _) in bounds.items()}
        return {str(partition): {"offset": end} for partition, end in limited(begins, ends, most).items()}

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def between(self, start: Marks, end: Marks, shares: int | None) -> list[list[Stretch]]:
        return share_out(live_logs(self._address, self._topic, offsets_of(start), offsets_of(end)), shares)


@dataclass(frozen=True, slots=True)
class FollowedFiles:
    """Logs in files, to which more is appended."""

    paths: tuple[str, ...]
    topic: str

    def last(self, start: Marks, most: int | None) -> dict[str, Mark]:
        logs = {log.partition: log for log in self._logs()}
        ends = {partition: _mark_at(log, None, start.get(str(partition))) for partition, log in logs.items()}
        begun = offsets_of(start)
        begins = {partition: max(begun.get(partition, 0), _first(log)) for partition, log in logs.items()}
        there = {partition: max(mark["offset"], begins[partition]) for partition, mark in ends.items()}
        for partition, offset in limited(begins, there, most).items():
            if begins[partition] < offset < there[partition]:
                ends[partition] = _mark_at(logs[partition], offset, start.get(str(partition)))
            elif offset == begins[partition] and str(partition) in start:
                ends[partition] = start[str(partition)]
        return {str(partition): mark for partition, mark in ends.items()}

    def between(self, start: Marks, end: Marks, shares: int | None) -> list[list[Stretch]]:
        found = [
            stretch
            for log in self._logs()
            if str(log.partition) in end
            for stretch in _between(log, start.get(str(log.partition)), end[str(log.partition)])
        ]
        return _shared(found, shares)

    def close(self) -> None:
        """Nothing is kept open."""

    def _logs(self) -> list[Log]:
        logs = [log for log in find_logs(self.paths, self.topic) if log.segments]
        if sum(log.partition < 0 for log in logs) > 1:
            raise LogChanged(f"{self.paths[0]}: several logs whose places do not tell their partitions; follow one")
        return logs


def followed(live: LiveAddress | None, paths: tuple[str, ...], topic: str) -> Followed:
    return FollowedFiles(paths, topic) if live is None else FollowedCluster(live, topic)


def limited(begins: Mapping[int, int], ends: Mapping[int, int], most: int | None) -> dict[int, int]:
    """The ends, or of each partition such a part that all of them together are at most so many offsets, but some."""
    there = {partition: ends[partition] - begin for partition, begin in begins.items()}
    total = sum(there.values())
    if most is None or total <= most:
        return dict(ends)
    taken = {partition: count * most // total for partition, count in there.items()}
    left = most - sum(taken.values())
    for partition, count in there.items():
        more = min(left, count - taken[partition], 1)
        taken[partition] += more
        left -= more
    return {partition: begin + taken[partition] for partition, begin in begins.items()}


def _first(log: Log) -> int:
    return max(_base(log.segments[0]), 0)


def _base(segment: Segment) -> int:
    return segment.base_offset or 0


def _mark_at(log: Log, offset: int | None, start: Mark | None) -> Mark:
    """The mark behind the batch that holds the record before an offset; without one, behind the last whole batch.

    Where a cleaner has left nothing of that, it is behind the next batch that is there.
    """
    bases = [_base(segment) for segment in log.segments]
    number = len(bases) - 1 if offset is None else max((n for n, base in enumerate(bases) if base < offset), default=0)
    mark: Mark = {}
    for segment in log.segments[number:]:
        mark = _mark_in(segment, offset, start)
        if offset is None or mark["offset"] >= offset:
            break
    return mark


def _mark_in(segment: Segment, offset: int | None, start: Mark | None) -> Mark:
    base = _base(segment)
    mark: Mark = {"offset": base, "segment": base, "batch": 0, "byte": 0}
    if start is not None and _fits(segment, start):
        mark = start
    with open_segment(segment) as (file, size):
        for starts, ends, nexts in batch_borders(file, size, mark["byte"]):
            if not len(ends):
                continue
            at = len(ends) - 1 if offset is None else min(int(np.searchsorted(nexts, offset)), len(ends) - 1)
            mark = {"offset": int(nexts[at]), "segment": base, "batch": int(starts[at]), "byte": int(ends[at])}
            if offset is not None and mark["offset"] >= offset:
                break
    return mark


def _fits(segment: Segment, mark: Mark) -> bool:
    """Whether the batch before a mark is still where it was."""
    if mark.get("segment") != _base(segment):
        return False
    with open_segment(segment) as (file, size):
        if mark["byte"] > size:
            return False
        for starts, ends, nexts in batch_borders(file, mark["byte"], mark["batch"]):
            if len(ends) == 1:
                found = int(starts[0]), int(ends[0]), int(nexts[0])
                return found == (mark["batch"], mark["byte"], mark["offset"])
    return mark["byte"] == 0


def _between(log: Log, start: Mark | None, end: Mark) -> list[Stretch]:
    begin = 0 if start is None else start["offset"]
    if begin >= end["offset"] or not log.segments:
        return []
    bases = [_base(segment) for segment in log.segments]
    if begin and bases[0] > begin:
        raise LogChanged(f"{log.segments[0].path}: begins at offset {bases[0]}: what stood from {begin} on is gone")
    first = max((number for number, base in enumerate(bases) if base <= begin), default=0)
    last = max((number for number, base in enumerate(bases) if base < end["offset"]), default=0)
    from_byte = start["byte"] if start is not None and _fits(log.segments[first], start) else 0
    to_byte = end["byte"] if _fits(log.segments[last], end) else log.segments[last].size
    tail = dataclasses.replace(log.segments[last], size=to_byte, active=True)
    wanted = [*log.segments[first:last], tail]
    stretches = []
    for number, segment in enumerate(wanted):
        at = from_byte if number == 0 else 0
        if at < segment.size:
            stretches.append(Stretch(log.number, log.partition, segment, at, segment.size, tail, is_border=at > 0))
    return stretches


def _shared(stretches: list[Stretch], shares: int | None) -> list[list[Stretch]]:
    """Stretches in their order, some for each task, about the same bytes for all."""
    total = sum(stretch.end - stretch.start for stretch in stretches)
    count = shares or max(1, -(-total // _SHARE_BYTES))
    shared: list[list[Stretch]] = [[] for _ in range(count)]
    behind = 0
    for stretch in stretches:
        shared[min(behind * count // max(total, 1), count - 1)].append(stretch)
        behind += stretch.end - stretch.start
    return [some for some in shared if some]
