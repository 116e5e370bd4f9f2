"""The cleaner: rewrites the old segments of a compacted log so that of each key only the last record is left.

A log has a clean head and a dirty tail. The map of the tail's keys is built as far as memory goes; then all segments
from the start of the log up to there are written again through `compaction.py`, in groups that fit into one segment,
each to a `.cleaned` file that is synced before the log swaps it in. Groups are swapped from the oldest on, so that a
tombstone or a marker never goes before what it hides. Where the tail begins next time is noted in
`cleaner-offset-checkpoint`, after the swaps: a note that is lost costs work, never data.

Never cleaned are the active segment, a segment that reaches beyond the last stable offset, and one with records younger
than `min.compaction.lag.ms`. Only whole segments are looked at. Before anything is taken away the log is synced: a
record must not go for the sake of one, or of a marker, that a power cut may take.

The log's owner begins a cleaning and puts each of its steps in place; what lies between, all the reading and writing,
may be done in another thread while the owner appends and reads. Nothing may truncate the log meanwhile. A cleaning of a
log that is closed fails.
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kohort.clock import Clock
from kohort.errors import CorruptLog, KohortError, LogClosed
from kohort.log.checkpoints import CLEANER_OFFSET, read_offsets, write_offsets
from kohort.log.compaction import Aborted, Compaction, LastRecord, OffsetMap, Rules
from kohort.log.failures import storage_errors
from kohort.log.files import Files, join
from kohort.log.names import CLEANED, LOG, TopicPartition, offset_file
from kohort.log.partition import Log
from kohort.log.scan import MAX_RELATIVE_OFFSET, Pause
from kohort.log.segment import Segment
from kohort.log.swap import Replacement
from kohort.records.batch import BatchHeader, RecordBatch, moved, read_records

DEDUPE_BUFFER_SIZE = 134_217_728
"""Kafka's `log.cleaner.dedupe.buffer.size`: the memory for the keys of one cleaning."""

_WRITE_BYTES = 1024 * 1024


