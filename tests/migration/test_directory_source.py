"""A log directory as a source: what a reader of committed data would see of it, and what is known of its topics."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from kohort.errors import CorruptLog
from kohort.log.checkpoints import LOG_START_OFFSET, write_offsets
from kohort.log.files import RealFiles
from kohort.log.names import TopicPartition
from kohort.log.source import BadSource
from kohort.migration.directory_source import DirectoryPartition, DirectorySource
from kohort.migration.source import Fate
from kohort.records.batch import Record, RecordBatch, read_records
from tests.migration.random_logs import RandomLog, random_log


def seen(partition: DirectoryPartition) -> list[Record]:
    found: list[Record] = []
    for batch in partition.batches(_raise, lambda _: None):
        if batch.fate is Fate.DATA:
            found += read_records(batch.header, batch.data)
    return found


def _raise(damage: CorruptLog) -> None:
    raise damage


@pytest.mark.parametrize("first_seed", range(0, 100, 20))
def test_a_log_shows_what_was_committed_up_to_the_first_open_transaction(tmp_path: Path, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 20):
        log = random_log(seed)
        log.save(tmp_path / f"{seed}" / "orders-0")
        partition = DirectorySource(str(tmp_path / f"{seed}")).partition("orders", 0)
        assert (partition.start, partition.stable_end, partition.log_end) == (log.start, log.stable_end, log.end)
        assert seen(partition) == log.visible(), seed


def test_logs_of_chance_have_all_that_makes_it_hard() -> None:
    logs = [random_log(seed) for seed in range(60)]
    assert sum(bool(log.open) for log in logs) > 5
    assert sum(log.aborted() > 0 for log in logs) > 15
    assert sum(log.start > 0 for log in logs) > 15
    assert sum(any(one.transaction in log.committed for one in log.written) for log in logs) > 30


def write(directory: Path, log: RandomLog | None = None) -> None:
    (log or random_log(1)).save(directory)


def test_the_settings_of_kohorts_own_topics_are_known(tmp_path: Path) -> None:
    write(tmp_path / "orders-0")
    write(tmp_path / "doomed-0")
    told = {"partitions": 4, "made": 4, "settings": {"cleanup.policy": "compact"}, "doomed": False}
    topics = {
        "orders": told | {"id": str(uuid4())},
        "doomed": told | {"id": str(uuid4()), "doomed": True},
    }
    (tmp_path / "topics.json").write_text(json.dumps({"version": 1, "topics": topics}))
    (topic,) = DirectorySource(str(tmp_path)).topics().values()
    assert (topic.name, topic.partition_count, topic.partitions) == ("orders", 4, (0,))
    assert (topic.settings, topic.is_count_sure) == ({"cleanup.policy": "compact"}, True)


def test_of_kafkas_topics_the_partitions_are_known_and_what_is_the_clusters_own_is_left_out(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-5", "__consumer_offsets-0", "__transaction_state-3", "__cluster_metadata-0"):
        write(tmp_path / name)
    write(tmp_path / "gone-0.0123456789abcdef0123456789abcdef-delete")
    (tmp_path / "orders-1").write_text("no directory")
    (topic,) = DirectorySource(str(tmp_path)).topics().values()
    assert (topic.name, topic.partition_count, topic.partitions) == ("orders", 6, (0, 5))
    assert (topic.settings, topic.is_count_sure) == (None, False)


def test_deleted_records_are_before_the_start(tmp_path: Path) -> None:
    log = random_log(3)
    write(tmp_path / "orders-0", log)
    middle = log.visible()[len(log.visible()) // 2].offset
    write_offsets(RealFiles(), str(tmp_path / LOG_START_OFFSET), {TopicPartition("orders", 0): middle})
    assert DirectorySource(str(tmp_path)).partition("orders", 0).start == middle


def test_a_partition_without_a_record_is_empty(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-1").mkdir()
    (tmp_path / "orders-1" / "00000000000000000042.log").touch()
    source = DirectorySource(str(tmp_path))
    for number, offset in ((0, 0), (1, 42)):
        partition = source.partition("orders", number)
        assert (partition.start, partition.stable_end, partition.log_end) == (offset, offset, offset)
        assert seen(partition) == []


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "partition"])
def test_what_is_no_log_directory_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "orders-0"
    if kind == "file":
        place.write_bytes(RecordBatch.build([Record(0, 0, b"k", b"v")]).encode())
    elif kind == "empty":
        place.mkdir()
    elif kind == "partition":
        write(place)
    with pytest.raises(BadSource, match="expected a Kafka log directory or kafka://HOST:PORT"):
        DirectorySource(str(place))
