"""Topics are made while everybody else is served."""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.new_partitions import MakingStopped
from kohort.errors import ErrorCode
from kohort.log.faulty_files import FaultyFiles
from kohort.log.files import RealFiles
from tests.broker.data_plane import METADATA, TOPIC, batch, make_topic, produce
from tests.broker.running import running
from tests.broker.test_housekeeping import Lateness, work_for_nothing
from tests.broker.wire_client import WireClient

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, INCREMENTAL = 19, 20, 37, 44
FIND_COORDINATOR, API_VERSIONS, ADD_OFFSETS_TO_TXN = 10, 18, 25
PATIENCE_S = 30.0


class Gate(FaultyFiles):
    """A disk that takes its time for one partition, or has no room for it."""

    def __init__(self, partition: str) -> None:
        super().__init__(RealFiles())
        self._partition = partition
        self.is_full = False
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()

    @contextmanager
    def call(self, name: str, path: str) -> Iterator[None]:
        if name == "make_dir" and path.endswith(self._partition):
            self.is_reached.set()
            assert self.may_go_on.wait(PATIENCE_S)
            if self.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        with super().call(name, path):
            yield


def new_topic(name: str = TOPIC, partitions: int = 6) -> dict[str, Any]:
    return {"topics": [{"name": name, "num_partitions": partitions, "replication_factor": 1}], "timeout": 30_000}


def grow(count: int) -> dict[str, Any]:
    return {"topics": [{"name": TOPIC, "count": count, "assignments": None}], "timeout": 30_000}


def told(client: WireClient, name: str = TOPIC) -> tuple[ErrorCode, int]:
    answer = client.ask(METADATA, 9, topics=[{"name": name}], allow_auto_topic_creation=False)
    return answer.topics[0].error_code, len(answer.topics[0].partitions)


def directories(path: Path, name: str = TOPIC) -> int:
    return len([one for one in path.glob(f"{name}-*") if not one.name.endswith("-delete")])


def test_nobody_waits_for_a_topic_that_is_not_his(tmp_path: Path) -> None:
    files = Gate(f"{TOPIC}-3")
    with running(tmp_path, files=files) as broker, broker.client() as client, broker.client() as other:
        client.send(CREATE_TOPICS, 4, **new_topic())
        assert files.is_reached.wait(PATIENCE_S)
        assert other.ask(API_VERSIONS, 0).error_code == ErrorCode.NONE
        assert told(other) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)  # it is not there before it is there
        twin = other.ask(CREATE_TOPICS, 4, **new_topic()).topics[0]
        assert twin.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        similar = other.ask(CREATE_TOPICS, 4, **new_topic("other", 1)).topics[0]
        assert similar.error_code == ErrorCode.NONE
        assert not client.has_answer()
        files.may_go_on.set()
        assert client.receive().topics[0].error_code == ErrorCode.NONE
        assert told(other) == (ErrorCode.NONE, 6)


def test_all_who_ask_for_a_topic_get_the_same(tmp_path: Path) -> None:
    files = Gate(f"{TOPIC}-1")
    with running(tmp_path, {"num.partitions": "2"}, files=files) as broker:
        clients = [broker.client() for _ in range(3)]
        for client in clients:
            client.send(METADATA, 12, topics=[{"name": TOPIC}], allow_auto_topic_creation=True)
        assert files.is_reached.wait(PATIENCE_S)
        files.may_go_on.set()
        topics = [client.receive().topics[0] for client in clients]
        assert {(topic.error_code, len(topic.partitions)) for topic in topics} == {(ErrorCode.NONE, 2)}
        assert len({topic.topic_id for topic in topics}) == 1
        for client in clients:
            client.close()


