"""The cleaner: rewrites the old segments of a compacted log so that of each key only the last record is left.

A log has a clean head and a dirty tail. The map of the tail's keys is built as far as memory goes; then all segments
from the start of the log up to there are written again through `compaction.py`, in groups that fit into one segment,
each to a `.cleaned` file that is synced before the log swaps it in. Groups are swapped from the oldest on, so that a
tombstone or a marker never goes before what it hides. Where the tail begins next time is noted in
`cleaner-offset-checkpoint`, after the swaps: a note that is lost costs work, never data.

Never cleaned are the active segment, a segment that reaches beyond the last stable offset, and one with records younger
than `min.compaction.lag.ms`. Only whole segments are looked at. Before anything is taken away the log is synced: a
record must not go for the sake of one, or of a marker, that a power cut may take. It is for the log's owner to call:
nothing may truncate or delete the log meanwhile.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kohort.clock import Clock
from kohort.errors import CorruptLog
from kohort.log.checkpoints import CLEANER_OFFSET, read_offsets, write_offsets
from kohort.log.compaction import Aborted, Compaction, LastRecord, OffsetMap, Rules
from kohort.log.failures import storage_errors
from kohort.log.files import Files, join
from kohort.log.names import CLEANED, LOG, TopicPartition, offset_file
from kohort.log.partition import Log
from kohort.log.scan import MAX_RELATIVE_OFFSET
from kohort.log.segment import Segment
from kohort.records.batch import BatchHeader, RecordBatch, moved, read_records

DEDUPE_BUFFER_SIZE = 134_217_728
"""Kafka's `log.cleaner.dedupe.buffer.size`: the memory for the keys of one cleaning."""

_WRITE_BYTES = 1024 * 1024


