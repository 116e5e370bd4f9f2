"""A journal keeps what logs have not synced yet. What a power cut does to it is in `test_crash.py`."""

import errno
from uuid import UUID

import pytest

from kohort.clock import VirtualClock
from kohort.config import FlushMode, LogConfig
from kohort.errors import CorruptLog, StorageFailed
from kohort.log.directory import LogDirectory
from kohort.log.flusher import Flusher
from kohort.log.journal import _encode, _round
from kohort.log.names import TopicPartition
from kohort.log.recorded_files import RecordingFiles, Synced
from kohort.log.simulated_files import SimulatedFiles
from tests.log.log_bench import batch

DATA = "/data"
FIRST, SECOND = TopicPartition("offsets", 0), TopicPartition("offsets", 1)
PLAIN = TopicPartition("plain", 0)


class Disk:
    """A data directory whose topic `offsets` has a journal."""

    def __init__(self, image: dict[str, bytes | None] | None = None, journal_bytes: int = 1 << 20) -> None:
        self.disk = SimulatedFiles(image or {DATA: None})
        self.files = RecordingFiles(self.disk)
        self.clock = VirtualClock()
        self.directory = LogDirectory(
            self.files,
            DATA,
            self.clock,
            lambda _: LogConfig(),
            journaled={"offsets"},
            journal_bytes=journal_bytes,
            new_uuid=lambda: UUID(int=len(self.files.operations)),
        )
        self.flusher = Flusher(FlushMode.ALWAYS, self.clock, keeper=self.directory.keeper)

    def create(self, *partitions: TopicPartition) -> "Disk":
        for partition in partitions:
            self.directory.create_log(partition)
        return self

    def append(self, partition: TopicPartition, *keys: str) -> "Disk":
        """Written and safe."""
        for key in keys:
            log = self.directory.logs[partition]
            done = self.flusher.durable(log, log.append(batch(key)).next_offset)
            self.flusher.run_once()
            done.result(0)
        return self

    @property
    def journals(self) -> list[str]:
        return [name for name in self.disk.list_dir(DATA) if name.startswith("journal")]

    def image(self) -> dict[str, bytes | None]:
        return dict(self.disk.image())

    def after_losing(self, *lost: TopicPartition) -> dict[str, bytes | None]:
        """What a power cut leaves if nothing of these logs' segments had reached the disk."""
        image = self.image()
        for partition in lost:
            image[f"{DATA}/{partition}/{0:020}.log"] = b""
        return image


def test_one_sync_serves_many_logs() -> None:
    disk = Disk().create(FIRST, SECOND)
    disk.append(FIRST, "a").append(SECOND, "a")
    before = len(disk.files.operations)
    futures = []
    for partition in (FIRST, SECOND) * 5:
        log = disk.directory.logs[partition]
        futures.append(disk.flusher.durable(log, log.append(batch("b")).next_offset))
    assert disk.flusher.run_once() == 10
    assert all(future.done() for future in futures)
    assert sum(isinstance(operation, Synced) for operation in disk.files.operations[before:]) == 1


def test_readers_see_what_the_journal_has_made_safe_and_no_more() -> None:
    disk = Disk().create(FIRST)
    log = disk.directory.logs[FIRST]
    disk.append(FIRST, "a")
    log.append(batch("b"))
    assert (log.high_watermark, log.log_end_offset, log.recovery_point) == (1, 2, 0)


def test_a_log_gets_back_what_it_has_lost() -> None:
    disk = Disk().create(FIRST, SECOND).append(FIRST, "a", "b").append(SECOND, "c")
    found = Disk(disk.after_losing(FIRST))
    assert found.directory.logs[FIRST].log_end_offset == 2
    assert found.directory.logs[SECOND].log_end_offset == 1
    assert found.journals == []
    kept, lost = (each.directory.logs[FIRST].active_segment.file for each in (disk, found))
    assert lost.read_at(0, 1 << 20) == kept.read_at(0, 1 << 20)


def test_logs_without_a_journal_are_synced_themselves() -> None:
    disk = Disk().create(PLAIN).append(PLAIN, "a")
    assert disk.journals == []
    assert disk.directory.logs[PLAIN].recovery_point == 1


