"""One sync for many logs.

Fifty logs that are each appended to a little would need fifty syncs at a time. So what is appended to such logs is
written to a journal as well, one after the other as it comes, and is safe as soon as the journal is synced. When a
journal is full a new one begins; the logs that the old one speaks of are synced then, and its file is kept as a spare,
for the disk syncs what overwrites something in half the time. After a crash each log gets back from the journals what
its end has lost.

A journal is a run of rounds, each written at once and synced before the next one, in room that was made beforehand:

    8 bytes "KHRTJRNL" · u32 CRC-32C of all after it · u32 length of the entries · u64 its own place in the file ·
    u64 number of the journal
    entries: u16 length of the topic's name, name · i32 partition · u32 length of the batches, batches

Nobody was told of a round that is not whole: it is the end of its journal. But if another one of this journal stands
behind it, then what was safe is damaged, and nothing is opened. An entry without batches says that its log was deleted:
what was said of it before is void.
"""

import logging
import re
import struct
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from crc32c import crc32c

from kohort.errors import CorruptLog, KohortError, StorageFailed
from kohort.log.failures import storage_errors
from kohort.log.files import DISK_FULL, File, Files, join, write_whole
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.log.partition import Log
    from kohort.log.segment import Segment

FULL_BYTES = 8 * 1024 * 1024
_MOST_FULL_BYTES = 64 * 1024 * 1024
"""Each journal has twice the room of the one before, up to this: a broker that fills them needs fewer changes."""

_logger = logging.getLogger(__name__)

_MAGIC = b"KHRTJRNL"
_CHECKED = struct.Struct(">IQQ")
_HEAD_SIZE = len(_MAGIC) + 4 + _CHECKED.size
_PARTITION = struct.Struct(">iI")
_CARRIED = 0
"""The number of the journal that is made of others."""
_NAME = re.compile(r"journal-(\d{20})")
_SPARE = "journal-spare"


class JournalEntry(NamedTuple):
    """What was appended to a log; nothing, if it was deleted."""

    topic_partition: TopicPartition
    batches: bytes


