"""Opening a partition's directory, whatever state it was left in.

First an interrupted swap of the cleaner is undone or finished. Then everything is looked at before anything is changed:

- After a clean shutdown the files are trusted; only the end of the last segment is read.
- After a crash the segments from the recovery point on are scanned. The log is the longest run of whole, sound batches
  with rising offsets. A bad tail of the last segment is cut, if it lies behind what is known to have been synced. Any
  other damage is refused: there is no replica that could heal it, so somebody should look at it (`CorruptLog`). A
  segment that has a successor was synced before the successor was made.
- What was not synced for certain is written once more before it is synced. The sync that the crashed process waited for
  may have failed: then the operating system shows bytes that it will never write, and its next sync is no promise.

What is missing of the indexes, the producers and the leader epochs is made again from the batches on the way.
"""

import contextlib
import logging
from dataclasses import dataclass

from kohort.clock import Clock
from kohort.config import FlushMode, LogConfig
from kohort.errors import CorruptLog
from kohort.log.files import Files, join
from kohort.log.flushed_offset import FlushedOffset, LogEnd, read_flushed_offset
from kohort.log.keeper import Keeper
from kohort.log.leader_epochs import LeaderEpochs
from kohort.log.names import (
    DELETED,
    FLUSHED_OFFSET,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    SNAPSHOT,
    offset_file,
    parse_partition_directory,
)
from kohort.log.partition import BeforeTruncation, Log, LogParts
from kohort.log.producer_loading import load_snapshot
from kohort.log.producer_snapshot import delete_snapshots
from kohort.log.producer_state import ProducerState
from kohort.log.segment import Segment
from kohort.log.swap import offset_files, settle_swaps
from kohort.log.txn_index import AbortedTransaction, TransactionIndex
from kohort.records.batch import BatchHeader

_logger = logging.getLogger(__name__)

_REWRITTEN_BYTES = 1 << 20


def open_log(
    files: Files,
    path: str,
    config: LogConfig,
    clock: Clock,
    *,
    clean: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    flush_mode: FlushMode = FlushMode.ALWAYS,
    before_truncation: BeforeTruncation | None = None,
    keeper: Keeper | None = None,
) -> Log:
    """The log in the directory `path`, which exists; a new one becomes an empty log.

    `CorruptLog` if there is damage below what was durable: then nothing has been changed, except that an interrupted
    swap may have been settled.
    """
    topic_partition = parse_partition_directory(path.rpartition("/")[2])
    if topic_partition is None:
        raise ValueError(f"{path} is not the directory of a partition")
    settle_swaps(files, path)
    opening = _Opening(files, path, config, clock, flush_mode, clean=clean, recovery_point=recovery_point)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(opening.close)
        opening.inspect()
        parts = opening.settle(log_start_offset)
        on_failure.pop_all()
    return Log(
        files,
        path,
        topic_partition,
        config,
        clock,
        flush_mode,
        parts,
        before_truncation=before_truncation,
        keeper=keeper,
    )


@dataclass(frozen=True, slots=True)
class _Tail:
    """A bad tail: the bytes of the last segment from `position` on."""

    position: int
    size: int
    reason: str


