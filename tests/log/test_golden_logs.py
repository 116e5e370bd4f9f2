"""Logs that real brokers wrote, opened as our own."""

import json
import shutil
from pathlib import Path

import pytest

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.log.directory import LogDirectory
from kohort.log.files import RealFiles
from kohort.log.names import TopicPartition
from kohort.log.partition import ReadUpTo
from kohort.records.batch import read_batches
from tests.log.log_bench import GOLDEN, TIME, read_all, read_bytes

SETS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@pytest.fixture(params=SETS)
def golden(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / request.param


@pytest.fixture
def data(golden: Path, tmp_path: Path) -> Path:
    for partition in golden.glob("__consumer_offsets-*"):
        shutil.copytree(partition, tmp_path / partition.name)
    return tmp_path


def open_directory(data: Path) -> LogDirectory:
    compacted = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=104_857_600)
    return LogDirectory(RealFiles(), str(data), VirtualClock(TIME), lambda _: compacted)


def test_everything_is_read_back_as_the_codec_reads_it(golden: Path, data: Path) -> None:
    for was_clean in (False, True, True):
        directory = open_directory(data)
        assert directory.was_clean is was_clean
        assert not directory.failed
        assert len(directory.logs) == len(list(golden.glob("__consumer_offsets-*")))
        for where, log in directory.logs.items():
            stored = b"".join(path.read_bytes() for path in sorted((golden / str(where)).glob("*.log")))
            assert read_bytes(log, max_bytes=700) == stored
            assert [batch.records for batch in read_batches(stored) if batch.records] == [
                batch.records for batch in read_batches(read_bytes(log)) if batch.records
            ]
        directory.close()


def test_offsets_and_producers_are_those_that_the_broker_told(golden: Path, data: Path) -> None:
    told = json.loads((golden / "state.json").read_text())
    directory = open_directory(data)
    for partition in told["partitions"]:
        log = directory.logs.get(TopicPartition("__consumer_offsets", partition["partition"]))
        if log is None:
            continue
        assert log.log_start_offset == partition["log_start_offset"]
        assert log.log_end_offset == partition["log_end_offset"]
        assert log.last_stable_offset == partition["last_stable_offset"]
        entries = [
            {
                "producer_id": entry.producer_id,
                "producer_epoch": entry.producer_epoch,
                "last_sequence": entry.last_sequence,
                "coordinator_epoch": entry.coordinator_epoch,
                "current_txn_start_offset": -1
                if entry.current_txn_first_offset is None
                else entry.current_txn_first_offset,
            }
            for _, entry in sorted(log.producer_state.entries.items())
        ]
        assert entries == partition.get("active_producers", entries)
    directory.close()


def test_leader_epochs_agree_with_the_brokers_own_file(golden: Path, data: Path) -> None:
    directory = open_directory(data)
    for where, log in directory.logs.items():
        checkpoint = golden / str(where) / "leader-epoch-checkpoint"
        if checkpoint.exists():
            lines = checkpoint.read_text().splitlines()[2:]
            assert [f"{epoch} {start}" for epoch, start in log.leader_epochs.entries] == lines
        else:
            assert log.leader_epochs.entries == []
    directory.close()


def test_an_aborted_transaction_is_told_for_each_aborted_batch_and_no_other(data: Path) -> None:
    directory = open_directory(data)
    for log in directory.logs.values():
        told = log.aborted_transactions(0, log.log_end_offset)
        batches = list(read_batches(read_bytes(log)))
        controls = {batch.header.last_offset: batch for batch in batches if batch.header.is_control}
        for aborted in told:
            marker = controls[aborted.last_offset]
            assert marker.header.producer_id == aborted.producer_id
            assert marker.records[0].key == b"\x00\x00\x00\x00"
            assert any(
                batch.header.producer_id == aborted.producer_id and batch.header.base_offset == aborted.first_offset
                for batch in batches
            )
    directory.close()


def test_every_time_leads_to_the_first_record_as_young(data: Path) -> None:
    directory = open_directory(data)
    for log in directory.logs.values():
        records = read_all(log, ReadUpTo.LOG_END)
        for wanted in sorted({record.timestamp for record in records})[::5]:
            found = log.offset_for_timestamp(wanted)
            assert found is not None
            assert found.offset == next(record.offset for record in records if record.timestamp >= wanted)
    directory.close()