class Journal:
    """The journals of one data directory. The directory's owner puts, one other thread at a time syncs."""

    def __init__(self, files: Files, directory: str, *, full_bytes: int = FULL_BYTES) -> None:
        self._files = files
        self._directory = directory
        self._room = full_bytes
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._ends: dict[Log, int] = {}
        """Where the logs of the waiting entries end with these."""
        self._put = 0
        self._synced = 0
        self._file: File | None = None
        self._size = 0
        self._number = max((number for number, _ in self._found()), default=0)
        self._logs: dict[Log, None] = {}
        """Those that the present file speaks of."""
        self._full: list[tuple[File, dict[Log, None]]] = []
        self._syncing = threading.Lock()
        self._carried: dict[TopicPartition, list[bytes]] = {}
        """What was said of logs that could not be opened."""

    @property
    def has_originals(self) -> bool:
        return False

    # What the owner of the directory calls

    def put(self, log: "Log", batches: bytes) -> None:
        """Something was appended to a log."""
        head = _entry_head(log.topic_partition, len(batches))
        with self._lock:
            self._waiting += (head, batches)
            self._ends[log] = log.log_end_offset
            self._put += 1

    def forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Logs were deleted or cut, durably. From now on nothing that was said of them counts."""
        with self._lock:
            for topic_partition in topic_partitions:
                self._waiting.append(_encode(topic_partition, b""))
                self._put += 1
        self.flush()
        known = self._carried.keys() & set(topic_partitions)
        for topic_partition in known:
            del self._carried[topic_partition]
        if known:
            self._write_carried()

    def replace(self, log: "Log", begin: int, end: int, segment: "Segment | None") -> None:
        """What is cleaned was synced long before."""

    @property
    def end(self) -> int:
        """How much was put: whoever has put something is safe when `flush` has come so far."""
        return self._put

    @property
    def path(self) -> str:
        return self._directory

    # What the flusher calls

    @property
    def recovery_point(self) -> int:
        """How much of what was put is safe."""
        return self._synced

    def flush(self) -> int:
        """Write and sync what was put before the call, and tell the logs how far they are safe."""
        with self._syncing:
            with self._lock:
                entries, self._waiting = self._waiting, []
                ends, self._ends = self._ends, {}
                put = self._put
            if entries:
                self._write(b"".join(entries), ends)
                self._logs |= dict.fromkeys(ends)
                for log, end in ends.items():
                    log.note_durable(end)
                if self._size >= self._room:
                    self._begin_anew()
            self._synced = put
            return put

    def _write(self, entries: bytes, logs: "Iterable[Log]") -> None:
        """If the disk is full, the logs themselves are synced instead: what was appended has its place in them."""
        with storage_errors(self._directory):
            try:
                self._write_round(entries)
            except OSError as error:
                if error.errno not in DISK_FULL:
                    raise
                _logger.warning("%s: %s; the logs are synced one by one", self._directory, error)
                if self._file is not None:
                    self._file.truncate(self._size)
                    self._file.sync()
                for log in logs:
                    log.flush()

    def _write_round(self, entries: bytes) -> None:
        if self._file is None:
            self._file, self._size = self._open_new(self._path_of(self._number + 1)), 0
            self._number += 1
        data = _round(entries, self._size, self._number)
        self._file.write_at(self._size, data)
        self._file.sync()
        self._size += len(data)

    def _open_new(self, path: str) -> File:
        spare = join(self._directory, _SPARE)
        if self._files.exists(spare):
            self._files.rename(spare, path)
        file = self._files.open(path, create=True)
        try:
            file.reserve(self._room)
            self._files.sync_dir(self._directory)
        except OSError:
            file.close()
            self._files.unlink(path)  # also to give back the room that a spare has taken
            raise
        return file

    def _path_of(self, number: int) -> str:
        return join(self._directory, f"journal-{number:020}")

    def _begin_anew(self) -> None:
        if self._file is not None:
            self._full.append((self._file, self._logs))
            self._file, self._logs = None, {}
            self._room = min(2 * self._room, max(self._room, _MOST_FULL_BYTES))

    @property
    def is_to_settle(self) -> bool:
        """Whether there are full journals that keep a place on the disk."""
        return bool(self._full)

    def settle(self) -> None:
        """Sync the logs that full journals speak of, and let go of these. Others may go on meanwhile."""
        while self._full:
            file, logs = self._full[0]
            for log in logs:
                log.flush()
            with storage_errors(self._directory):
                file.close()
                self._files.rename(file.path, join(self._directory, _SPARE))
                self._files.sync_dir(self._directory)
            del self._full[0]

    # Start and end

    def recover(
        self, logs: Mapping[TopicPartition, "Log"], unopened: Collection[TopicPartition]
    ) -> dict[TopicPartition, KohortError]:
        """Give back to each log what it has lost, and tell which of them cannot be used because something is missing.

        What is said of logs that could not be opened is kept for the next start; other logs are not there any more.
        """
        said: dict[TopicPartition, list[bytes]] = {}
        found = self._found()
        for number, path in found:
            with storage_errors(path):
                for topic_partition, batches in self._read(path, number):
                    if batches:
                        said.setdefault(topic_partition, []).append(batches)
                    else:
                        said.pop(topic_partition, None)
        failed: dict[TopicPartition, KohortError] = {}
        for topic_partition, appends in said.items():
            log = logs.get(topic_partition)
            if log is None:
                continue
            try:
                for batches in appends:
                    log.restore(batches)
                log.flush()
            except (CorruptLog, StorageFailed) as failure:
                failed[topic_partition] = failure
        self._carried = {where: appends for where, appends in said.items() if where in failed or where in unopened}
        self._write_carried()
        with storage_errors(self._directory):
            self._remove([path for number, path in found if number != _CARRIED])
            self._remove_spare()
        return failed

    def _write_carried(self) -> None:
        """Of what there was before this start, keep what is said of logs that could not be opened."""
        path = self._path_of(_CARRIED)
        with storage_errors(self._directory):
            if self._carried:
                entries = [_encode(where, batches) for where, appends in self._carried.items() for batches in appends]
                write_whole(self._files, path, _round(b"".join(entries), 0, _CARRIED))
            elif self._files.exists(path):
                self._remove([path])

    def remove_all(self) -> None:
        """Every log that they speak of is synced: they are not needed any more."""
        self.abandon()
        with storage_errors(self._directory):
            self._remove([path for _, path in self._found()])
            self._remove_spare()

    def abandon(self) -> None:
        """Let go of the files as they are."""
        self._begin_anew()
        for file, _ in self._full:
            file.close()
        self._full.clear()

    def _remove_spare(self) -> None:
        """Numbers begin anew with the journals: what stands in a spare could be taken for a round of a later one."""
        spare = join(self._directory, _SPARE)
        if self._files.exists(spare):
            self._remove([spare])

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            self._files.unlink(path)
        if paths:
            self._files.sync_dir(self._directory)

    def _found(self) -> list[tuple[int, str]]:
        names = [match for name in self._files.list_dir(self._directory) if (match := _NAME.fullmatch(name))]
        return sorted((int(match[1]), join(self._directory, match[0])) for match in names)

    def _read(self, path: str, number: int) -> Iterator[JournalEntry]:
        file = self._files.open(path)
        try:
            data = file.read_at(0, file.size())
        finally:
            file.close()
        at = 0
        while at < len(data):
            entries = _round_at(data, at, number)
            if entries is None:
                _check_nothing_follows(data, at, number, path)
                return
            yield from _decode(entries)
            at += _HEAD_SIZE + len(entries)


def _round_at(data: bytes, at: int, number: int) -> bytes | None:
    """The entries of the round that begins there, if there is one of this journal."""
    head = data[at : at + _HEAD_SIZE]
    if len(head) < _HEAD_SIZE or not head.startswith(_MAGIC):
        return None
    size, *names = _CHECKED.unpack_from(head, len(_MAGIC) + 4)
    if names != [at, number]:
        return None
    checked = data[at + len(_MAGIC) + 4 : at + _HEAD_SIZE + size]
    is_whole = len(checked) == _CHECKED.size + size
    if not is_whole or crc32c(checked) != int.from_bytes(head[len(_MAGIC) : len(_MAGIC) + 4], "big"):
        _logger.warning("passing over a round of journal %d that was not synced, at byte %d", number, at)
        return None
    return checked[_CHECKED.size :]


def _round(entries: bytes, place: int, number: int) -> bytes:
    checked = _CHECKED.pack(len(entries), place, number) + entries
    return _MAGIC + crc32c(checked).to_bytes(4, "big") + checked


def _check_nothing_follows(data: bytes, at: int, number: int, path: str) -> None:
    """A round behind a bad one shows that the bad one was synced."""
    behind = data.find(_MAGIC, at + 1)
    while behind >= 0:
        if _round_at(data, behind, number) is not None:
            raise CorruptLog("a damaged round, behind which there are others", path=path, position=at)
        behind = data.find(_MAGIC, behind + 1)


def _encode(topic_partition: TopicPartition, batches: bytes) -> bytes:
    return _entry_head(topic_partition, len(batches)) + batches


def _entry_head(topic_partition: TopicPartition, size: int) -> bytes:
    name = topic_partition.topic.encode("ascii")
    return len(name).to_bytes(2, "big") + name + _PARTITION.pack(topic_partition.partition, size)


def _decode(entries: bytes) -> Iterator[JournalEntry]:
    at = 0
    while at < len(entries):
        name_end = at + 2 + int.from_bytes(entries[at : at + 2], "big")
        partition, size = _PARTITION.unpack_from(entries, name_end)
        begin = name_end + _PARTITION.size
        topic = entries[at + 2 : name_end].decode("ascii")
        yield JournalEntry(TopicPartition(topic, partition), entries[begin : begin + size])
        at = begin + size