def test_a_full_journal_goes_when_its_logs_are_synced() -> None:
    disk = Disk(journal_bytes=200).create(FIRST, SECOND)
    for number in range(20):
        disk.append((FIRST, SECOND)[number % 2], "a")
        assert len(disk.journals) <= 1
    assert disk.directory.logs[FIRST].recovery_point > 5


def test_the_file_of_a_full_journal_is_used_again_and_its_old_rounds_count_for_nothing() -> None:
    disk = Disk(journal_bytes=1).create(FIRST, SECOND).append(FIRST, "a", "b")
    assert disk.journals == ["journal-spare"]
    log = disk.directory.logs[FIRST]
    waiting = disk.flusher.durable(log, log.append(batch("c")).next_offset)
    disk.directory.journal.flush()
    [name] = disk.journals
    assert name != "journal-spare"
    image = disk.image()
    old_round = _round(_encode(SECOND, batch("a")), disk.directory.journal._size, 1)
    image[f"{DATA}/{name}"] = (image[f"{DATA}/{name}"] or b"") + old_round
    opened = Disk(image).directory.logs
    assert (opened[FIRST].log_end_offset, opened[SECOND].log_end_offset) == (3, 0)
    disk.flusher.run_once()
    waiting.result(0)


def test_a_clean_shutdown_leaves_no_journal() -> None:
    disk = Disk(journal_bytes=300).create(FIRST).append(FIRST, *"abcdef")
    assert disk.journals
    disk.directory.close()
    assert disk.journals == []


def test_a_log_that_was_deleted_does_not_come_back_under_its_name() -> None:
    disk = Disk().create(FIRST).append(FIRST, "a", "b")
    disk.directory.delete_log(FIRST)
    disk.create(FIRST)
    assert Disk(disk.image()).directory.logs[FIRST].log_end_offset == 0
    disk.append(FIRST, "c")
    assert Disk(disk.after_losing(FIRST)).directory.logs[FIRST].log_end_offset == 1


def test_a_log_that_was_cut_does_not_grow_back() -> None:
    disk = Disk().create(FIRST).append(FIRST, "a", "b", "c")
    disk.directory.logs[FIRST].truncate_to(1)
    assert Disk(disk.image()).directory.logs[FIRST].log_end_offset == 1