class _Opening:
    """The work of opening one directory: `inspect` changes nothing on the disk, `settle` does."""

    def __init__(
        self,
        files: Files,
        path: str,
        config: LogConfig,
        clock: Clock,
        flush_mode: FlushMode,
        *,
        clean: bool,
        recovery_point: int,
    ) -> None:
        self._files = files
        self._path = path
        self._config = config
        self._now_ms = clock.now_ms()
        self._flush_mode = flush_mode
        self._clean = clean
        self._recovery_point = recovery_point
        self._flushed = read_flushed_offset(files, join(path, FLUSHED_OFFSET))
        self._durable = max(recovery_point, self._flushed.offset)
        bases = [file.offset for file in offset_files(files, path) if file.kind == LOG and not file.state]
        self._segments = [Segment.open(files, path, base, self._now_ms) for base in bases]
        self._epochs = LeaderEpochs.load(files, join(path, LEADER_EPOCH_CHECKPOINT))
        self._producers = ProducerState(config.producer_id_expiration_ms)
        self._first_rebuilt = 0
        self._tail: _Tail | None = None

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    def inspect(self) -> None:
        """Find out what the log is; damage that may not be cut is raised."""
        if not self._segments:
            if self._durable:
                raise CorruptLog(f"no segments, but up to {self._durable} everything was synced", path=self._path)
            return
        self._first_rebuilt = self._find_first_rebuilt()
        last = self._segments[-1]
        if self._first_rebuilt == len(self._segments):
            last.load_tail()
        self._replay()
        if last.next_offset < self._durable:
            raise self._lost(last, LogEnd(last.next_offset, last.base_offset, last.size))

    def _lost(self, segment: Segment, end: LogEnd) -> CorruptLog:
        """What is said of a log that is sound only up to `end`."""
        reason = self._tail.reason if self._tail else "the log ends"
        position = self._tail.position if self._tail else end.position
        return CorruptLog(
            f"{reason}, at offset {end.offset}, but up to {self._durable} everything was synced",
            path=segment.path,
            position=position,
        )

    def _find_first_rebuilt(self) -> int:
        """The first segment whose batches are to be checked and whose indexes are to be made again."""
        bad = [number for number, segment in enumerate(self._segments) if not _is_indexed(segment)]
        if not self._clean:
            below = [n for n, segment in enumerate(self._segments) if segment.base_offset <= self._recovery_point]
            bad.append(max(below, default=0))
        return min(bad, default=len(self._segments))

    def _replay(self) -> None:
        """Walk over the batches from which something is to be made again: indexes, producers, leader epochs."""
        rebuilt = self._segments[self._first_rebuilt :]
        limit = rebuilt[0].base_offset if rebuilt else self._segments[-1].next_offset
        start = self._segments[0].base_offset
        load_snapshot(self._files, self._path, self._producers, limit, start, self._now_ms)
        for number, (segment, successor) in enumerate(zip(self._segments, [*self._segments[1:], None], strict=True)):
            if number >= self._first_rebuilt:
                self._rebuild(segment, successor)
            elif (successor.base_offset if successor else segment.next_offset) > self._producers.end_offset:
                self._follow(segment)

    def _follow(self, segment: Segment) -> None:
        """Read a segment for the producers' sake alone."""
        for window in segment.scan():
            for header in window.milestones():
                self._replay_batch(segment, header, window.data, window.position + header.position)
            if window.damage is not None:
                raise window.damage

    def _replay_batch(
        self, segment: Segment, header: BatchHeader, data: bytes, position: int
    ) -> list[AbortedTransaction]:
        """Let the producers follow a batch that was read from `data` and stands at `position` of the segment."""
        if header.base_offset < self._producers.end_offset:
            return []
        try:
            return self._producers.replay(header, data)
        except CorruptLog as damage:
            raise CorruptLog(damage.reason, path=segment.path, position=position) from None

    def _rebuild(self, segment: Segment, successor: Segment | None) -> None:
        """Check a segment, and make its indexes again."""
        segment.reset_indexes()
        aborted: list[AbortedTransaction] = []
        durable_end = LogEnd(segment.base_offset, segment.base_offset, 0)
        for window in segment.scan():
            if window.headers:
                segment.index_window(window, self._config.index_interval_bytes)
            for header in window.milestones():
                self._epochs.assign(header.partition_leader_epoch, header.base_offset)
                aborted += self._replay_batch(segment, header, window.data, window.position + header.position)
            if (last := window.last_until(self._flushed.position)) is not None:
                durable_end = LogEnd(last.next_offset, segment.base_offset, window.position + last.end)
            if window.damage is not None:
                self._judge(segment, successor, window.damage)
        if successor is None and segment.base_offset == self._flushed.base_offset and durable_end != self._flushed:
            raise self._lost(segment, durable_end)
        if successor is not None and segment.next_offset > successor.base_offset:
            raise CorruptLog(
                f"offset {segment.next_offset - 1} lies behind the next segment's base offset {successor.base_offset}",
                path=segment.path,
                position=segment.size,
            )
        if successor is None or not _has_txn_index(segment):
            segment.txn_index = TransactionIndex(aborted)

    def _judge(self, segment: Segment, successor: Segment | None, damage: CorruptLog) -> None:
        if successor is not None or self._clean:
            raise damage
        self._tail = _Tail(damage.position, segment.size - damage.position, damage.reason)

    def settle(self, log_start_offset: int) -> LogParts:
        """Bring the directory into order and take it into use."""
        if not self._segments:
            self._segments.append(Segment.create(self._files, self._path, 0, self._now_ms))
        active = self._segments[-1]
        if self._tail is not None:
            _logger.warning(
                "%s: cut off %d bytes from byte %d on, behind offset %d: %s",
                active.path,
                self._tail.size,
                self._tail.position,
                active.next_offset,
                self._tail.reason,
            )
            active.cut(self._tail.position)
        if not self._clean and self._flush_mode is FlushMode.ALWAYS:
            self._write_again(active)
        for segment in self._segments[self._first_rebuilt :]:
            segment.file.sync()
        for segment in self._segments[self._first_rebuilt : -1]:
            segment.write_indexes()
        self._sweep()
        end = active.next_offset
        delete_snapshots(self._files, self._path, behind=end)
        log_start_offset = max(self._segments[0].base_offset, min(log_start_offset, end))
        self._epochs.truncate_from_end(end)
        self._epochs.truncate_from_start(log_start_offset)
        self._epochs.save()
        flushed = FlushedOffset.open(self._files, join(self._path, FLUSHED_OFFSET))
        self._files.sync_dir(self._path)
        flushed.note(LogEnd(end, active.base_offset, active.size))
        return LogParts(
            self._segments,
            self._producers,
            self._epochs,
            flushed,
            log_start_offset,
            self._tail.size if self._tail else 0,
        )

    def _write_again(self, active: Segment) -> None:
        """Put the bytes in their place of which no sync is known that went well."""
        position = self._flushed.position if self._flushed.base_offset == active.base_offset else 0
        while data := active.file.read_at(position, min(_REWRITTEN_BYTES, active.size - position)):
            active.file.write_at(position, data)
            position += len(data)

    def _sweep(self) -> None:
        """Remove what is out of use: deleted files, indexes without a segment, whole files that were half written."""
        bases = {segment.base_offset for segment in self._segments}
        doomed = [
            offset_file(*file)
            for file in offset_files(self._files, self._path)
            if file.state == DELETED or (not file.state and file.kind != SNAPSHOT and file.offset not in bases)
        ]
        doomed += [name for name in self._files.list_dir(self._path) if name.endswith(".tmp")]
        for name in doomed:
            self._files.unlink(join(self._path, name))
        if doomed:
            self._files.sync_dir(self._path)


def _is_indexed(segment: Segment) -> bool:
    try:
        segment.load_txn_index()
    except CorruptLog:
        return False
    return segment.has_indexes()


def _has_txn_index(segment: Segment) -> bool:
    try:
        return segment.load_txn_index()
    except CorruptLog:
        return False
