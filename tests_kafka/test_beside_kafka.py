"""Our files opened by Kafka 2.6.3, and its topic read by us while it runs."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import kafka

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.log.directory import LogDirectory
from kohort.log.files import RealFiles
from kohort.log.names import TopicPartition
from kohort.log.partition import AppendOrigin
from kohort.records.batch import Record, RecordBatch
from kohort.records.compression import Codec
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    OffsetCommitValue,
    OffsetKey,
    encode_key,
    encode_value,
)

pytestmark = pytest.mark.skipif(not kafka.available(), reason="needs Java and Maven")

SETTINGS = {
    "broker.id": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "log.cleaner.enable": "false",
    "num.partitions": "3",
}


def kohort(*args: str | Path) -> str:
    command = [Path(sys.executable).parent / "kohort", *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def write_story(path: Path, codec: Codec = Codec.NONE) -> None:
    """A log of ours: plain commits, a transaction committed, one aborted, a deletion, several segments, a clean end."""
    clock = VirtualClock(1_790_000_000_000)
    config = LogConfig(segment_bytes=600, cleanup_policy=frozenset({"compact"}))
    directory = LogDirectory(RealFiles(), str(path), clock, lambda _: config, broker_id=1)
    log = directory.create_log(TopicPartition("__consumer_offsets", 0))

    def append(group: str, partition: int, offset: int | None, producer_id: int = -1) -> None:
        value = None if offset is None else encode_value(OffsetCommitValue(offset, "ours", clock.now_ms()))
        batch = RecordBatch.build(
            [Record(0, clock.now_ms(), encode_key(OffsetKey(group, "orders", partition)), value)],
            transactional=producer_id >= 0,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0,
            codec=codec,
        )
        log.append(batch.encode(), origin=AppendOrigin.COORDINATOR)
        clock.advance(1)

    def end(producer_id: int, control_type: ControlType) -> None:
        marker = marker_batch(
            Marker(control_type, 0), producer_id=producer_id, producer_epoch=0, timestamp=clock.now_ms()
        )
        log.append(marker.encode(), origin=AppendOrigin.COORDINATOR)

    for n in range(20):
        append("plain", n % 3, n)
    append("transactional", 0, 70, producer_id=5)
    append("transactional", 1, 71, producer_id=6)
    end(5, ControlType.COMMIT)
    end(6, ControlType.ABORT)
    append("plain", 2, None)
    value = GroupMetadataValue("consumer", 4, None, None, current_state_timestamp=clock.now_ms())
    record = Record(0, clock.now_ms(), encode_key(GroupKey("emptied")), encode_value(value))
    log.append(RecordBatch.build([record]).encode(), origin=AppendOrigin.COORDINATOR)
    assert len(log.segments) > 2
    directory.close()


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize(
    ("clean", "codec"),
    [(True, Codec.NONE), (False, Codec.NONE), *((True, codec) for codec in Codec if codec is not Codec.NONE)],
    ids=["shut down", "crashed", "gzip", "snappy", "lz4", "zstd"],
)
def test_kafka_opens_our_directory_and_answers_what_we_wrote(work: Path, clean: bool, codec: Codec) -> None:
    ours = work / "ours"
    write_story(ours, codec)
    want = json.loads(kohort("state", ours, "--format", "json"))
    settings = SETTINGS | {"log.dirs": str(work / "kafka/logs")}
    with kafka.running(work / "kafka", settings) as broker:
        broker.await_offsets_topic(1)
    place = work / "kafka/logs/__consumer_offsets-0"
    shutil.rmtree(place)
    shutil.copytree(ours / place.name, place)
    if not clean:
        (work / "kafka/logs/.kafka_cleanshutdown").unlink()
        for index in place.glob("*.*index"):
            index.unlink()
    with kafka.running(work / "kafka", settings) as broker:
        broker.await_offsets_topic(1)
        told = [line for line in broker.log_text().splitlines() if "kafka.log" in line or "GroupMetadata" in line]
        complaints = [line for line in told if "ERROR" in line or "orrupt" in line]
        # An index that is not there is made again; Kafka calls that an error.
        assert [line for line in complaints if "rebuilding index files" not in line] == []
        assert bool(complaints) is not clean
        live = json.loads(kohort("state", f"kafka://127.0.0.1:{broker.port}", "--format", "json"))
        assert live == want
        groups = broker.describe_offsets(["plain", "transactional"])
    assert groups == {
        "plain": {("orders", 0): 18, ("orders", 1): 19},
        "transactional": {("orders", 0): 70},
    }


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_a_live_cluster_gives_what_its_files_give(work: Path, codec: Codec) -> None:
    settings = SETTINGS | {"log.dirs": str(work / "kafka/logs"), "offsets.topic.compression.codec": str(int(codec))}
    with kafka.running(work / "kafka", settings) as broker:
        broker.await_offsets_topic(1)
        for n in range(30):
            broker.commit_offset(f"group-{n % 4}", "orders", n % 3, 100 + n)
        live = kohort("dump", f"kafka://127.0.0.1:{broker.port}", "--format", "jsonl")
        groups = broker.describe_offsets([f"group-{n}" for n in range(4)])
    assert live == kohort("dump", work / "kafka/logs", "--format", "jsonl")
    assert live.count("\n") == 30
    state = json.loads(kohort("state", work / "kafka/logs", "--format", "json"))
    told = {(group, *where): offset for group, found in groups.items() for where, offset in found.items()}
    assert {(o["group"], o["topic"], o["partition"]): o["offset"] for o in state["offsets"]} == told


def test_kafka_takes_back_a_directory_that_we_opened_and_closed(work: Path) -> None:
    settings = SETTINGS | {"log.dirs": str(work / "kafka/logs")}
    with kafka.running(work / "kafka", settings) as broker:
        broker.await_offsets_topic(1)
        broker.commit_offset("g", "orders", 0, 41)
    path = str(work / "kafka/logs")
    directory = LogDirectory(RealFiles(), path, VirtualClock(), lambda _: LogConfig(), broker_id=1)
    log = directory.logs[TopicPartition("__consumer_offsets", 0)]
    value = encode_value(OffsetCommitValue(42, "by kohort", 1_790_000_000_000))
    record = Record(0, 1_790_000_000_000, encode_key(OffsetKey("g", "orders", 0)), value)
    log.append(RecordBatch.build([record], base_sequence=0).encode(), origin=AppendOrigin.COORDINATOR)
    assert not directory.failed
    directory.close()
    with kafka.running(work / "kafka", settings) as broker:
        broker.await_offsets_topic(1)
        assert broker.describe_offsets(["g"]) == {"g": {("orders", 0): 42}}
