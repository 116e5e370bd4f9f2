"""A live cluster as a place of logs: a topic looks like a log directory whose segments are stretches of offsets.

Nobody tells how many bytes stand between two offsets, so a segment is fetched whole by the task that opens it, into
memory or, if it is large, into a file without a name. From there on it is read like any other. A batch belongs to the
segment in which it begins; the first segment begins with the batch that holds its first offset.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from kohort.errors import CorruptLog
from kohort.log.cluster import EARLIEST, LATEST, LiveCluster
from kohort.log.live import LivePartition
from kohort.log.names import LOG, offset_file
from kohort.log.place import OpenFile
from kohort.log.security import Security
from kohort.log.source import LIVE_SCHEME
from kohort.records.batch import read_header, undecided
from kohort.spark.inputs import Log, LogChanged, Segment, Stretch, find_logs, newer

_IN_MEMORY = 64 * 1024 * 1024

_STEP = 500_000
"""So many offsets make a segment, unless that would make too many of a partition."""
_MOST_SEGMENTS = 256

_BYTES_A_RECORD = 128
"""A guess, by which segments are shared out."""


Range = tuple[int, int]
"""The offset from which on a partition is wanted, and the one before which it ends."""


@dataclass(frozen=True, slots=True)
class LiveAddress:
    """Where a cluster is, and how to get in."""

    bootstrap: str
    security: Security = field(default_factory=Security)

    @property
    def url(self) -> str:
        return f"{LIVE_SCHEME}{self.bootstrap}"

    def connect(self) -> LiveCluster:
        return LiveCluster(self.url, self.security)


class LiveTopic:
    """The partitions of a topic between offsets that are fixed. It can travel: whoever opens a segment connects."""

    def __init__(self, address: LiveAddress, topic: str, ranges: Mapping[int, Range]) -> None:
        self._address, self._topic, self._ranges = address, topic, dict(ranges)
        self._cluster: LiveCluster | None = None

    def __getstate__(self) -> tuple[LiveAddress, str, dict[int, Range]]:
        return self._address, self._topic, self._ranges

    def __setstate__(self, state: tuple[LiveAddress, str, dict[int, Range]]) -> None:
        self._address, self._topic, self._ranges = state
        self._cluster = None

    def close(self) -> None:
        """Leave the cluster; the next segment that is opened connects anew."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def is_directory(self, path: str) -> bool:
        return not path.endswith(LOG)

    def names(self, directory: str) -> list[str]:
        return [offset_file(start, LOG) for start, _ in self._cuts(_partition_of(directory))]

    def size(self, path: str) -> int:
        """A guess."""
        start, end = self._cut(path)
        return (end - start) * _BYTES_A_RECORD

    def open(self, path: str) -> OpenFile:
        """The segment, fetched."""
        with contextlib.ExitStack() as on_failure:
            file = on_failure.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY))
            for data in self._fetched(path):
                file.write(data)
            on_failure.pop_all()
        return cast(OpenFile, file)

    def logs(self) -> list[Log]:
        """The logs, by partition."""
        return [
            Log(number, partition, tuple(self._segment(partition, *cut) for cut in self._cuts(partition)))
            for number, partition in enumerate(sorted(self._ranges))
        ]

    def _segment(self, partition: int, start: int, end: int) -> Segment:
        path = f"{self._address.url}/{self._topic}-{partition}/{offset_file(start, LOG)}"
        is_last = end == self._ranges[partition][1]
        return Segment(self, path, (end - start) * _BYTES_A_RECORD, active=is_last, is_fetched=True)

    def _cuts(self, partition: int) -> list[tuple[int, int]]:
        start, end = self._ranges[partition]
        step = max(_STEP, -(-(end - start) // _MOST_SEGMENTS))
        return [(at, min(end, at + step)) for at in range(start, end, step)]

    def _cut(self, path: str) -> tuple[int, int]:
        named = int(os.path.basename(path).removesuffix(LOG))
        return next(cut for cut in self._cuts(_partition_of(os.path.dirname(path))) if cut[0] == named)

    def _fetched(self, path: str) -> Iterator[bytes]:
        if self._cluster is None:
            self._cluster = self._address.connect()
        partition, (start, end) = _partition_of(os.path.dirname(path)), self._cut(path)
        is_first = start == self._ranges[partition][0]
        for data in LivePartition(self._cluster, self._topic, partition, start, end).windows():
            # The broker answers with the whole batch that holds an offset, also if the batch begins before it.
            yield data if is_first else data[_before(data, start) :]


def _before(data: bytes, start: int) -> int:
    """How many bytes the batches take that begin before an offset."""
    position = 0
    while position < len(data) and not undecided(data, position):
        try:
            header = read_header(data, position, verify=False)
        except CorruptLog:
            break
        if header.base_offset >= start:
            break
        position = header.end
    return position


def _partition_of(directory: str) -> int:
    return int(directory.rpartition("-")[2])


def live_logs(
    address: LiveAddress, topic: str, since: Mapping[int, int] | None = None, until: Mapping[int, int] | None = None
) -> list[Log]:
    """The logs of a topic as they are now, from the offsets `since` on and up to those of `until`, if given."""
    with address.connect() as cluster:
        found = bounds_of(cluster, topic)
    ranges = {}
    for partition, (first, last) in found.items():
        start = (since or {}).get(partition, 0)
        if start > last:
            raise LogChanged(
                f"{address.url}: {topic}-{partition} ends at {last}, before {start}, up to where it was read"
            )
        if 0 < start < first:
            raise LogChanged(
                f"{address.url}: {topic}-{partition} begins at {first}: what stood from {start} on is gone"
            )
        end = last if until is None else min(last, until.get(partition, 0))
        ranges[partition] = (min(max(start, first), end), end)
    return LiveTopic(address, topic, ranges).logs()


def logs_of(live: LiveAddress | None, paths: Iterable[str], topic: str, since: Mapping[int, int]) -> list[Log]:
    """The logs of a cluster or of paths, from the offsets `since` on."""
    return newer(find_logs(paths, topic), since) if live is None else live_logs(live, topic, since)


def bounds_of(cluster: LiveCluster, topic: str) -> dict[int, tuple[int, int]]:
    """The first offset of each partition, and the one behind the last."""
    keys = [(topic, number) for number in cluster.partitions_of(topic)]
    first, last = cluster.offsets(keys, EARLIEST), cluster.offsets(keys, LATEST)
    return {key[1]: (first[key], last[key]) for key in keys}


@contextlib.contextmanager
def leaving_clusters(stretches: Iterable[Stretch]) -> Iterator[None]:
    """Whatever clusters the stretches of a task are in, they are left at the end of the block."""
    places = {id(stretch.segment.place): stretch.segment.place for stretch in stretches}
    try:
        yield
    finally:
        for place in places.values():
            if isinstance(place, LiveTopic):
                place.close()