class Cleanable(NamedTuple):
    """How much of a log is worth a cleaning: offsets from the first dirty one up to the end, and bytes."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class Cleaned(NamedTuple):
    """What a cleaning did."""

    first_dirty_offset: int
    """Where the next one begins."""
    bytes_read: int
    bytes_written: int


class Cleaner:
    """Cleans the logs of one data directory."""

    def __init__(
        self, files: Files, data_path: str, clock: Clock, *, dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE
    ) -> None:
        self._files = files
        self._clock = clock
        self._memory = dedupe_buffer_size
        self._checkpoint_path = join(data_path, CLEANER_OFFSET)
        self._first_dirty: dict[TopicPartition, int] = {}
        with storage_errors(data_path), contextlib.suppress(CorruptLog):
            self._first_dirty = read_offsets(files, self._checkpoint_path)

    def cleanable(self, log: Log) -> Cleanable:
        """What a cleaning of this log would have to look at now."""
        end = self._end_offset(log)
        first_dirty = self._first_dirty.get(log.topic_partition, 0)
        if not log.log_start_offset <= first_dirty <= end:
            first_dirty = min(log.log_start_offset, end)
        clean = dirty = 0
        for segment, following in pairwise(log.segments):
            if following.base_offset <= first_dirty:
                clean += segment.size
            elif following.base_offset <= end:
                dirty += segment.size
        return Cleanable(first_dirty, end, clean, dirty)

    def clean_filthiest(self, logs: Iterable[Log]) -> Cleaned | None:
        """Clean the compacted log with the largest dirty share, if it is beyond `min.cleanable.dirty.ratio`."""
        dirty_logs = [
            (log, cleanable.dirty_ratio)
            for log in logs
            if "compact" in log.config.cleanup_policy
            and (cleanable := self.cleanable(log)).dirty_ratio > log.config.min_cleanable_dirty_ratio
        ]
        if not dirty_logs:
            return None
        filthiest, _ = max(dirty_logs, key=lambda found: found[1])
        return self.clean(filthiest)

    def clean(self, log: Log) -> Cleaned:
        """Clean this log, whether or not it is worth it.

        Damage is `CorruptLog`, a disk that fails or is full is `StorageFailed`: the log is then clean in part.
        """
        with storage_errors(log.path):
            return self._clean(log)

    def _clean(self, log: Log) -> Cleaned:
        cleanable = self.cleanable(log)
        log.flush()
        now = self._clock.now_ms()
        last_records = {
            producer_id: LastRecord(
                entry.last_data_offset if entry.last_data_offset >= 0 else None, entry.producer_epoch
            )
            for producer_id, entry in log.producer_state.entries.items()
        }
        segments = [segment for segment in log.segments[:-1] if segment.base_offset < cleanable.end_offset]
        aborted = Aborted(log.aborted_transactions(segments[0].base_offset, cleanable.end_offset) if segments else ())
        latest = OffsetMap(self._memory, cleanable.first_dirty_offset)
        end = _fill(latest, segments, aborted, cleanable.end_offset)
        rules = Rules(
            latest=latest,
            aborted=aborted,
            last_records=last_records,
            now_ms=now,
            delete_retention_ms=log.config.delete_retention_ms,
        )
        compaction = Compaction(rules)
        read = written = 0
        for group in _groups(log, [segment for segment in segments if segment.base_offset < end]):
            read += sum(segment.size for segment in group)
            written += self._clean_group(log, group, compaction)
        self._note(log.topic_partition, end)
        return Cleaned(end, read, written)

    def forget(self, topic_partition: TopicPartition) -> None:
        """A log was deleted: one that is made anew under its name is dirty from its start."""
        if self._first_dirty.pop(topic_partition, None) is not None:
            with storage_errors(self._checkpoint_path):
                write_offsets(self._files, self._checkpoint_path, self._first_dirty)

    def _end_offset(self, log: Log) -> int:
        """Up to where whole segments may be cleaned."""
        stable = log.last_stable_offset
        youngest = self._clock.now_ms() - log.config.min_compaction_lag_ms
        for segment, following in pairwise(log.segments):
            if following.base_offset > stable:
                return segment.base_offset
            if log.config.min_compaction_lag_ms > 0 and segment.max_timestamp > youngest:
                return segment.base_offset
        return log.active_segment.base_offset

    def _clean_group(self, log: Log, group: Sequence[Segment], compaction: Compaction) -> int:
        path = join(log.path, offset_file(group[0].base_offset, LOG, CLEANED))
        try:
            size, changed = self._write(path, group, compaction)
        except (OSError, CorruptLog):
            with contextlib.suppress(OSError):
                self._files.unlink(path)
            raise
        if changed or len(group) > 1:
            log.replace_segments(path, group)
        else:
            self._files.unlink(path)
        return size

    def _write(self, path: str, group: Sequence[Segment], compaction: Compaction) -> tuple[int, bool]:
        """Write what is left of a group; how much that is, and whether it is anything else than before."""
        changed = False
        buffer = bytearray()
        with contextlib.closing(self._files.open(path, create=True)) as file:
            file.truncate(0)
            for segment in group:
                for header, data in _batches(segment):
                    kept = compaction.clean(header, data)
                    changed = changed or kept != data
                    buffer += kept
                    if len(buffer) >= _WRITE_BYTES:
                        file.append(bytes(buffer))
                        buffer.clear()
            file.append(bytes(buffer))
            file.sync()
            size = file.size()
        return size, changed

    def _note(self, topic_partition: TopicPartition, first_dirty_offset: int) -> None:
        if self._first_dirty.get(topic_partition) != first_dirty_offset:
            self._first_dirty[topic_partition] = first_dirty_offset
            write_offsets(self._files, self._checkpoint_path, self._first_dirty)


def _batches(segment: Segment) -> Iterator[tuple[BatchHeader, bytes]]:
    """Every batch with its checksum verified: a damaged one must not be written again under a good checksum."""
    for header, data in segment.batches():
        yield moved(header, -header.position), data


def _fill(latest: OffsetMap, segments: Sequence[Segment], aborted: Aborted, end_offset: int) -> int:
    """Note the keys of the dirty segments in the map, and return the offset up to which all fitted."""
    ends = [*(segment.base_offset for segment in segments), end_offset][1:]
    for segment, end in zip(segments, ends, strict=True):
        if end <= latest.first_dirty_offset:
            continue
        for header, data in _batches(segment):
            if header.last_offset < latest.first_dirty_offset:
                continue
            batch = RecordBatch(header, read_records(header, data))
            if not latest.put_batch(batch, aborted=aborted.contains(header)):
                return latest.latest_offset + 1
    return end_offset


def _groups(log: Log, segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Runs of segments that fit into one, by size and by the reach of an index entry."""
    ends = {segment.base_offset: following.base_offset for segment, following in pairwise(log.segments)}
    group: list[Segment] = []
    size = 0
    for segment in segments:
        reach = ends[segment.base_offset] - 1 - group[0].base_offset if group else 0
        if group and (size + segment.size > log.config.segment_bytes or reach > MAX_RELATIVE_OFFSET):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group
