"""Lag as one would work it out by hand, commit after commit: the measure of what Spark makes of the same history."""

from dataclasses import dataclass, field
from math import floor

from tests.spark.tables.data import Row


@dataclass
class Known:
    """What somebody knows of one topic partition: ends at times, and records with theirs. Times in milliseconds."""

    ends: list[tuple[int, int]] = field(default_factory=list)
    records: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Commit:
    offset: int
    group: str
    committed: int
    millis: int


def end_at(known: Known, commits: list[Commit], millis: int) -> tuple[int, str]:
    """Where the topic partition ended then, and how that is known."""
    samples: dict[int, tuple[int, str]] = {}
    for time, end in known.ends:
        samples[time] = max(samples.get(time, (-1, "")), (end, "end_offsets"))
    for offset, time in known.records:
        samples[time] = max(samples.get(time, (-1, "")), (offset + 1, "topic_times"))
    before = [time for time in samples if time <= millis]
    if not before:
        return max(commit.committed for commit in commits if commit.millis <= millis), "furthest_group"
    last = max(before)
    end, source = samples[last]
    after = [time for time in samples if time > millis]
    if after:
        end += floor((samples[min(after)][0] - end) * ((millis - last) / (min(after) - last)))
    return end, source


def age_at(known: Known, commits: list[Commit], commit: Commit, source: str) -> Row:
    """How long the record at the committed offset had been there."""
    offset, now = commit.committed, commit.millis
    if source == "furthest_group":
        read = min(other.millis for other in commits if other.committed > offset)
        return _age("furthest_group", now, read, read, None)
    points: dict[int, tuple[bool, int]] = {}
    for time, end in known.ends:
        points[end] = max(points.get(end, (False, -1)), (False, time))
    for place, time in known.records:
        points[place] = max(points.get(place, (False, -1)), (True, time))
    latest = {place: max(points[other][1] for other in points if other <= place) for place in points}
    after = min((place for place in points if place > offset), default=None)
    before = max((place for place in points if place <= offset), default=None)
    if after is None:
        return _age(None, now, None, None, None)
    if before is None:
        return _age("before_first_sample", now, latest[after], latest[after], None)
    if before == offset and points[before][0]:
        return _age("sample", now, latest[before], latest[before], latest[before])
    between = latest[before] + floor((latest[after] - latest[before]) * ((offset - before) / (after - before)))
    return _age("interpolated", now, between, latest[after], latest[before])


def _age(method: str | None, now: int, produced: int | None, newest: int | None, oldest: int | None) -> Row:
    def old(millis: int | None) -> float | None:
        return None if millis is None else max(now - millis, 0) / 1000

    return {
        "time_method": method,
        "lag_seconds": old(produced),
        "lag_seconds_min": old(newest),
        "lag_seconds_max": old(oldest),
    }


def history(known: Known, commits: list[Commit]) -> dict[int, Row]:
    """The lag at each commit, by the offset of its record."""
    told = {}
    for commit in commits:
        end, source = end_at(known, commits, commit.millis)
        lag = max(end - max(commit.committed, 0), 0)
        age = age_at(known, commits, commit, source) if lag else _age("caught_up", 0, 0, 0, 0)
        told[commit.offset] = {"end_offset": end, "source": source, "lag": lag} | age
    return told