class CleaningStopped(KohortError):
    """Somebody wants the cleaner to end. What it has put in place stays."""


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
        self.dedupe_buffer_size = dedupe_buffer_size
        self._checkpoint_path = join(data_path, CLEANER_OFFSET)
        self._notes = threading.Lock()
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

    def filthiest(self, logs: Iterable[Log]) -> Log | None:
        """The compacted log with the largest dirty share, if there is one beyond `min.cleanable.dirty.ratio`."""
        dirty_logs = [
            (log, cleanable.dirty_ratio)
            for log in logs
            if "compact" in log.config.cleanup_policy
            and (cleanable := self.cleanable(log)).dirty_ratio > log.config.min_cleanable_dirty_ratio
        ]
        return max(dirty_logs, key=lambda found: found[1])[0] if dirty_logs else None

    def clean(self, log: Log) -> Cleaned:
        """Clean this log, whether or not it is worth it.

        Damage is `CorruptLog`, a disk that fails or is full is `StorageFailed`: the log is then clean in part.
        """
        cleaning = self.begin(log)
        for step in cleaning.steps():
            log.replace(step)
        self.note(cleaning)
        return cleaning.cleaned

    def begin(self, log: Log, pause: Pause | None = None) -> "Cleaning":
        """Begin to clean a log. What changes with every append is looked at now, by its owner."""
        cleanable = self.cleanable(log)
        segments = [segment for segment in log.segments[:-1] if segment.base_offset < cleanable.end_offset]
        aborted = log.aborted_transactions(segments[0].base_offset, cleanable.end_offset) if segments else []
        last_records = {
            producer_id: LastRecord(
                entry.last_data_offset if entry.last_data_offset >= 0 else None, entry.producer_epoch
            )
            for producer_id, entry in log.producer_state.entries.items()
        }
        rules = Rules(
            latest=OffsetMap(self.dedupe_buffer_size, cleanable.first_dirty_offset),
            aborted=Aborted(aborted),
            last_records=last_records,
            now_ms=self._clock.now_ms(),
            delete_retention_ms=log.config.delete_retention_ms,
        )
        return Cleaning(self._files, log, cleanable, segments, rules, pause)

    def note(self, cleaning: "Cleaning") -> None:
        """Write down, in any thread, where the next cleaning begins."""
        log = cleaning.log
        first_dirty = cleaning.cleaned.first_dirty_offset
        with self._notes:
            if not log.is_closed and self._first_dirty.get(log.topic_partition) != first_dirty:
                self._write({**self._first_dirty, log.topic_partition: first_dirty})

    def forget(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Logs were deleted: those that are made anew under their names are dirty from their start."""
        gone = set(topic_partitions)
        with self._notes:
            left = {where: offset for where, offset in self._first_dirty.items() if where not in gone}
            if len(left) < len(self._first_dirty):
                self._write(left)

    def _write(self, first_dirty: dict[TopicPartition, int]) -> None:
        self._first_dirty = first_dirty
        with storage_errors(self._checkpoint_path):
            write_offsets(self._files, self._checkpoint_path, first_dirty)

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


class Cleaning:
    """One cleaning of one log."""

    def __init__(
        self,
        files: Files,
        log: Log,
        cleanable: Cleanable,
        segments: Sequence[Segment],
        rules: Rules,
        pause: Pause | None,
    ) -> None:
        self._files = files
        self.log = log
        self._cleanable = cleanable
        self._segments = segments
        self._ends = {segment.base_offset: following.base_offset for segment, following in pairwise(log.segments)}
        self._rules = rules
        self._pause = pause
        self._is_stopped = False
        self.cleaned = Cleaned(cleanable.first_dirty_offset, 0, 0)
        """What it has done, when its steps are through."""

    def stop(self) -> None:
        """End as soon as possible, with `CleaningStopped`. A step that is being put on the disk is finished."""
        self._is_stopped = True

    def steps(self) -> Iterator[Replacement]:
        """The whole work, in any thread. The owner has to `replace` each step before the next is asked for.

        Damage is `CorruptLog`, a disk that fails or is full is `StorageFailed`: the log is then clean in part.
        """
        with storage_errors(self.log.path):
            self.log.flush()
            end = self._fill()
            compaction = Compaction(self._rules)
            read = written = 0
            for group in self._groups([segment for segment in self._segments if segment.base_offset < end]):
                read += sum(segment.size for segment in group)
                size, step = self._clean_group(group, compaction)
                written += size
                if step is not None:
                    yield step
        self.cleaned = Cleaned(end, read, written)

    def _fill(self) -> int:
        """Note the keys of the dirty segments in the map, and return the offset up to which all fitted."""
        latest, aborted = self._rules.latest, self._rules.aborted
        for segment in self._segments:
            if min(self._ends[segment.base_offset], self._cleanable.end_offset) <= latest.first_dirty_offset:
                continue
            for header, data in self._batches(segment):
                if header.last_offset < latest.first_dirty_offset:
                    continue
                batch = RecordBatch(header, read_records(header, data))
                if not latest.put_batch(batch, aborted=aborted.contains(header)):
                    return latest.latest_offset + 1
        return self._cleanable.end_offset

    def _groups(self, segments: Sequence[Segment]) -> Iterator[list[Segment]]:
        """Runs of segments that fit into one, by size and by the reach of an index entry."""
        group: list[Segment] = []
        size = 0
        for segment in segments:
            reach = self._ends[segment.base_offset] - 1 - group[0].base_offset if group else 0
            if group and (size + segment.size > self.log.config.segment_bytes or reach > MAX_RELATIVE_OFFSET):
                yield group
                group, size = [], 0
            group.append(segment)
            size += segment.size
        if group:
            yield group

    def _clean_group(self, group: Sequence[Segment], compaction: Compaction) -> tuple[int, Replacement | None]:
        """How much is left of a group, and what takes its place, unless it stays as it is."""
        path = join(self.log.path, offset_file(group[0].base_offset, LOG, CLEANED))
        try:
            size, changed = self._write(path, group, compaction)
        except (OSError, KohortError):
            self._discard(path)
            raise
        if not changed and len(group) == 1:
            self._files.unlink(path)
            return size, None
        try:
            return size, self.log.swap_in(path, group, self._pause)
        except LogClosed:
            self._discard(path)
            raise

    def _discard(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._files.unlink(path)

    def _write(self, path: str, group: Sequence[Segment], compaction: Compaction) -> tuple[int, bool]:
        """Write what is left of a group; how much that is, and whether it is anything else than before."""
        changed = False
        buffer = bytearray()
        with contextlib.closing(self._files.open(path, create=True)) as file:
            file.truncate(0)
            for segment in group:
                for header, data in self._batches(segment):
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

    def _batches(self, segment: Segment) -> Iterator[tuple[BatchHeader, bytes]]:
        """Every batch with its checksum verified: a damaged one must not be written again under a good checksum.

        The file is opened once more: the log may let go of its own when it is deleted.
        """
        own = Segment.open(self._files, self.log.path, segment.base_offset, segment.created_ms)
        with contextlib.closing(own):
            for header, data in own.batches(pause=self._pause):
                if self._pause is not None:
                    self._pause()
                if self._is_stopped:
                    raise CleaningStopped(f"the cleaning of {self.log.topic_partition} was stopped")
                yield moved(header, -header.position), data
