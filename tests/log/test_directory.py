"""A whole data directory: who owns it, how it was left, what is in it."""

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.errors import CorruptLog, StorageFailed
from kohort.log.checkpoints import read_offsets, write_offsets
from kohort.log.directory import LogDirectory
from kohort.log.files import RealFiles, join, read_whole, write_whole
from kohort.log.names import TopicPartition
from kohort.log.partition import AppendOrigin, Log, ReadUpTo
from kohort.log.recorded_files import DirMade, DirSynced, Opened, Operation, RecordingFiles, Renamed, Unlinked
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import read_batches
from tests.log.log_bench import TIME, batch

ORDERS = TopicPartition("orders", 0)
OTHERS = TopicPartition("orders", 1)
DATA = "/data"
SIZE = len(batch("a"))


class Site:
    """A data directory in memory that can be opened again and again."""

    def __init__(self) -> None:
        self.disk = SimulatedFiles()
        self.files = RecordingFiles(self.disk)
        self.clock = VirtualClock(TIME)
        self.config = LogConfig(segment_bytes=2 * SIZE)

    def open(self, broker_id: int = 0) -> LogDirectory:
        return LogDirectory(
            self.files,
            DATA,
            self.clock,
            lambda _: self.config,
            broker_id=broker_id,
            new_uuid=lambda: UUID(int=0xABC),
        )

    def kill(self, directory: LogDirectory) -> None:
        """The process is gone, and with it its lock."""
        for log in directory.logs.values():
            log.abandon()
        directory._lock.close()

    def names(self, path: str = DATA) -> list[str]:
        return self.files.list_dir(path)

    def offsets(self, name: str) -> dict[TopicPartition, int]:
        return read_offsets(self.files, join(DATA, name))


@pytest.fixture
def site() -> Site:
    return Site()


def fill(log: Log, count: int) -> None:
    for _ in range(count):
        log.append(batch("v"), origin=AppendOrigin.COORDINATOR)
    log.flush()


def count(log: Log) -> int:
    data = b"".join(segment.file.read_at(0, segment.size) for segment in log.segments)
    return sum(1 for _ in read_batches(data))


def spoil(site: Site, path: str, position: int) -> None:
    file = site.files.open(join(DATA, path))
    file.write_at(position, b"\xff")
    file.close()


def position_of(operations: list[Operation], wanted: Operation) -> int:
    return operations.index(wanted)


def test_partitions_are_found_again(site: Site) -> None:
    directory = site.open()
    assert not directory.was_clean
    fill(directory.create_log(ORDERS), 5)
    fill(directory.create_log(OTHERS), 3)
    directory.close()
    again = site.open()
    assert again.was_clean
    assert {where: count(log) for where, log in again.logs.items()} == {ORDERS: 5, OTHERS: 3}


def test_a_partition_is_made_once_and_under_a_good_name(site: Site) -> None:
    directory = site.open()
    directory.create_log(ORDERS)
    for where in (ORDERS, TopicPartition("../x", 0), TopicPartition("..", 0), TopicPartition("a", -1)):
        with pytest.raises(ValueError, match=r"cannot be the name|there already"):
            directory.create_log(where)
    assert [name for name in site.names() if name.startswith("orders")] == ["orders-0"]


def test_other_directories_are_left_alone(site: Site) -> None:
    site.open().close()
    for name in ("lost+found", "orders-0.0123456789abcdef0123456789abcdef-future", "notes"):
        site.files.make_dir(join(DATA, name))
    directory = site.open()
    assert not directory.logs
    assert {"lost+found", "notes"} < set(site.names())


def test_the_directory_of_another_broker_is_refused_and_left_as_it_was(site: Site) -> None:
    site.open(broker_id=1).close()
    before = site.names()
    with pytest.raises(StorageFailed, match="broker 1"):
        site.open(broker_id=2)
    assert site.names() == before
    assert site.open(broker_id=1).was_clean


