"""What is to be read: a path becomes logs, and logs become stretches, packed by bytes into input partitions.

A stretch is a run of bytes of one segment file. An input partition holds the stretches of one equal share of all bytes,
in the order of the log: small segments come together in one, a large one is cut into several.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kohort.errors import KohortError
from kohort.log.names import parse_offset_file, parse_partition_directory
from kohort.log.place import Place
from kohort.log.source import BadSource
from kohort.log.stored import find_partitions, segments_in
from kohort.spark.places import expand, locate

OFFSETS_TOPIC = "__consumer_offsets"

UNBOUNDED = 1 << 62
"""The end of a stretch that goes as far as its segment does."""

SHARE_BYTES = 512 * 1024 * 1024
"""What an input partition should hold at most, where nobody says how many there are to be: some seconds of work. A
task writes a file of its own, and Parquet's dictionaries begin anew in each, so small shares cost time and space."""

SMALLEST_SHARE = 8 * 1024 * 1024
_OPENING = 64 * 1024
"""What it costs to open a file, in bytes read."""


class LogChanged(KohortError):
    """A file is no longer what it was when the log was listed."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file as it was listed. An active one may have grown since, any other is finished.

    The size of one that is fetched from a cluster is a guess: it is read whole.
    """

    place: Place
    path: str
    size: int
    active: bool
    is_fetched: bool = False

    @property
    def base_offset(self) -> int | None:
        """The first offset that the file can hold, if its name tells."""
        name = parse_offset_file(os.path.basename(self.path))
        return None if name is None else name.offset

    def check(self, size: int) -> None:
        """Refuse a file whose size says that it was cleaned, cut or replaced meanwhile."""
        if not self.is_fetched and (size < self.size or (size > self.size and not self.active)):
            raise LogChanged(f"{self.path}: had {self.size} bytes, has {size}: the log changed while it was read")


@dataclass(frozen=True, slots=True)
class Log:
    """One partition's segments, in order. Several may be unknown partitions, so each has a number of its own too."""

    number: int
    partition: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The batches of a segment that begin between two bytes; `last` is the segment with which its log ends.

    Of one that is known to begin with a batch, that has not to be found out.
    """

    log: int
    partition: int
    segment: Segment
    start: int
    end: int
    last: Segment
    is_border: bool = False

    def following(self) -> list[str]:
        """The segments behind this one, up to the last that was listed, as they are there now.

        They are not listed here: in a log of thousands of segments each stretch would carry thousands of names.
        """
        first, last = _base_offset(self.segment.path), _base_offset(self.last.path)
        directory = os.path.dirname(self.segment.path)
        there = segments_in(self.segment.place, directory) if first < last else ()
        return [path for path in there if first < _base_offset(path) <= last]


def find_logs(paths: Iterable[str], topic: str = OFFSETS_TOPIC) -> list[Log]:
    """The logs that some paths or patterns stand for, by partition."""
    found: dict[str, list[str]] = {}
    partitions: dict[str, int] = {}
    places: dict[str, Place] = {}
    for given in paths:
        place, inside = locate(given)
        for path in expand(place, inside):
            for stored in find_partitions(path, topic, place):
                for segment in stored.segments:
                    directory = os.path.dirname(os.path.abspath(segment))
                    _refuse_other_topic(directory, topic)
                    found.setdefault(directory, []).append(segment)
                    partitions[directory], places[directory] = stored.partition, place
    _refuse_twins(partitions)
    directories = sorted(found, key=lambda directory: (partitions[directory], directory))
    return [
        Log(number, partitions[directory], _segments(places[directory], found[directory]))
        for number, directory in enumerate(directories)
    ]


def _segments(place: Place, paths: list[str]) -> tuple[Segment, ...]:
    ordered = sorted(set(paths), key=lambda path: (_base_offset(path), path))
    return tuple(Segment(place, path, _size(place, path), path == ordered[-1]) for path in ordered)


def _base_offset(path: str) -> int:
    name = parse_offset_file(os.path.basename(path))
    return -1 if name is None else name.offset


def _size(place: Place, path: str) -> int:
    try:
        return place.size(path)
    except OSError as error:
        raise LogChanged(f"{path}: {error.strerror}: the log changed while it was listed") from None


def _refuse_other_topic(directory: str, topic: str) -> None:
    """A directory that is named after a partition of another topic is not read as if it were one of ours."""
    named = parse_partition_directory(os.path.basename(directory))
    if named is not None and named.topic != topic:
        raise BadSource(f"{directory}: a partition of {named.topic}, not of {topic}; to read it, name it as the topic")


def _refuse_twins(partitions: dict[str, int]) -> None:
    """The same partition from two places is two replicas of one log: together they would count everything twice."""
    first: dict[int, str] = {}
    for directory, partition in partitions.items():
        if partition >= 0 and first.setdefault(partition, directory) != directory:
            raise BadSource(f"partition {partition} is given twice: {first[partition]} and {directory}")


def newer(logs: Sequence[Log], since: Mapping[int, int]) -> list[Log]:
    """The same logs without the segments that hold nothing from the offset on that is given for their partition.

    A log that begins behind that offset lacks something in between: a cleaner would have left the segment's name.
    """
    return [dataclasses.replace(log, segments=_from(log, since.get(log.partition, 0))) for log in logs]


def _from(log: Log, offset: int) -> tuple[Segment, ...]:
    bases = [_base_offset(segment.path) for segment in log.segments]
    if bases and offset and bases[0] > offset:
        raise BadSource(f"{log.segments[0].path}: begins at offset {bases[0]}, what was kept ends before {offset}")
    skipped = sum(1 for base in bases[1:] if base <= offset) if offset else 0
    return log.segments[skipped:]


def share_out(logs: Sequence[Log], shares: int | None = None) -> list[list[Stretch]]:
    """The stretches of each input partition: so many, or as many as the bytes and this machine's cores suggest."""
    opening = _OPENING if shares is None else 0
    total = sum(segment.size + opening for log in logs for segment in log.segments)
    if shares is None:
        cores = os.cpu_count() or 1
        share = min(SHARE_BYTES, max(SMALLEST_SHARE, -(-total // cores)))
        shares = max(1, -(-total // share))
        if shares > cores:  # else some cores would have nothing to do in the last round
            shares = -(-shares // cores) * cores
    bounds = [total * number // shares for number in range(1, shares + 1)]
    shared: list[list[Stretch]] = [[] for _ in bounds]
    number, behind = 0, 0
    for log in logs:
        for segment in log.segments:
            behind += opening
            start = 0
            while start < segment.size:
                while number < shares - 1 and bounds[number] <= behind:
                    number += 1
                is_whole = segment.is_fetched or number == shares - 1
                end = segment.size if is_whole else min(segment.size, start + bounds[number] - behind)
                to = UNBOUNDED if segment.is_fetched else end
                shared[number].append(Stretch(log.number, log.partition, segment, start, to, log.segments[-1]))
                behind += end - start
                start = end
    return [stretches for stretches in shared if stretches] or [[]]