def test_damage_before_the_end_of_a_journal_is_refused() -> None:
    disk = Disk().create(FIRST).append(FIRST, "a", "b", "c")
    image = disk.image()
    [name] = disk.journals
    path = f"{DATA}/{name}"
    whole = (image[path] or b"")[: disk.directory.journal._size]
    for position in range(len(whole) * 2 // 3):
        image[path] = whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
        with pytest.raises(CorruptLog, match="behind which there are others"):
            Disk(dict(image))


def test_the_last_round_of_a_journal_may_be_torn() -> None:
    disk = Disk().create(FIRST).append(FIRST, "a", "b", "c")
    image = disk.after_losing(FIRST)
    path = f"{DATA}/{disk.journals[0]}"
    whole = (image[path] or b"")[: disk.directory.journal._size]
    for size in range(len(whole) * 2 // 3 + 1, len(whole.rstrip(b"\0"))):
        image[path] = whole[:size] + bytes(1000)
        assert Disk(dict(image)).directory.logs[FIRST].log_end_offset == 2


def test_a_log_that_misses_what_lies_before_the_journal_is_set_aside_and_nothing_is_forgotten() -> None:
    disk = Disk(journal_bytes=200).create(FIRST, SECOND).append(SECOND, "x").append(FIRST, *"abcdefgh")
    assert disk.directory.logs[FIRST].recovery_point > 0
    image = disk.after_losing(FIRST)
    whole = disk.image()
    image[f"{DATA}/{FIRST}/flushed-offset"] = b""
    image.pop(f"{DATA}/recovery-point-offset-checkpoint", None)
    found = Disk(image)
    assert FIRST in found.directory.failed
    assert found.directory.logs[SECOND].log_end_offset == 1
    assert found.journals == [f"journal-{0:020}"]
    mended = found.image()
    segment = f"{DATA}/{FIRST}/{0:020}.log"
    kept = whole[segment]
    assert kept is not None
    mended[segment] = kept[: len(kept) - len(batch("h"))]
    again = Disk(mended)
    assert again.directory.logs[FIRST].log_end_offset == 8
    assert again.journals == []


def test_a_log_that_was_set_aside_and_deleted_is_forgotten() -> None:
    disk = Disk(journal_bytes=200).create(FIRST).append(FIRST, *"abcdefg")
    image = disk.after_losing(FIRST)
    image[f"{DATA}/{FIRST}/flushed-offset"] = b""
    image.pop(f"{DATA}/recovery-point-offset-checkpoint", None)
    found = Disk(image)
    assert found.journals
    found.directory.delete_log(FIRST)
    found.create(FIRST)
    assert Disk(found.image()).directory.logs[FIRST].log_end_offset == 0


class FullJournals:
    """A disk with room for everything but journals, as long as it is told so."""

    def __init__(self, disk: Disk) -> None:
        self._append = disk.disk.open
        self.is_full = False
        self.closed = 0
        disk.directory.journal._files = self
        self._inner = disk.files

    def open(self, path: str, *, create: bool = False) -> object:
        return _FullFile(self._inner.open(path, create=create), self)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


class _FullFile:
    def __init__(self, inner: object, disk: FullJournals) -> None:
        self._inner = inner
        self._disk = disk

    def reserve(self, size: int) -> None:
        if self._disk.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._inner.reserve(size)  # type: ignore[attr-defined] # any file

    def close(self) -> None:
        self._disk.closed += 1
        self._inner.close()  # type: ignore[attr-defined] # any file

    def write_at(self, position: int, data: bytes) -> None:
        if self._disk.is_full:
            self._inner.write_at(position, data[:10])  # type: ignore[attr-defined] # any file
            raise OSError(errno.ENOSPC, "No space left on device")
        self._inner.write_at(position, data)  # type: ignore[attr-defined] # any file

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_when_there_is_no_room_for_the_journal_the_logs_are_synced() -> None:
    disk = Disk().create(FIRST, SECOND)
    full = FullJournals(disk)
    disk.append(FIRST, "a").append(SECOND, "x")
    full.is_full = True
    disk.append(FIRST, "b").append(SECOND, "y")
    assert disk.directory.logs[FIRST].recovery_point == 2
    full.is_full = False
    disk.append(FIRST, "c")
    found = Disk(disk.image())
    assert found.directory.logs[FIRST].log_end_offset == 3
    assert found.directory.logs[SECOND].log_end_offset == 2


def test_a_finding_nothing_is_left_of_a_journal_that_there_is_no_room_for() -> None:
    """Each sync on a full disk left an open file and its name behind."""
    disk = Disk().create(FIRST)
    full = FullJournals(disk)
    full.is_full = True
    disk.append(FIRST, "a").append(FIRST, "b")
    assert full.closed == 2
    assert [name for name in disk.files.list_dir(disk.directory.path) if name.startswith("journal")] == []
    full.is_full = False
    disk.append(FIRST, "c")
    assert Disk(disk.image()).directory.logs[FIRST].log_end_offset == 3


def test_a_journal_that_cannot_be_synced_fails_everybody() -> None:
    disk = Disk().create(FIRST)
    full = FullJournals(disk)
    disk.append(FIRST, "a")
    log = disk.directory.logs[FIRST]
    waiting = disk.flusher.durable(log, log.append(batch("b")).next_offset)

    def fail(_: int, __: bytes) -> None:
        raise OSError(errno.EIO, "Input/output error")

    file = disk.directory.journal._file
    assert file is not None
    file.write_at = fail  # type: ignore[method-assign] # the disk breaks
    assert disk.flusher.run_once() == 0
    with pytest.raises(StorageFailed, match="Input/output"):
        waiting.result(0)
    assert disk.flusher.failure is not None
    assert not full.is_full


def test_finding_the_spare_of_an_earlier_life_is_not_taken_for_a_journal_of_this_one() -> None:
    """Found by the simulation: numbers begin anew, so old rounds looked like rounds of the new journal."""
    first = Disk(journal_bytes=1).create(FIRST, SECOND).append(FIRST, "a", "b", "c")
    assert first.journals == ["journal-spare"]
    second = Disk(first.image(), journal_bytes=1)
    assert second.journals == []
    second.append(SECOND, "d")
    third = Disk(second.image())
    assert (third.directory.logs[FIRST].log_end_offset, third.directory.logs[SECOND].log_end_offset) == (3, 1)
