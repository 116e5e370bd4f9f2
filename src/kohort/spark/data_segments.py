"""What the segments of other topics, beside the offsets topic, tell of them: where each ends, and when records came.

Data topics may be large, so of each segment only the header of its first batch and its time index are looked at, and of
the last one the headers behind the last entry of its index. A dead broker leaves indexes that are filled up with
zeros, a copy may lack them, and a broker of ours that runs has those of its last segments in memory: where a time index
is missing, the headers of the segment's first batches stand in.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from kohort.errors import CorruptLog
from kohort.log.checkpoints import LOG_START_OFFSET
from kohort.log.names import INDEX, LOG, TIME_INDEX, TopicPartition, parse_offset_file, parse_partition_directory
from kohort.log.place import OpenFile, Place
from kohort.log.source import LIVE_SCHEME
from kohort.log.stored import segments_in
from kohort.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, claimed_end, read_header
from kohort.spark.arrays import time_or_none
from kohort.spark.places import locate
from kohort.spark.schema import arrow_schema_of

NOT_DATA = ("__transaction_state", "__share_group_state", "__cluster_metadata")

_SAMPLES = 64
"""How many times are kept of a segment."""

_WALKED = 1 << 20
"""How much of a segment is looked through that has no time index."""

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])

Sample = tuple[int, int]
"""A time and the offset of a record of that time."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What is known of data topics: `end_offsets` and `topic_times`."""

    end_offsets: pa.Table
    topic_times: pa.Table

    @property
    def last_time(self) -> int | None:
        """The latest time at which an end was known, in milliseconds."""
        times = [at for at in self.end_offsets.column("at").to_pylist() if at is not None]
        return (max(times) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) if times else None


def find_ends(source: str, offsets_topic: str, last_heard: int) -> Ends | None:
    """The ends of the data topics in a Kafka log directory; None if there are none beside the offsets topic.

    A partition whose records carry no time ended where it ends when the log was last heard of.
    """
    if source.startswith(LIVE_SCHEME):
        return None
    place, directory = locate(source)
    if not place.is_directory(directory):
        return None
    starts = _raised_starts(place, directory)
    ends: list[dict[str, object]] = []
    times: list[dict[str, object]] = []
    for topic_partition, path in _data_partitions(place, directory, offsets_topic):
        segments = segments_in(place, path)
        if not segments:
            continue
        end, last = _end_of(place, segments[-1])
        told = [*_samples(place, segments), *([last] if last is not None else [])]
        samples = [sample for sample in told if time_or_none(sample[0]) is not None]
        key = {"topic": topic_partition.topic, "topic_partition": topic_partition.partition}
        at = max((timestamp for timestamp, _ in samples), default=last_heard)
        start = max(_base_offset(segments[0]), starts.get(topic_partition, 0))
        ends.append({**key, "start_offset": start, "end_offset": end, "at": time_or_none(at)})
        times += [{**key, "offset": offset, "timestamp": time_or_none(time)} for time, offset in rising(samples)]
    if not ends:
        return None
    return Ends(
        pa.Table.from_pylist(ends, schema=arrow_schema_of("end_offsets")),
        pa.Table.from_pylist(times, schema=arrow_schema_of("topic_times")),
    )


def _data_partitions(place: Place, directory: str, offsets_topic: str) -> Iterator[tuple[TopicPartition, str]]:
    for name in place.names(directory):
        found = parse_partition_directory(name)
        path = os.path.join(directory, name)
        if found and found.topic not in (offsets_topic, *NOT_DATA) and place.is_directory(path):
            yield found, path


def _raised_starts(place: Place, directory: str) -> dict[TopicPartition, int]:
    """Where partitions begin whose first records were deleted by request, as the broker wrote it down last."""
    path = os.path.join(directory, LOG_START_OFFSET)
    try:
        with place.open(path) as file:
            lines = (file.read(place.size(path)) or b"").decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return {}
    entries = (line.split(" ") for line in lines)
    return {
        TopicPartition(entry[0], int(entry[1])): int(entry[2])
        for entry in entries
        if len(entry) == 3 and entry[1].isdecimal() and entry[2].isdecimal()
    }


