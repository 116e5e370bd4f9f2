"""A real broker on a real disk that becomes full: it refuses, keeps what it has, and goes on when there is room."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from kohort.errors import ErrorCode
from kohort.testing.own_process import OwnProcess
from kohort.testing.ports import Ports
from kohort.testing.refusals import BrokerFailed
from tests.broker.wire_client import WireClient
from tests.small_disk import MayNotMount, SmallDisk, small_disk

METADATA_API, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 3, 8, 9, 10
JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
HOST = "127.0.0.1"
SETTINGS = {
    "log.cleaner.backoff.ms": "3600000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.segment.bytes": "1000000",
}
NOTHING_ELSE: Mapping[str, str] = {}
SMALL_SEGMENTS = {"offsets.topic.segment.bytes": "20000"}
METADATA = "m" * 4000
"""Commits that fill a disk soon."""
FEW_GROUPS = 12
SMALLER_THAN_A_JOURNAL_KIB = 2 * 1024
WITH_A_JOURNAL_KIB = 11 * 1024


@pytest.fixture
def disks(tmp_path: Path) -> Iterator["Disks"]:
    with ExitStack() as mounted:
        yield Disks(tmp_path, mounted)


class Disks:
    def __init__(self, place: Path, mounted: ExitStack) -> None:
        self._place, self._mounted = place, mounted

    def new(self, size_kib: int) -> SmallDisk:
        try:
            return self._mounted.enter_context(small_disk(self._place / "disk", size_kib))
        except MayNotMount as reason:
            pytest.skip(f"only somebody who may mount can have a small disk: {reason}")


class Running:
    """A broker, one connection to it, and every commit that it has acknowledged."""

    def __init__(self, life: OwnProcess, client: WireClient, port: int, kept: dict[str, int]) -> None:
        self.life, self.client, self.port, self.kept = life, client, port, kept
        self._next = max(kept.values(), default=0)

    def commit(self, group: str) -> ErrorCode:
        self._next += 1
        partition = {"partition_index": 0, "committed_offset": self._next, "committed_metadata": METADATA}
        answer = self.client.ask(
            OFFSET_COMMIT,
            7,
            group_id=group,
            generation_id_or_member_epoch=-1,
            topics=[{"name": "orders", "partitions": [partition]}],
        )
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        if code is ErrorCode.NONE:
            self.kept[group] = self._next
        return code

    def commit_until_refused(self) -> ErrorCode:
        """The refusal, when all groups hear the same one."""
        refused: dict[str, ErrorCode] = {}
        turn = 0
        while len(refused) < FEW_GROUPS:
            group = f"g-{turn % FEW_GROUPS}"
            turn += 1
            code = self.commit(group)
            if code is not ErrorCode.NONE:
                refused[group] = code
        (only,) = set(refused.values())
        return only

    def read(self, group: str) -> int:
        topics = [{"name": "orders", "partition_indexes": [0]}]
        answer = self.client.ask(OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=True)
        assert answer.error_code == ErrorCode.NONE
        return int(answer.topics[0].partitions[0].committed_offset)

    def check_kept(self) -> None:
        assert {group: self.read(group) for group in self.kept} == self.kept

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.life.pid}/fd").iterdir()))


@contextmanager
def running(
    disk: SmallDisk,
    kept: dict[str, int] | None = None,
    *,
    cleanly: bool = True,
    settings: Mapping[str, str] = NOTHING_ELSE,
) -> Iterator[Running]:
    life = OwnProcess(str(disk.data), HOST, Ports(), {**SETTINGS, **settings})
    port = life.start().kafka
    try:
        with WireClient(port) as client:
            client.ask(METADATA_API, 4, topics=[{"name": "orders"}], allow_auto_topic_creation=True)
            client.ask(FIND_COORDINATOR, 1, key="g", key_type=0)
            yield Running(life, client, port, {} if kept is None else kept)
    except BaseException:
        life.finish(cleanly=False)
        raise
    life.finish(cleanly=cleanly)


@pytest.mark.parametrize("size_kib", [SMALLER_THAN_A_JOURNAL_KIB, WITH_A_JOURNAL_KIB])
@pytest.mark.parametrize("settings", [NOTHING_ELSE, SMALL_SEGMENTS], ids=["large segments", "small segments"])
def test_a_full_disk_refuses_commits_and_takes_them_again_when_there_is_room(
    disks: Disks, size_kib: int, settings: Mapping[str, str]
) -> None:
    disk = disks.new(size_kib)
    with running(disk, settings=settings) as broker:
        assert broker.commit("g-0") is ErrorCode.NONE
        disk.fill()
        assert broker.commit_until_refused() is ErrorCode.NOT_COORDINATOR
        broker.check_kept()
        disk.free()
        for number in range(FEW_GROUPS):
            assert broker.commit(f"g-{number}") is ErrorCode.NONE
        broker.check_kept()
    with running(disk, broker.kept, settings=settings) as again:
        again.check_kept()


def test_who_reads_and_who_heartbeats_notices_nothing_of_a_full_disk(disks: Disks) -> None:
    disk = disks.new(SMALLER_THAN_A_JOURNAL_KIB)
    with running(disk) as broker:
        member = _join(broker)
        assert broker.commit("g-0") is ErrorCode.NONE
        disk.fill()
        broker.commit_until_refused()
        assert broker.client.ask(HEARTBEAT, 3, **member).error_code == ErrorCode.NONE
        broker.check_kept()
        disk.free()
        assert broker.client.ask(HEARTBEAT, 3, **member).error_code == ErrorCode.NONE


def _join(broker: Running) -> dict[str, object]:
    """A group of one member, by what it has to say with each request."""
    joining = {
        "group_id": "members",
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    joined = broker.client.ask(JOIN_GROUP, 2, member_id="", **joining)
    member = {"group_id": "members", "generation_id": joined.generation_id, "member_id": joined.member_id}
    shares = [{"member_id": joined.member_id, "assignment": b"all"}]
    assert broker.client.ask(SYNC_GROUP, 2, **member, assignments=shares).error_code == ErrorCode.NONE
    return member


def test_a_finding_a_disk_without_room_for_a_journal_costs_no_descriptor_with_each_commit(disks: Disks) -> None:
    """Each sync tried to begin a journal, and left its file open and in the directory when there was no room."""
    disk = disks.new(SMALLER_THAN_A_JOURNAL_KIB)
    with running(disk) as broker:
        for number in range(FEW_GROUPS):
            assert broker.commit(f"g-{number}") is ErrorCode.NONE
        before = broker.open_files()
        for number in range(10 * FEW_GROUPS):
            assert broker.commit(f"g-{number % FEW_GROUPS}") is ErrorCode.NONE
        assert broker.open_files() <= before
        assert list(disk.data.glob("journal-*")) == []


def test_a_broker_that_was_killed_on_a_full_disk_starts_on_it_with_all_that_it_has_acknowledged(disks: Disks) -> None:
    disk = disks.new(WITH_A_JOURNAL_KIB)
    with running(disk, cleanly=False) as broker:
        _fill_while_committing(disk, broker)
    _check_start_on(disk, broker.kept)


def test_a_broker_that_ends_on_a_full_disk_says_so_and_has_lost_nothing(disks: Disks) -> None:
    disk = disks.new(WITH_A_JOURNAL_KIB)
    with pytest.raises(BrokerFailed, match="No space left on device"), running(disk) as broker:
        _fill_while_committing(disk, broker)
    _check_start_on(disk, broker.kept)


def _fill_while_committing(disk: SmallDisk, broker: Running) -> None:
    for number in range(FEW_GROUPS):
        assert broker.commit(f"g-{number}") is ErrorCode.NONE
    disk.fill()
    broker.commit_until_refused()
    disk.fill()


def _check_start_on(disk: SmallDisk, kept: dict[str, int]) -> None:
    disk.fill()
    with running(disk, kept) as again:
        again.check_kept()
        disk.free()
        for number in range(FEW_GROUPS):
            assert again.commit(f"g-{number}") is ErrorCode.NONE
        again.check_kept()


def test_librdkafka_is_refused_on_a_full_disk_and_commits_again_later(disks: Disks) -> None:
    disk = disks.new(SMALLER_THAN_A_JOURNAL_KIB)
    with running(disk) as broker:
        settings = {"bootstrap.servers": f"{HOST}:{broker.port}", "group.id": "g", "enable.auto.commit": False}
        consumer = Consumer({**settings, "log_level": 0})
        disk.fill()
        acknowledged = _commit_until_refused(consumer)
        (read,) = consumer.committed([TopicPartition("orders", 0)], timeout=30)
        assert read.offset == acknowledged
        disk.free()
        (committed,) = consumer.commit(offsets=[_position(2000)], asynchronous=False)
        assert committed.error is None
        consumer.close()


def _commit_until_refused(consumer: Consumer) -> int:
    """The last offset that was taken."""
    for offset in count():
        try:
            consumer.commit(offsets=[_position(offset)], asynchronous=False)
        except KafkaException:
            return offset - 1 if offset else OFFSET_INVALID
    raise AssertionError


def _position(offset: int) -> TopicPartition:
    return TopicPartition("orders", 0, offset, METADATA)
