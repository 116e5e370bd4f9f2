"""A partition: a log of segments with one owner, who alone appends, rolls, truncates and deletes.

Offsets of a log, in their order:

    log start ≤ last stable offset ≤ high watermark ≤ log end

The log end moves with every append. The high watermark says how far readers see: up to what is on the disk when every
append waits for a sync, else up to the log end. The last stable offset stays in front of the oldest open transaction.

A second thread may call `flush`; whatever closes or cuts the active segment takes the same lock. A third, that of the
cleaner, may `swap_in` files in the place of old segments while the owner appends and reads; whatever takes segments out
of use or closes them waits for it (`_removal`, always taken before the other lock). When the disk has failed, the log
takes no more writes: what is on the disk is unknown until it is opened anew.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn

from kohort.clock import Clock
from kohort.config import FlushMode, LogConfig
from kohort.errors import CorruptLog, LogClosed, OffsetOutOfRange, StorageFailed
from kohort.log.answers import AppendInfo, Fetched, OffsetAndTimestamp, ReadUpTo
from kohort.log.failures import is_disk_full, storage_errors
from kohort.log.files import DISK_FULL, Files
from kohort.log.flushed_offset import FlushedOffset, LogEnd
from kohort.log.keeper import Keeper
from kohort.log.leader_epochs import LeaderEpochs
from kohort.log.names import TopicPartition
from kohort.log.placement import needs_new_segment, place
from kohort.log.producer_entry import AppendOrigin
from kohort.log.producer_loading import load_snapshot, replay_segments
from kohort.log.producer_snapshot import delete_snapshots, write_snapshot
from kohort.log.producer_state import PlacedBatch, ProducerAppend, ProducerState
from kohort.log.retention import count_deletable
from kohort.log.scan import Pause
from kohort.log.segment import BatchNote, Segment
from kohort.log.swap import Replacement, begin_swap, finish_swaps, remaining_aborted, retire
from kohort.log.txn_index import AbortedTransaction
from kohort.log.validation import LOG_APPEND_TIME, read_headers, validate, validate_size
from kohort.records.batch import NO_TIMESTAMP, stamp
from kohort.records.finished_batch import FinishedBatch

__all__ = ["AppendInfo", "AppendOrigin", "Fetched", "Log", "OffsetAndTimestamp", "ReadUpTo"]

BeforeTruncation = Callable[[int], None]
"""Told the offset below which a log will be left alone, before it is truncated."""


@dataclass(frozen=True, slots=True)
class LogParts:
    """What an opened partition directory holds."""

    segments: list[Segment]
    producer_state: ProducerState
    leader_epochs: LeaderEpochs
    flushed: FlushedOffset
    log_start_offset: int
    cut_bytes: int = 0
    """How many bytes of a bad tail were cut off when the log was opened."""


class Log:
    """One partition's log. `recovery.open_log` makes it from a directory."""

    def __init__(
        self,
        files: Files,
        path: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        clock: Clock,
        flush_mode: FlushMode,
        parts: LogParts,
        *,
        before_truncation: BeforeTruncation | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self._files = files
        self.path = path
        self.topic_partition = topic_partition
        self.config = config
        self._clock = clock
        self._flush_mode = flush_mode
        self._segments = parts.segments
        self.producer_state = parts.producer_state
        self.leader_epochs = parts.leader_epochs
        self.cut_bytes = parts.cut_bytes
        self._flushed = parts.flushed
        self._log_start_offset = parts.log_start_offset
        self._end = self._end_of_active_segment()
        self._recovery_point = self._end.offset
        self._durable = 0
        self.keeper = keeper
        """Who makes appends safe; None if that is done by syncing this log."""
        self.is_copy = keeper is not None and keeper.has_originals
        """Whether its files are one, of what the keeper has."""
        self._before_truncation = before_truncation
        self._deleted: list[tuple[int, str]] = []
        self._lock = threading.RLock()
        self._removal = threading.RLock()
        self._failure: StorageFailed | None = None
        self._closed = False

    @property
    def segments(self) -> Sequence[Segment]:
        """From the oldest to the active one."""
        return tuple(self._segments)

    @property
    def active_segment(self) -> Segment:
        return self._segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._end.offset

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is on the disk, in the segments."""
        return self._recovery_point

    @property
    def high_watermark(self) -> int:
        if self._flush_mode is not FlushMode.ALWAYS:
            return self._end.offset
        return self._durable if self.is_copy else max(self._recovery_point, self._durable)

    def note_durable(self, offset: int) -> None:
        """The keeper has made safe what lies below this offset."""
        self._durable = offset

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction began whose end readers do not see yet."""
        unstable = self.producer_state.first_unstable_offset(self.high_watermark)
        return None if unstable is None else max(unstable, self._log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        high_watermark, unstable = self.high_watermark, self.first_unstable_offset
        return high_watermark if unstable is None else min(unstable, high_watermark)

    @property
    def failure(self) -> StorageFailed | None:
        """Why this log takes no more writes."""
        return self._failure

    @property
    def is_closed(self) -> bool:
        return self._closed

    # Appending

    def append(
        self, records: bytes, *, leader_epoch: int = 0, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendInfo:
        """Give batches their offsets and write them. They are durable only after a flush."""
        self._check_usable()
        now_ms = self._clock.now_ms()
        stamps_time = self.config.message_timestamp_type == LOG_APPEND_TIME
        headers = validate(records, self.config, origin, now_ms)
        batches = place(headers, records, self._end.offset, leader_epoch, now_ms if stamps_time else None)
        effect = self.producer_state.prepare(batches, origin)
        if (known := effect.duplicate) is not None:
            time = known.timestamp if stamps_time else NO_TIMESTAMP
            return AppendInfo(known.first_offset, known.last_offset, time, self._log_start_offset, 0, is_duplicate=True)
        data = b"".join(batch.data for batch in batches)
        notes = [
            BatchNote(header.size, header.last_offset, header.next_offset, header.max_timestamp)
            for header, _ in batches
        ]
        self._write(data, notes, leader_epoch, now_ms)
        if self.keeper is not None:
            self.keeper.put(self, data)
        self._note_producers(effect)
        first_offset, time = batches[0].header.base_offset, now_ms if stamps_time else NO_TIMESTAMP
        return AppendInfo(first_offset, notes[-1].last_offset, time, self._log_start_offset, len(data))

    def append_finished(self, batch: FinishedBatch, *, leader_epoch: int) -> int:
        """Write a batch that was made here: only its size is looked at. Returns the offset that it begins at."""
        self._check_usable()
        if self.config.message_timestamp_type == LOG_APPEND_TIME:
            origin = AppendOrigin.COORDINATOR
            return self.append(bytes(batch.data), leader_epoch=leader_epoch, origin=origin).first_offset
        validate_size(len(batch.data), self.config)
        first = self._end.offset
        stamp(batch.data, base_offset=first, partition_leader_epoch=leader_epoch)
        data = bytes(batch.data)
        next_offset = first + batch.record_count
        note = BatchNote(len(data), next_offset - 1, next_offset, batch.timestamp)
        self._write(data, (note,), leader_epoch, batch.timestamp)
        if self.keeper is not None:
            self.keeper.put(self, data)
        self.producer_state.end_offset = next_offset
        return first

    def _write(self, data: bytes, batches: Sequence[BatchNote], leader_epoch: int, now_ms: int) -> None:
        """Append to the active segment, or to a new one if that is due."""
        max_timestamp = batches[0].max_timestamp if len(batches) == 1 else max(batch.max_timestamp for batch in batches)
        last_offset = batches[-1].last_offset
        try:
            is_due = needs_new_segment(self._segments[-1], self.config, len(data), max_timestamp, last_offset, now_ms)
        except OSError as error:  # the first time that a log is written to, the age of its last segment is read
            raise StorageFailed(f"{self.path}: {error}") from error
        if is_due:
            self.roll()
        if leader_epoch > self.leader_epochs.latest:
            self._begin_epoch(leader_epoch)
        segment = self._segments[-1]
        try:
            segment.append(data, batches, self.config.index_interval_bytes)
        except OSError as error:
            self._cut_back(segment, error)
        self._end = LogEnd(batches[-1].next_offset, segment.base_offset, segment.size)

    def _begin_epoch(self, leader_epoch: int) -> None:
        with self._growth():
            self.leader_epochs.assign(leader_epoch, self._end.offset)
            try:
                self.leader_epochs.save()
            except OSError:
                self.leader_epochs.truncate_from_end(self._end.offset)  # the next append tries it again
                raise

    def lead(self, epoch: int) -> None:
        """What is appended from now on is of this epoch."""
        if epoch > self.leader_epochs.latest:
            self._begin_epoch(epoch)

    def restore(self, records: bytes) -> None:
        """Write batches from the journal that are not there, as they were; `CorruptLog` if others are missing."""
        for header in read_headers(records):
            if header.base_offset < self._end.offset:
                continue
            if header.base_offset > self._end.offset:
                raise CorruptLog(
                    f"the log ends at offset {self._end.offset}, the journal goes on at {header.base_offset}",
                    path=self.path,
                )
            data = records[header.position : header.end]
            placed = PlacedBatch(replace(header, position=0), data)
            effect = self.producer_state.prepare([placed], AppendOrigin.REPLICATION)
            note = BatchNote(header.size, header.last_offset, header.next_offset, header.max_timestamp)
            self._write(data, (note,), header.partition_leader_epoch, self._clock.now_ms())
            self._note_producers(effect)

    def _note_producers(self, effect: ProducerAppend) -> None:
        for aborted in self.producer_state.commit(effect, self._end.offset, self.high_watermark):
            self.active_segment.txn_index.append(aborted)

    def _cut_back(self, segment: Segment, error: OSError) -> NoReturn:
        """What a failed write has left is taken away, so that what follows finds a whole log."""
        with self._storage():
            segment.file.truncate(segment.size)
        failure = StorageFailed(f"{segment.path}: {error}")
        if error.errno not in DISK_FULL:
            self._failure = failure
        raise failure from error

    def roll(self) -> Segment:
        """Seal the active segment and begin a new one at the log end. An empty one stays."""
        self._check_usable()
        with self._lock:
            if self.active_segment.size:
                with self._storage():
                    self.active_segment.file.sync()
                    self._note_flushed(self._end)
                with self._growth():
                    self.active_segment.write_indexes()
                    self._take_snapshot()
                    file = Segment.make_file(self._files, self.path, self._end.offset)
                with self._storage():
                    now_ms = self._clock.now_ms()
                    self._segments.append(Segment.begin(self._files, self.path, self._end.offset, file, now_ms))
                    self._end = self._end_of_active_segment()
                    self._note_flushed(self._end)
            return self.active_segment

    def flush(self) -> int:
        """Sync what was appended before the call. Returns the offset up to which everything is on the disk.

        A log that was closed meanwhile has nothing to sync.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            end = self._end
            if end.offset > self._recovery_point and not self._closed:
                with self._storage():
                    self.active_segment.file.sync()
                    self._note_flushed(end)
            return self._recovery_point

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, min_one: bool = True, up_to: ReadUpTo = ReadUpTo.HIGH_WATERMARK
    ) -> Fetched:
        """Whole batches of one segment from the one that holds `offset` on, at most `max_bytes` of them.

        With `min_one` the first batch is given whatever its size. Readers up to the last stable offset also get the
        aborted transactions among what they read.
        """
        high_watermark, last_stable_offset = self.high_watermark, self.last_stable_offset
        limits = {
            ReadUpTo.LOG_END: self._end.offset,
            ReadUpTo.HIGH_WATERMARK: high_watermark,
            ReadUpTo.LAST_STABLE_OFFSET: last_stable_offset,
        }
        if not self._log_start_offset <= offset <= self._end.offset:
            raise OffsetOutOfRange(
                f"{self.topic_partition}: offset {offset}, the log holds {self._log_start_offset} "
                f"up to {self._end.offset}"
            )
        aborted: list[AbortedTransaction] = []
        with storage_errors(self.path):
            records, next_offset = self._read_records(offset, max_bytes, min_one, limits[up_to])
            if up_to is ReadUpTo.LAST_STABLE_OFFSET and records:
                aborted = self.aborted_transactions(offset, next_offset)
        return Fetched(records, next_offset, self._log_start_offset, high_watermark, last_stable_offset, tuple(aborted))

    def _read_records(self, offset: int, max_bytes: int, min_one: bool, limit: int) -> tuple[bytes, int]:
        if offset < limit:
            for segment in self._segments_from(offset):
                if found := segment.read(offset, max_bytes, min_one=min_one, up_to=limit):
                    return found
            return b"", limit  # the cleaner has left nothing between here and there
        return b"", offset

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that have something between the offsets `start` and `end`."""
        found = []
        for segment in self._segments_from(start):
            more, complete = segment.txn_index.collect(start, end)
            found += more
            if complete:
                break
        return found

    def offset_for_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """The first record that is as young as `timestamp`."""
        with storage_errors(self.path):
            for segment in self._segments:
                if segment.max_timestamp >= timestamp and (
                    found := segment.find_timestamp(timestamp, self._log_start_offset)
                ):
                    epoch = self.leader_epochs.epoch_of(found.offset)
                    return OffsetAndTimestamp(found.offset, found.timestamp, epoch)
        return None

    def _segments_from(self, offset: int) -> list[Segment]:
        """The segment in whose range `offset` lies, and those behind it."""
        behind = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset)
        return self._segments[max(behind - 1, 0) :]

    # Taking away

    def truncate_to(self, offset: int) -> None:
        """Take away the batch that holds `offset` and all behind it, durably."""
        self._check_usable()
        if offset >= self._end.offset:
            return
        if offset < self._log_start_offset:
            raise OffsetOutOfRange(f"{self.topic_partition}: no truncation to {offset}, below the log start")
        with self._removal, self._lock, self._storage():
            keep = max(1, sum(segment.base_offset < offset for segment in self._segments))
            durable = self._segments[keep - 1].base_offset
            if self._before_truncation is not None:
                self._before_truncation(durable)
            self._flushed.lower(LogEnd(durable, durable, 0))
            self._recovery_point = min(durable, self._recovery_point)
            self._durable = min(offset, self._durable)
            delete_snapshots(self._files, self.path, behind=offset)
            self.leader_epochs.truncate_from_end(offset)
            self.leader_epochs.save()
            while len(self._segments) > keep:
                self._retire(self._segments.pop())
            self.active_segment.truncate_to(offset, self.config.index_interval_bytes)
            self._end = self._end_of_active_segment()
            self.active_segment.file.sync()
            self._note_flushed(self._end)
            now_ms = self._clock.now_ms()
            first = self._segments[0].base_offset
            load_snapshot(self._files, self.path, self.producer_state, self._end.offset, first, now_ms)
            replay_segments(self.producer_state, self._segments)
        if self.keeper is not None:
            self.keeper.forget([self.topic_partition])

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to `offset`; whole segments below it go with the next tick. Returns the log start."""
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(f"{self.topic_partition}: offset {offset}, readers see {self.high_watermark}")
        self._check_usable()
        with self._storage():
            self._move_log_start(offset)
        return self._log_start_offset

    def delete_old_segments(self, most: int | None = None) -> int:
        """Take out of use what retention does not keep, `most` at a time. Returns the number of segments."""
        self._check_usable()
        with storage_errors(self.path):  # ages are read
            count = count_deletable(
                self._segments,
                self.config,
                self._clock.now_ms(),
                log_start_offset=self._log_start_offset,
                high_watermark=self.high_watermark,
            )
        if not count:
            return 0
        if most is not None:
            count = min(count, most)
        with self._removal, self._lock, self._storage():
            if count == len(self._segments):
                self.roll()
            for _ in range(count):
                self._retire(self._segments.pop(0))
            first = self._segments[0].base_offset
            self._move_log_start(first)
            delete_snapshots(self._files, self.path, before=first)
        return count

    def replace_segments(self, cleaned_path: str, old_segments: Sequence[Segment]) -> Segment | None:
        """Put a cleaned segment in the place of old ones that follow on each other; see `swap.py`.

        `cleaned_path` is `<base offset of the first of them>.log.cleaned`, synced and closed by the cleaner. Several
        cleaned segments are put in place from the lowest on. None if nothing was left.
        """
        return self.replace(self.swap_in(cleaned_path, old_segments))

    def swap_in(self, cleaned_path: str, old_segments: Sequence[Segment], pause: Pause | None = None) -> Replacement:
        """What `replace_segments` does on the disk, in any thread. The owner then has to `replace` them in memory.

        After `LogClosed` nothing has happened; after any other failure the cleaned file must stay where it is.
        """
        self._check_usable()
        base, *merged = [segment.base_offset for segment in old_segments]
        place = self._segments.index(old_segments[0])
        if (
            self._segments[place : place + len(old_segments)] != list(old_segments)
            or self.active_segment in old_segments
        ):
            raise ValueError("only segments that follow on each other, before the active one, can be replaced")
        end_offset = self._segments[place + len(old_segments)].base_offset
        txn_index = remaining_aborted(self._files, cleaned_path, old_segments, pause)
        with self._removal:
            self._check_usable()  # it may have been closed while we looked
            with self._storage():
                begin_swap(self._files, self.path, base, merged, txn_index)
                retired = finish_swaps(self._files, self.path, pause)
                if not self._files.exists(old_segments[0].path):
                    return Replacement(old_segments, end_offset, None, retired)
                new = Segment.open(self._files, self.path, base, self._clock.now_ms())
                new.txn_index = txn_index
                new.rebuild_indexes(self.config.index_interval_bytes, pause=pause)
                new.write_indexes()
                return Replacement(old_segments, end_offset, new, retired)

    def replace(self, replacement: Replacement) -> Segment | None:
        """What was swapped in is read from now on. A log that was closed meanwhile has nothing to read any more."""
        new = replacement.new
        with self._removal, self._lock:
            if self._closed:
                if new is not None:
                    new.close()
                return None
            place = self._segments.index(replacement.old[0])
            self._segments[place : place + len(replacement.old)] = [] if new is None else [new]
            for segment in replacement.old:
                segment.close()
            self._remove_later(replacement.retired)
        return new

    def keep_replaced(self, replacement: Replacement) -> None:
        """Let the keeper know what was cleaned, in any thread."""
        if self.keeper is not None:
            self.keeper.replace(self, replacement.old[0].base_offset, replacement.end_offset, replacement.new)

    def tick(self) -> None:
        """What is due by now: retention, forgetting silent producers, removing files that are out of use."""
        self._check_usable()
        self.delete_old_segments()
        self.remove_expired_producers()
        self.remove_files(self.take_due_files())

    def remove_expired_producers(self) -> int:
        """Forget producers that have been silent for too long."""
        return self.producer_state.remove_expired(self._clock.now_ms())

    def take_due_files(self) -> list[str]:
        """The files that are out of use for long enough; whoever takes them removes them."""
        now_ms = self._clock.now_ms()
        due = [path for due_ms, path in self._deleted if due_ms <= now_ms]
        if due:
            self._deleted = [(due_ms, path) for due_ms, path in self._deleted if due_ms > now_ms]
        return due

    def remove_files(self, paths: Sequence[str]) -> None:
        """Remove files that are out of use, in any thread."""
        with self._removal:
            if paths and not self._closed:
                with self._storage():
                    for path in paths:
                        if self._files.exists(path):
                            self._files.unlink(path)

    def delete_old_snapshots(self, recovery_point: int) -> None:
        """Remove the snapshots that no recovery from `recovery_point` on would need, in any thread."""
        base = max((s.base_offset for s in self.segments if s.base_offset <= recovery_point), default=0)
        with self._removal:
            if not self._closed:
                with self._storage():
                    delete_snapshots(self._files, self.path, before=base)

    def close(self) -> None:
        """Bring everything to the disk and let go of the files. A failed log is only let go of."""
        with self._removal, self._lock:
            try:
                if self._failure is None and not self._closed:
                    with self._storage():
                        self.active_segment.seal()
                        self._note_flushed(self._end)
                        self._take_snapshot()
                        self.leader_epochs.save()
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Let go of the files as they are."""
        with self._removal, self._lock:
            if self._closed:
                return
            for segment in self._segments:
                segment.close()
            self._flushed.close()
            self._closed = True

    # Housekeeping

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise LogClosed(f"{self.path} is closed")

    @contextmanager
    def _storage(self) -> Iterator[None]:
        """A disk that fails within this block leaves the log unusable."""
        try:
            with storage_errors(self.path):
                yield
        except StorageFailed as failure:
            self._failure = failure
            raise

    @contextmanager
    def _growth(self) -> Iterator[None]:
        """The same, but for a disk that is full: files that stand beside the batches can be written again from the
        start when there is room."""
        try:
            with storage_errors(self.path):
                yield
        except StorageFailed as failure:
            if not is_disk_full(failure):
                self._failure = failure
            raise

    def _end_of_active_segment(self) -> LogEnd:
        segment = self.active_segment
        return LogEnd(segment.next_offset, segment.base_offset, segment.size)

    def _note_flushed(self, end: LogEnd) -> None:
        self._recovery_point = end.offset
        self._flushed.note(end)

    def _take_snapshot(self) -> None:
        write_snapshot(self._files, self.path, self._end.offset, self.producer_state.entries.values())

    def _move_log_start(self, offset: int) -> None:
        self._log_start_offset = max(offset, self._log_start_offset)
        self.leader_epochs.truncate_from_start(self._log_start_offset)
        self.leader_epochs.save()

    def _retire(self, segment: Segment) -> None:
        segment.close()
        self._remove_later(retire(self._files, self.path, segment.base_offset))

    def _remove_later(self, paths: Sequence[str]) -> None:
        due_ms = self._clock.now_ms() + self.config.file_delete_delay_ms
        self._deleted += [(due_ms, path) for path in paths]