def _base_offset(segment: str) -> int:
    name = parse_offset_file(os.path.basename(segment))
    return 0 if name is None else name.offset


def _samples(place: Place, segments: tuple[str, ...]) -> Iterator[Sample]:
    """Times of a partition's records: the first of each segment, and what its time index says."""
    for segment in segments:
        try:
            with place.open(segment) as file:
                first = _header_at(file, 0, place.size(segment))
        except FileNotFoundError:
            continue  # its time was over, and the broker has removed it
        if first is not None and first.base_timestamp != NO_TIMESTAMP:
            yield first.base_timestamp, first.base_offset
        entries: list[Sample] = _entries(place, segment, TIME_INDEX, _TIME_ENTRY, "timestamp").tolist()
        base = _base_offset(segment)
        told = [(timestamp, base + offset) for timestamp, offset in entries] or _walked(place, segment)
        yield from told[:: max(1, -(-len(told) // _SAMPLES))]


def _walked(place: Place, segment: str) -> list[Sample]:
    """The times of the batches at the beginning of a segment without a time index: its broker runs, and keeps it."""
    found: list[Sample] = []
    try:
        size, position = place.size(segment), 0
        with place.open(segment) as file:
            while position < _WALKED and (header := _header_at(file, position, size)) is not None:
                position += header.size
                if header.max_timestamp != NO_TIMESTAMP:
                    found.append((header.max_timestamp, header.last_offset))
    except FileNotFoundError:
        return found  # its time was over, and the broker has removed it
    return found


def _end_of(place: Place, segment: str) -> tuple[int, Sample | None]:
    """The offset behind the last whole batch of a partition's last segment, and the time of the batch if it has one."""
    end, last = _base_offset(segment), None
    entries = _entries(place, segment, INDEX, _OFFSET_ENTRY, "position")
    size = place.size(segment)
    starts = [int(entries[-1]["position"])] if len(entries) and entries[-1]["position"] < size else []
    with place.open(segment) as file:
        for start in (*starts, 0):
            position = start
            while (header := _header_at(file, position, size)) is not None and header.base_offset >= end:
                end, position = header.next_offset, position + header.size
                if header.max_timestamp != NO_TIMESTAMP:
                    last = (header.max_timestamp, header.last_offset)
            if position > start:
                break  # else the index is not of this segment, and the walk begins at its beginning
    return end, last


def _header_at(file: OpenFile, position: int, size: int) -> BatchHeader | None:
    """The header of the batch that begins at a byte; None if there is no whole one."""
    file.seek(position)
    raw = file.read(HEADER_SIZE) or b""
    end = claimed_end(raw, 0)
    if end is None or position + end > size:
        return None
    try:
        # Only the header is looked at, so the rest of the batch may as well be zeros.
        return read_header(raw + bytes(max(0, end - len(raw))), verify=False)
    except CorruptLog:
        return None


def _entries(place: Place, segment: str, kind: str, type_: np.dtype[np.void], rising: str) -> np.ndarray:
    """The entries of a segment's index, as far as they rise; none if it is not there."""
    path = segment.removesuffix(LOG) + kind
    try:
        with place.open(path) as file:
            data = file.read(place.size(path)) or b""
    except FileNotFoundError:
        return np.empty(0, type_)
    entries = np.frombuffer(data[: len(data) // type_.itemsize * type_.itemsize], type_)
    values = entries[rising].astype(np.int64)
    falls = np.flatnonzero(np.diff(values, prepend=0) <= 0)
    return entries[: int(falls[0])] if len(falls) else entries


def rising(samples: list[Sample]) -> Iterator[Sample]:
    """The samples in the order of their offsets, without those whose time goes back."""
    latest = NO_TIMESTAMP
    for timestamp, offset in sorted(set(samples), key=lambda sample: (sample[1], sample[0])):
        if timestamp > latest:
            yield timestamp, offset
            latest = timestamp
