"""Loads that cannot be finished: no answer is better than a wrong one."""

from collections.abc import Callable
from typing import Any

import pytest

from kohort.errors import CorruptLog, ErrorCode, KohortError, StorageFailed
from kohort.log.partition import Log
from kohort.log.replaying import replay_log
from kohort.records.batch import BatchHeader
from tests.group.context import GROUP, OTHER_GROUP, Context, only
from tests.group.log_builder import OFFSETS, batch, commits, group_record, offsets_of, written

MEMBER = "98098230493"
LOADING, NOT_OURS = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR


def three_batches() -> Context:
    """Damage below the end of the log is in the middle one."""
    return written(batch(*commits(OFFSETS)), batch(group_record(7, MEMBER)), batch(*commits({("foo", 2): 1})), start=0)


class ShortFile:
    """A file that has lost its end behind the back of whoever has it open; nobody may ask for that again and again."""

    def __init__(self, log: Log, size: int) -> None:
        self._file = log.active_segment.file
        self._file.truncate(size)
        self._patience = 1_000

    def read_at(self, position: int, length: int) -> bytes:
        self._patience -= 1
        assert self._patience, "it reads and reads"
        return self._file.read_at(position, length)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def middle_batch(log: Log) -> BatchHeader:
    return list(log.active_segment.batches())[1][0]


def flip_a_byte(log: Log) -> None:
    file, at = log.active_segment.file, middle_batch(log).position + 70
    file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 1]))


def cut_a_batch(log: Log) -> None:
    log.active_segment.file = ShortFile(log, middle_batch(log).position + 20)


def cut_behind_a_batch(log: Log) -> None:
    log.active_segment.file = ShortFile(log, middle_batch(log).end)


def empty_the_file(log: Log) -> None:
    log.active_segment.file = ShortFile(log, 0)


def errors_of_everything(c: Context) -> list[ErrorCode]:
    return [
        c.join().result.error,
        c.leave(GROUP, MEMBER).error,
        only(c.commit({("foo", 0): 1}).result),
        only(c.txn_commit(1000, {("foo", 0): 1}).result),
        c.fetch_all()[0],
        c.describe()[0],
        c.delete(GROUP).result[GROUP],
        c.delete_offsets([("foo", 0)]).result[0],
    ]


@pytest.mark.parametrize("damage", [flip_a_byte, cut_a_batch, cut_behind_a_batch, empty_the_file])
def test_a_log_that_cannot_be_read_to_its_end_leaves_the_partition_unavailable(
    damage: Callable[[Log], None], caplog: pytest.LogCaptureFixture
) -> None:
    """GMM testLoadGroupAndOffsetsWithCorruptedLog

    Repaired: a load that cannot read to the end of its log fails and leaves the partition unavailable, never
    half-loaded
    """
    c = three_batches()
    log = c.topic.log(c.partition())
    sound = log.active_segment.file.read_at(0, 1 << 20)
    damage(log)
    end = log.log_end_offset
    c.topic.hold_loads()
    c.elect(c.partition())
    assert c.manager.is_loading
    assert set(errors_of_everything(c)) == {LOADING}

    c.topic.finish_loads()
    assert not c.manager.is_loading
    assert set(errors_of_everything(c)) == {NOT_OURS}
    assert c.heartbeat(GROUP, MEMBER, 7) is NOT_OURS
    assert c.sync(GROUP, 7, MEMBER).result.error is NOT_OURS
    assert not c.manager.current_groups
    assert c.manager.partitions == []
    assert log.log_end_offset == end
    assert f"partition {c.partition()} could not be loaded and stays unavailable" in caplog.text

    log.active_segment.file.truncate(0)
    log.active_segment.file.write_at(0, sound)
    c.elect(c.partition(), 1)
    assert offsets_of(c) == OFFSETS | {("foo", 2): 1}
    assert c.heartbeat(GROUP, MEMBER, 7) is ErrorCode.NONE


@pytest.mark.parametrize("failure", [CorruptLog("torn", path="x", position=3), StorageFailed("the disk is gone")])
def test_a_failed_load_is_made_good_by_the_next_election(failure: KohortError) -> None:
    c = three_batches()
    c.topic.fail_loads(failure)
    c.elect(c.partition(), 3)
    assert set(errors_of_everything(c)) == {NOT_OURS}
    c.elect(c.partition(), 2)
    c.topic.fail_loads(None)
    c.elect(c.partition(), 2)
    assert set(errors_of_everything(c)) == {NOT_OURS}
    c.elect(c.partition(), 4)
    assert offsets_of(c) == OFFSETS | {("foo", 2): 1}


def test_a_failed_load_does_not_touch_other_partitions() -> None:
    c = three_batches()
    c.elect(c.partition(OTHER_GROUP))
    c.commit({("foo", 0): 1}, OTHER_GROUP)
    c.topic.fail_loads(CorruptLog("torn"))
    c.elect(c.partition())
    assert c.describe()[0] is NOT_OURS
    assert c.offset("foo", 0, OTHER_GROUP) == 1
    error, groups = c.coordinator.handle_list_groups()
    assert (error, [group.group_id for group in groups]) == (ErrorCode.NONE, [OTHER_GROUP])


def test_a_failed_load_is_not_counted_as_one_that_took_time() -> None:
    c = three_batches()
    c.topic.fail_loads(CorruptLog("torn"))
    c.elect(c.partition())
    told = c.coordinator.snapshot()
    assert told["partition-load-records"] == 0
    assert told["partition-load-time-max"] != told["partition-load-time-max"]


def test_the_replay_itself_says_where_the_damage_is() -> None:
    c = three_batches()
    log = c.topic.log(c.partition())
    flip_a_byte(log)
    with pytest.raises(CorruptLog, match="checksum"):
        replay_log(log, 1 << 20)