def test_one_process_has_the_directory(tmp_path: Path) -> None:
    directory = LogDirectory(RealFiles(), str(tmp_path / "d"), VirtualClock(), lambda _: LogConfig())
    program = (
        "import sys; from kohort.log.directory import *; from kohort.log.files import RealFiles;"
        "from kohort.clock import VirtualClock\n"
        "try: LogDirectory(RealFiles(), sys.argv[1], VirtualClock(), lambda _: LogConfig()).close()\n"
        "except StorageFailed as failure: sys.exit(str(failure))"
    )

    def other() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, str(tmp_path / "d")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert "held by another process" in other().stderr
    directory.close()
    assert other().returncode == 0


def test_a_refused_start_lets_go_of_the_lock(site: Site) -> None:
    site.open(broker_id=1).close()
    for _ in range(2):
        with pytest.raises(StorageFailed, match="broker"):
            site.open(broker_id=2)


def test_the_clean_shutdown_marker_goes_first_and_comes_last(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 5)
    directory.close()
    marker = join(DATA, ".kafka_cleanshutdown")
    assert site.files.exists(marker)
    assert [type(done).__name__ for done in site.files.operations[-2:]] == ["Renamed", "DirSynced"]
    assert site.files.operations[-2] == Renamed(marker + ".tmp", marker)
    site.files.operations.clear()
    site.open()
    operations = site.files.operations
    removed = position_of(operations, Unlinked(marker))
    assert type(operations[removed + 1]).__name__ == "DirSynced"
    assert [done.path for done in operations[:removed] if isinstance(done, Opened)] == [
        join(DATA, ".lock"),
        join(DATA, "meta.properties"),
    ]


def test_after_a_kill_the_start_is_not_clean_and_nothing_is_lost(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 5)
    site.kill(directory)
    again = site.open()
    assert not again.was_clean
    assert count(again.logs[ORDERS]) == 5


def test_a_partition_that_does_not_open_does_not_keep_the_others_from_it(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 1)
    fill(directory.create_log(OTHERS), 1)
    site.kill(directory)
    spoil(site, f"orders-0/{0:020d}.log", 65)
    again = site.open()
    assert list(again.logs) == [OTHERS]
    failure = again.failed[ORDERS]
    assert isinstance(failure, CorruptLog)
    assert (failure.path, failure.position) == (f"/data/orders-0/{0:020d}.log", 0)
    with pytest.raises(CorruptLog):
        again.create_log(ORDERS)


def test_with_a_partition_that_failed_no_shutdown_is_clean_and_what_is_known_of_it_is_kept(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 3)
    directory.logs[ORDERS].delete_records_before(1)
    directory.checkpoint()
    site.kill(directory)
    spoil(site, f"orders-0/{2:020d}.log", 65)
    site.files.unlink(join(DATA, "orders-0/flushed-offset"))
    for _ in range(3):
        again = site.open()
        assert not again.was_clean
        assert list(again.failed) == [ORDERS]
        again.close()
        assert site.offsets("recovery-point-offset-checkpoint") == {ORDERS: 3}
        assert site.offsets("log-start-offset-checkpoint") == {ORDERS: 1}


def test_a_log_whose_disk_failed_makes_the_shutdown_unclean(site: Site) -> None:
    directory = site.open()
    log = directory.create_log(ORDERS)
    fill(log, 1)
    log._failure = StorageFailed("the disk")
    directory.close()
    assert ".kafka_cleanshutdown" not in site.names()


def test_checkpoints_tell_where_the_next_start_may_begin(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 5)
    directory.logs[ORDERS].append(batch("w"))
    directory.logs[ORDERS].delete_records_before(3)
    directory.checkpoint()
    assert site.offsets("recovery-point-offset-checkpoint") == {ORDERS: 5}
    assert site.offsets("replication-offset-checkpoint") == {ORDERS: 5}
    assert site.offsets("log-start-offset-checkpoint") == {ORDERS: 3}
    site.kill(directory)
    again = site.open()
    assert again.logs[ORDERS].log_start_offset == 3
    again.logs[ORDERS].delete_records_before(4)
    again.tick()
    again.checkpoint()
    assert site.offsets("log-start-offset-checkpoint") == {}


