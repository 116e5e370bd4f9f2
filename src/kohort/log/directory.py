"""A data directory: the partitions in it, one process that owns it, and how that process left it last time.

`.kafka_cleanshutdown` says that everything was synced before the end. It is removed, durably, before anything is
opened, and written when everything else is done, so that no crash in between can make a torn log look clean. A
partition that cannot be opened is set aside with its reason while the others work; as long as there is one, no
shutdown is clean, for its files must be looked at again.

The checkpoint files tell the next start, for each partition, how much was on the disk and where the log begins.

One thread owns the directory. What takes long (making partitions, writing checkpoints, removing files) comes in two
parts, of which the one that goes to the disk may be done in another thread.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID, uuid4

from kohort.clock import Clock
from kohort.config import FlushMode, LogConfig
from kohort.errors import CorruptLog, KohortError, StorageFailed
from kohort.log import journal, meta_properties
from kohort.log.checkpoints import HIGH_WATERMARK, LOG_START_OFFSET, RECOVERY_POINT, read_offsets, write_offsets
from kohort.log.failures import storage_errors
from kohort.log.files import DiskSpace, Files, join, parent_of, write_whole
from kohort.log.journal import Journal
from kohort.log.keeper import Keeper
from kohort.log.names import (
    TopicPartition,
    deleted_directory,
    is_deleted_directory,
    is_topic_name,
    parse_partition_directory,
)
from kohort.log.partition import Log
from kohort.log.recovery import open_log

LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_logger = logging.getLogger(__name__)


class LogDirectory:
    """An open data directory. `StorageFailed` if another process or another broker has it."""

    def __init__(
        self,
        files: Files,
        path: str,
        clock: Clock,
        config_of: Callable[[str], LogConfig],
        *,
        broker_id: int = 0,
        flush_mode: FlushMode = FlushMode.ALWAYS,
        journaled: Collection[str] = (),
        journal_bytes: int | None = None,
        keeper: Keeper | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self._files = files
        self.path = path
        self._clock = clock
        self._config_of = config_of
        self._flush_mode = flush_mode
        self._journaled = journaled if flush_mode is FlushMode.ALWAYS and keeper is None else ()
        self._keeper = keeper
        self._new_uuid = new_uuid
        self._logs: dict[TopicPartition, Log] = {}
        self._logs_view = MappingProxyType(self._logs)
        self._failed: dict[TopicPartition, KohortError] = {}
        self._deleted: list[tuple[int, str]] = []
        self._checkpoint_number = 0
        self._checkpoint_lock = threading.Lock()
        with storage_errors(path), contextlib.ExitStack() as on_failure:
            files.make_dir(path)
            self._lock = files.lock(join(path, LOCK))
            on_failure.callback(self._lock.close)
            meta = join(path, meta_properties.NAME)
            if files.exists(meta):
                meta_properties.check(files, meta, broker_id)
            else:
                files.sync_dir(parent_of(path))
            self.was_clean = self._take_clean_shutdown_marker()
            meta_properties.claim(files, meta, broker_id, clock.now_ms())
            self._recovery_points = self._read_checkpoint(RECOVERY_POINT)
            self._log_starts = self._read_checkpoint(LOG_START_OFFSET)
            self.journal = Journal(files, path, full_bytes=journal_bytes or journal.FULL_BYTES)
            on_failure.callback(self._abandon_all)
            self._open_all()
            self._recover_from_journal()
            self.checkpoint()
            on_failure.pop_all()

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return self._logs_view

    @property
    def failed(self) -> Mapping[TopicPartition, KohortError]:
        """The partitions that could not be opened, and why."""
        return MappingProxyType(self._failed)

    @property
    def keeper(self) -> Keeper:
        """Who makes appends safe, of all logs or of those that are journaled."""
        return self.journal if self._keeper is None else self._keeper

    def space(self) -> DiskSpace | None:
        """How large the disk is that it is on; None if it is on none."""
        with storage_errors(self.path):
            return self._files.space(self.path)

    def create_log(self, topic_partition: TopicPartition) -> Log:
        """A new, empty partition, of which the disk knows."""
        log = self.make_log(topic_partition, self._config_of(topic_partition.topic))
        self.add_logs([log])
        return log

    def make_log(self, topic_partition: TopicPartition, config: LogConfig) -> Log:
        """The same in any thread: the disk knows of it, and this directory when its owner adds it."""
        if not is_topic_name(topic_partition.topic) or topic_partition.partition < 0:
            raise ValueError(f"{topic_partition} cannot be the name of a partition")
        if topic_partition in self._failed:
            raise self._failed[topic_partition]
        if topic_partition in self._logs:
            raise ValueError(f"{topic_partition} is there already")
        with storage_errors(self.path):
            self._files.make_dir(join(self.path, str(topic_partition)))
            self._files.sync_dir(self.path)
        return self._open(topic_partition, config, clean=True)

    def add_logs(self, logs: Iterable[Log]) -> None:
        """Partitions that were made are used from now on."""
        for log in logs:
            self._logs[log.topic_partition] = log

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Take a partition out of use, durably; its files are removed later, or at the next start."""
        self.delete_logs([topic_partition])

    def delete_logs(self, topic_partitions: Sequence[TopicPartition]) -> None:
        """The same for many: the disk is asked once for all of them. A crash may leave any of them in use."""
        for topic_partition in topic_partitions:
            if log := self._logs.pop(topic_partition, None):
                log.abandon()
            elif self._failed.pop(topic_partition, None) is None:
                raise KeyError(topic_partition)
            doomed = join(self.path, deleted_directory(topic_partition, self._new_uuid().hex))
            with storage_errors(self.path):
                self._files.rename(join(self.path, str(topic_partition)), doomed)
            self._recovery_points.pop(topic_partition, None)
            self._log_starts.pop(topic_partition, None)
            delay_ms = self._config_of(topic_partition.topic).file_delete_delay_ms
            self._deleted.append((self._clock.now_ms() + delay_ms, doomed))
        with storage_errors(self.path):
            self._files.sync_dir(self.path)
        self.journal.forget([where for where in topic_partitions if where.topic in self._journaled])
        self.checkpointing(removes_snapshots=False)()

    def set_aside(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """What is there of partitions that are no logs: they were not made, or not deleted, to the end."""
        with storage_errors(self.path):
            for topic_partition in topic_partitions:
                path = join(self.path, str(topic_partition))
                if self._files.exists(path):
                    self._files.rename(path, join(self.path, deleted_directory(topic_partition, self._new_uuid().hex)))
                    self._files.sync_dir(self.path)

    def checkpoint(self) -> None:
        """Write down where the next start may begin. What is known of partitions that failed is kept."""
        self.checkpointing()()

    def checkpointing(self, *, removes_snapshots: bool = True) -> Callable[[], None]:
        """What is to be written down, looked at now; what is returned does it, in any thread, and removes what no
        start will need any more.

        If meanwhile more is known, nothing is written: a partition that was made anew must not be told of as the old.
        """
        for topic_partition, log in self._logs.items():
            self._recovery_points[topic_partition] = log.recovery_point
            if log.log_start_offset > log.segments[0].base_offset:
                self._log_starts[topic_partition] = log.log_start_offset
            else:
                self._log_starts.pop(topic_partition, None)
        recovery_points, log_starts = dict(self._recovery_points), dict(self._log_starts)
        logs = dict(self._logs)
        high_watermarks = {where: log.high_watermark for where, log in logs.items()}
        number = self._next_checkpoint()

        def write() -> None:
            with self._checkpoint_lock:
                if number != self._checkpoint_number:
                    return
                self._write_checkpoint(RECOVERY_POINT, recovery_points)
                self._write_checkpoint(LOG_START_OFFSET, log_starts)
                self._write_checkpoint(HIGH_WATERMARK, high_watermarks)
            for topic_partition, log in logs.items() if removes_snapshots else ():
                log.delete_old_snapshots(recovery_points[topic_partition])

        return write

    def _next_checkpoint(self) -> int:
        self._checkpoint_number += 1
        return self._checkpoint_number

    def tick(self) -> None:
        """What is due by now, in every partition and in the directory itself."""
        for log in self._logs.values():
            log.tick()
        self.remove_directories(self.take_due_directories())

    def take_due_directories(self) -> list[str]:
        """The deleted partitions that are out of use for long enough; whoever takes them removes them."""
        now_ms = self._clock.now_ms()
        due = [path for due_ms, path in self._deleted if due_ms <= now_ms]
        self._deleted = [(due_ms, path) for due_ms, path in self._deleted if due_ms > now_ms]
        return due

    def remove_directories(self, paths: Iterable[str]) -> None:
        """Remove deleted partitions with all that is in them, in any thread."""
        for path in paths:
            self._remove(path)

    def close(self) -> None:
        """Shut down cleanly: sync and close every log, write the checkpoints, then say so; then let go of the lock."""
        with contextlib.closing(self._lock):
            clean = not self._failed
            for topic_partition, log in self._logs.items():
                clean = clean and log.failure is None
                try:
                    log.close()
                except StorageFailed as failure:
                    _logger.error("%s did not close cleanly: %s", topic_partition, failure)
                    clean = False
            self.journal.abandon()
            self.checkpoint()
            if clean:
                self.journal.remove_all()
                with storage_errors(self.path):
                    write_whole(self._files, join(self.path, CLEAN_SHUTDOWN), b"")

    def _take_clean_shutdown_marker(self) -> bool:
        marker = join(self.path, CLEAN_SHUTDOWN)
        if not self._files.exists(marker):
            return False
        self._files.unlink(marker)
        self._files.sync_dir(self.path)
        return True

    def _open_all(self) -> None:
        for name in self._files.list_dir(self.path):
            if is_deleted_directory(name):
                self._remove(join(self.path, name))
            elif topic_partition := parse_partition_directory(name):
                try:
                    config = self._config_of(topic_partition.topic)
                    self._logs[topic_partition] = self._open(topic_partition, config, clean=self.was_clean)
                except (CorruptLog, StorageFailed) as failure:
                    _logger.error("%s is not available: %s", topic_partition, failure)
                    self._failed[topic_partition] = failure
        known = self._logs.keys() | self._failed.keys()
        for offsets in (self._recovery_points, self._log_starts):
            for topic_partition in offsets.keys() - known:
                del offsets[topic_partition]

    def _recover_from_journal(self) -> None:
        for topic_partition, failure in self.journal.recover(self._logs, self._failed).items():
            _logger.error("%s is not available: %s", topic_partition, failure)
            self._logs.pop(topic_partition).abandon()
            self._failed[topic_partition] = failure

    def _abandon_all(self) -> None:
        self.journal.abandon()
        for log in self._logs.values():
            log.abandon()

    def _open(self, topic_partition: TopicPartition, config: LogConfig, *, clean: bool) -> Log:
        path = join(self.path, str(topic_partition))
        with storage_errors(path):
            return open_log(
                self._files,
                path,
                config,
                self._clock,
                clean=clean,
                recovery_point=self._recovery_points.get(topic_partition, 0),
                log_start_offset=self._log_starts.get(topic_partition, 0),
                flush_mode=self._flush_mode,
                before_truncation=lambda offset: self._lower_recovery_point(topic_partition, offset),
                keeper=self.journal if topic_partition.topic in self._journaled else self._keeper,
            )

    def _lower_recovery_point(self, topic_partition: TopicPartition, offset: int) -> None:
        if self._recovery_points.get(topic_partition, 0) > offset:
            self._recovery_points[topic_partition] = offset
            self._next_checkpoint()
            with self._checkpoint_lock:
                self._write_checkpoint(RECOVERY_POINT, self._recovery_points)

    def _remove(self, directory: str) -> None:
        with storage_errors(directory):
            for name in self._files.list_dir(directory):
                self._files.unlink(join(directory, name))
            self._files.remove_dir(directory)
            self._files.sync_dir(self.path)

    def _write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        with storage_errors(self.path):
            write_offsets(self._files, join(self.path, name), offsets)

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """What a checkpoint says. A bad one says nothing: then more is scanned than needed, but nothing is lost."""
        try:
            return read_offsets(self._files, join(self.path, name))
        except CorruptLog as damage:
            _logger.warning("passing over a bad checkpoint: %s", damage)
            return {}
