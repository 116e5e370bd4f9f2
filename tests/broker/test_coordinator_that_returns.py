"""A coordinator that loads its partition again in the same process, while the end of it is not on the disk yet."""

from typing import Any

from kohort.broker.broker import Broker
from kohort.errors import ErrorCode, StorageFailed
from kohort.group.placement import partition_for
from tests.broker.data_plane import TOPIC
from tests.broker.running import Running
from tests.broker.slow_disk import OFFSET_COMMIT, OFFSET_FETCH, commit, error_of, slow_broker, wait_for
from tests.broker.wire_client import WireClient


def move_away_and_back(broker: Broker) -> None:
    partition = partition_for("g", broker.offsets_partitions)
    broker.groups.on_resignation(partition, 1)
    broker.groups.on_election(partition, 2)


def fetched(client: WireClient) -> Any:
    return client.ask(OFFSET_FETCH, 5, group_id="g", topics=[{"name": TOPIC, "partition_indexes": [0]}])


def fetched_when_loaded(client: WireClient) -> Any:
    while (answer := fetched(client)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass
    return answer


def commit_without_a_sync(broker: Running, client: WireClient) -> None:
    client.send(OFFSET_COMMIT, 6, **commit(7))
    wait_for(broker, 2)


def test_finding_nobody_is_told_what_a_power_cut_could_take_away() -> None:
    with slow_broker() as (broker, files, client), broker.client() as other:
        files.may_sync.clear()
        commit_without_a_sync(broker, client)
        broker.on_loop(lambda: move_away_and_back(broker.broker))
        assert fetched(other).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        files.may_sync.set()
        assert error_of(client.receive()) in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
        assert fetched_when_loaded(other).topics[0].partitions[0].committed_offset == 7


def test_what_cannot_be_made_safe_is_not_loaded() -> None:
    with slow_broker() as (broker, files, client), broker.client() as other:
        files.may_sync.clear()
        commit_without_a_sync(broker, client)
        broker.on_loop(lambda: move_away_and_back(broker.broker))
        files.is_broken = True
        files.may_sync.set()
        assert error_of(client.receive()) == ErrorCode.NOT_COORDINATOR
        assert fetched_when_loaded(other).error_code == ErrorCode.NOT_COORDINATOR
        [failure] = broker.on_loop(broker.broker.groups.manager.failed_loads.values)
        assert isinstance(failure, StorageFailed)