def test_a_bad_checkpoint_is_passed_over(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 5)
    site.kill(directory)
    write_whole(site.files, join(DATA, "recovery-point-offset-checkpoint"), b"nonsense")
    assert count(site.open().logs[ORDERS]) == 5


def test_a_truncated_log_opens_after_a_kill(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 5)
    directory.checkpoint()
    directory.logs[ORDERS].truncate_to(3)
    assert site.offsets("recovery-point-offset-checkpoint") == {ORDERS: 2}
    site.kill(directory)
    assert count(site.open().logs[ORDERS]) == 3


def test_a_deleted_partition_is_renamed_at_once_and_removed_later(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 5)
    directory.delete_log(ORDERS)
    renamed = f"orders-0.{0xABC:032x}-delete"
    assert renamed in site.names()
    assert not directory.logs
    directory.tick()
    assert renamed in site.names()
    site.clock.advance(60_000)
    directory.tick()
    assert renamed not in site.names()
    with pytest.raises(KeyError):
        directory.delete_log(ORDERS)


def test_a_partition_may_be_made_again_after_it_was_deleted(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 5)
    directory.checkpoint()
    directory.delete_log(ORDERS)
    fill(directory.create_log(ORDERS), 1)
    site.kill(directory)
    again = site.open()
    assert count(again.logs[ORDERS]) == 1
    assert not [name for name in site.names() if name.endswith("-delete")]


def test_what_a_checkpoint_says_of_a_partition_that_is_gone_is_forgotten(site: Site) -> None:
    site.open().close()
    write_offsets(site.files, join(DATA, "recovery-point-offset-checkpoint"), {ORDERS: 99})
    directory = site.open()
    fill(directory.create_log(ORDERS), 1)
    site.kill(directory)
    assert count(site.open().logs[ORDERS]) == 1


def test_a_failed_partition_can_be_deleted(site: Site) -> None:
    directory = site.open()
    fill(directory.create_log(ORDERS), 1)
    site.kill(directory)
    spoil(site, f"orders-0/{0:020d}.log", 65)
    again = site.open()
    again.delete_log(ORDERS)
    assert not again.failed
    fill(again.create_log(ORDERS), 2)
    again.close()
    assert site.open().was_clean


def test_files_and_directories_are_for_their_owner_alone(tmp_path: Path) -> None:
    directory = LogDirectory(RealFiles(), str(tmp_path / "d"), VirtualClock(TIME), lambda _: LogConfig())
    fill(directory.create_log(ORDERS), 2)
    directory.close()
    assert (tmp_path / "d" / "meta.properties").read_bytes().endswith(b"broker.id=0\nversion=0\n")
    for path in [tmp_path / "d", *(tmp_path / "d").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0


def test_old_snapshots_go_when_the_checkpoint_has_passed_them(site: Site) -> None:
    directory = site.open()
    log = directory.create_log(ORDERS)
    fill(log, 7)
    directory.checkpoint()
    names = site.names(join(DATA, "orders-0"))
    assert [name for name in names if name.endswith(".snapshot")] == [f"{6:020d}.snapshot"]
    assert log.read(0, 1, up_to=ReadUpTo.LOG_END).records
    assert read_whole(site.files, join(DATA, "replication-offset-checkpoint")) == b"0\n1\norders 0 7\n"


def test_a_finding_a_directory_that_was_made_is_synced_in_the_one_above_before_it_is_used() -> None:
    """Without that the loss of power could take all of it away, with what was acknowledged since."""
    site = Site()
    site.open()
    operations = site.files.operations
    claimed = next(i for i, one in enumerate(operations) if isinstance(one, Renamed))
    assert operations.index(DirMade(DATA)) < operations.index(DirSynced("/")) < claimed