def test_all_who_look_for_a_coordinator_wait_for_its_topic(tmp_path: Path) -> None:
    files = Gate("__consumer_offsets-7")
    with running(tmp_path, files=files) as broker, broker.client() as first, broker.client() as second:
        first.send(FIND_COORDINATOR, 2, key="g")
        assert files.is_reached.wait(PATIENCE_S)
        second.send(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g", "h"])
        files.may_go_on.set()
        assert first.receive().error_code == ErrorCode.NONE
        assert [found.error_code for found in second.receive().coordinators] == [ErrorCode.NONE] * 2


def test_whoever_is_in_a_hurry_makes_the_rest_at_once(tmp_path: Path) -> None:
    """As `kohort.testing` is, while a client has just asked for the same."""
    files = Gate("__consumer_offsets-7")
    with running(tmp_path, files=files) as broker, broker.client() as client:
        client.send(FIND_COORDINATOR, 2, key="g")
        assert files.is_reached.wait(PATIENCE_S)
        files.may_go_on.set()
        broker.on_loop(broker.broker.ensure_offsets_topic)
        with broker.client() as other:
            assert told(other, "__consumer_offsets") == (ErrorCode.NONE, 50)
        assert client.receive().error_code == ErrorCode.NONE
        assert len(broker.broker.groups.manager.partitions) == 50


def test_of_a_topic_that_does_not_fit_nothing_stays(tmp_path: Path) -> None:
    files = Gate(f"{TOPIC}-3")
    with running(tmp_path, files=files) as broker, broker.client() as client:
        files.is_full = True
        files.may_go_on.set()
        refused = client.ask(CREATE_TOPICS, 4, **new_topic()).topics[0]
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert directories(tmp_path) == 0
        assert told(client) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        files.is_full = False
        assert client.ask(CREATE_TOPICS, 4, **new_topic()).topics[0].error_code == ErrorCode.NONE
        assert produce(client, batch("a")).base_offset == 0


def test_a_coordinator_without_room_for_its_topic_is_not_available(tmp_path: Path) -> None:
    files = Gate("__consumer_offsets-3")
    files.is_full = True
    files.may_go_on.set()
    with running(tmp_path, files=files) as broker, broker.client() as client:
        refused = client.ask(FIND_COORDINATOR, 2, key="g")
        assert (refused.error_code, refused.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        added = client.ask(ADD_OFFSETS_TO_TXN, 3, transactional_id="t", producer_id=1, producer_epoch=0, group_id="g")
        assert added.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        files.is_full = False
        assert client.ask(FIND_COORDINATOR, 2, key="g").error_code == ErrorCode.NONE


class TestGrowth:
    def test_what_is_there_already_is_used_while_more_is_made(self, tmp_path: Path) -> None:
        files = Gate(f"{TOPIC}-3")
        with running(tmp_path, files=files) as broker, broker.client() as client, broker.client() as other:
            make_topic(broker, partitions=2)
            client.send(CREATE_PARTITIONS, 1, **grow(5))
            assert files.is_reached.wait(PATIENCE_S)
            assert produce(other, batch("a")).error_code == ErrorCode.NONE
            change_setting(other)
            files.may_go_on.set()
            assert client.receive().results[0].error_code == ErrorCode.NONE
            assert told(other) == (ErrorCode.NONE, 5)
            assert broker.broker.topics.get(TOPIC).settings == {"retention.ms": "5000"}

    def test_who_wants_still_more_waits(self, tmp_path: Path) -> None:
        files = Gate(f"{TOPIC}-3")
        with running(tmp_path, files=files) as broker, broker.client() as client, broker.client() as other:
            make_topic(broker, partitions=2)
            client.send(CREATE_PARTITIONS, 1, **grow(4))
            assert files.is_reached.wait(PATIENCE_S)
            other.send(CREATE_PARTITIONS, 1, **grow(6))
            files.may_go_on.set()
            assert client.receive().results[0].error_code == ErrorCode.NONE
            assert other.receive().results[0].error_code == ErrorCode.NONE
            assert told(other) == (ErrorCode.NONE, 6)

    def test_a_topic_that_is_deleted_grows_no_more(self, tmp_path: Path) -> None:
        files = Gate(f"{TOPIC}-3")
        with running(tmp_path, files=files) as broker, broker.client() as client, broker.client() as other:
            make_topic(broker, partitions=2)
            client.send(CREATE_PARTITIONS, 1, **grow(40))
            assert files.is_reached.wait(PATIENCE_S)
            files.may_go_on.set()
            gone = other.ask(DELETE_TOPICS, 5, topic_names=[TOPIC]).responses[0]
            assert gone.error_code == ErrorCode.NONE
            answer = client.receive().results[0].error_code
            assert answer in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE)  # or it was ready just before
            assert directories(tmp_path) == 0
        with running(tmp_path) as broker:
            assert broker.broker.topics.get(TOPIC) is None


def change_setting(client: WireClient) -> None:
    wanted = {"name": "retention.ms", "config_operation": 0, "value": "5000"}
    resource = {"resource_type": 2, "resource_name": TOPIC, "configs": [wanted]}
    (answer,) = client.ask(INCREMENTAL, 0, resources=[resource]).responses
    assert answer.error_code == ErrorCode.NONE


def test_a_topic_that_is_deleted_while_it_grows_is_not_finished(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        make_topic(broker, partitions=2)
        topics = broker.broker.topics

        def delete_meanwhile() -> None:
            new = topics.begin_growth(topics.get(TOPIC), 4)
            topics.delete(topics.get(TOPIC))
            with pytest.raises(MakingStopped):
                new.make()
            with pytest.raises(MakingStopped):
                topics.finish(new)

        broker.on_loop(delete_meanwhile)
        assert directories(tmp_path) == 0


def test_a_topic_that_was_half_made_when_the_broker_stopped_is_whole_at_the_next_start(tmp_path: Path) -> None:
    files = Gate(f"{TOPIC}-3")
    with running(tmp_path, files=files) as broker, broker.client() as client:
        client.send(CREATE_TOPICS, 4, **new_topic())
        assert files.is_reached.wait(PATIENCE_S)
        files.may_go_on.set()
    with running(tmp_path) as broker, broker.client() as client:
        assert told(client) == (ErrorCode.NONE, 6)


def test_the_loop_does_not_wait_for_the_partitions_of_a_large_topic(tmp_path: Path) -> None:
    """Never 100 ms longer than beside a thread that works for nothing; the best of five counts on a busy machine.

    It is a few milliseconds where nothing else runs; made on the loop, so many partitions would hold it far longer.
    """
    with running(tmp_path) as broker, broker.client() as client:
        with work_for_nothing():
            lateness = Lateness(broker)
            for _ in range(1_000):
                client.ask(API_VERSIONS, 0)
            allowed = 0.1 + lateness.end()
        found = []
        for number in range(5):
            lateness = Lateness(broker)
            answer = client.ask(CREATE_TOPICS, 4, **new_topic(f"large-{number}", 300))
            assert answer.topics[0].error_code == ErrorCode.NONE
            found.append(lateness.end())
            if found[-1] < allowed:
                break
        assert min(found) < allowed, (found, allowed)
