"""Users and permissions outlive the broker, and no client gets to see where they are kept."""

from pathlib import Path

import pytest

from kohort.broker.topics_file import SECURITY_TOPIC
from kohort.errors import CorruptLog, ErrorCode, StorageFailed
from kohort.log.partition import AppendOrigin
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import Record, RecordBatch
from tests.broker.running import Running, running

METADATA, LIST_OFFSETS, CREATE_TOPICS, DELETE_TOPICS = 3, 2, 19, 20
ALICE, BOB = ("scram", "alice", "SCRAM-SHA-256"), ("scram", "bob", "SCRAM-SHA-256")


def change(broker: Running, changes: dict[tuple[str, ...], dict[str, object] | None]) -> ErrorCode:
    """Returns when it is safe."""
    told: list[ErrorCode] = []
    broker.on_loop(lambda: broker.broker.security_log.change(changes, told.append))
    while not told:
        broker.on_loop(lambda: None)
    return told[0]


def facts(broker: Running) -> dict[tuple[str, ...], object]:
    return broker.on_loop(lambda: dict(broker.broker.security_log.of_kind("scram")))


def test_what_was_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        assert change(broker, {ALICE: {"salt": "a"}, BOB: {"salt": "b"}}) is ErrorCode.NONE
        assert change(broker, {ALICE: {"salt": "c"}, BOB: None}) is ErrorCode.NONE
        assert facts(broker) == {ALICE: {"salt": "c"}}
    with running(tmp_path) as broker:
        assert facts(broker) == {ALICE: {"salt": "c"}}


def test_whoever_watches_hears_of_every_change_when_it_is_safe(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        heard: list[object] = []
        broker.on_loop(lambda: broker.broker.security_log.watchers.append(heard.append))
        change(broker, {ALICE: {"salt": "a"}})
        change(broker, {ALICE: None})
        assert heard == [{ALICE: {"salt": "a"}}, {ALICE: None}]


def test_whoever_changes_a_part_of_a_fact_knows_what_is_written_already(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        log, told = broker.broker.security_log, list[ErrorCode]()

        def change_twice() -> tuple[object, object, object]:
            log.change({ALICE: {"salt": "a"}, BOB: {"salt": "b"}}, told.append)
            log.change({ALICE: {"salt": "c"}}, told.append)
            return log.get(ALICE), log.newest(ALICE), log.newest(BOB)

        assert broker.on_loop(change_twice) == (None, {"salt": "c"}, {"salt": "b"})
        while len(told) < 2:
            broker.on_loop(lambda: None)
        assert broker.on_loop(lambda: (log.get(ALICE), log.newest(ALICE))) == ({"salt": "c"}, {"salt": "c"})


def test_no_client_sees_the_topic() -> None:
    with running() as broker:
        change(broker, {ALICE: {"salt": "a"}})
        with broker.client() as client:
            everything = client.ask(METADATA, 9, topics=None, allow_auto_topic_creation=True)
            assert [topic.name for topic in everything.topics] == []
            (named,) = client.ask(METADATA, 9, topics=[{"name": SECURITY_TOPIC}]).topics
            assert named.error_code == ErrorCode.INVALID_TOPIC
            (made,) = client.ask(
                CREATE_TOPICS, 4, topics=[{"name": SECURITY_TOPIC, "num_partitions": 1, "replication_factor": 1}]
            ).topics
            assert made.error_code == ErrorCode.INVALID_TOPIC
            (gone,) = client.ask(DELETE_TOPICS, 3, topic_names=[SECURITY_TOPIC]).responses
            assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert facts(broker) == {ALICE: {"salt": "a"}}


def test_a_broker_whose_security_log_is_gone_does_not_start(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        change(broker, {ALICE: {"salt": "a"}})
    (tmp_path / f"{SECURITY_TOPIC}-0").rename(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="missing"), running(tmp_path):
        pass


def test_a_broker_whose_security_log_cannot_be_understood_does_not_start() -> None:
    files = SimulatedFiles()
    with running(files=files) as broker:
        change(broker, {("scram", "alice"): {}})

        def write_nonsense() -> None:
            log = broker.broker.topics.security_log
            assert log is not None
            log.append(RecordBatch.build([Record(0, 0, b"[1", b"{}")]).encode(), origin=AppendOrigin.COORDINATOR)

        broker.on_loop(write_nonsense)
    with pytest.raises(CorruptLog, match="offset 1 is not JSON"), running(files=files):
        pass
