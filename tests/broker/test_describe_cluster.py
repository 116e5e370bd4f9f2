"""DescribeCluster and DescribeLogDirs over a socket, in every version."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

CLUSTER, LOG_DIRS, METADATA = 60, 35, 3
NOT_ASKED, EVERYTHING = -(1 << 31), 8096


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings={"num.partitions": "2"}) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


class TestTheCluster:
    @pytest.mark.parametrize("version", range(3))
    def test_one_broker_is_all_of_it(self, broker: Running, client: WireClient, version: int):
        answer = client.ask(CLUSTER, version)

        assert (answer.error_code, answer.cluster_id, answer.controller_id) == (ErrorCode.NONE, "kohort", 0)
        assert answer.cluster_authorized_operations == NOT_ASKED
        (node,) = answer.brokers
        assert (node.broker_id, node.host, node.port, node.rack) == (0, "127.0.0.1", broker.port, None)

    @pytest.mark.parametrize("version", range(3))
    def test_everybody_may_do_everything(self, client: WireClient, version: int):
        answer = client.ask(CLUSTER, version, include_cluster_authorized_operations=True)

        assert answer.cluster_authorized_operations == EVERYTHING

    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize(
        ("kind", "error"),
        [
            (1, ErrorCode.NONE),
            (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
            (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
            (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        ],
    )
    def test_controllers_are_not_found_here(self, client: WireClient, version: int, kind: int, error: ErrorCode):
        answer = client.ask(CLUSTER, version, endpoint_type=kind)

        assert answer.error_code == error
        assert len(answer.brokers) == (error is ErrorCode.NONE)


class TestLogDirectories:
    @pytest.mark.parametrize("version", range(1, 6))
    def test_all_partitions_are_told_to_those_who_name_none(self, client: WireClient, version: int):
        client.ask(METADATA, 4, topics=[{"name": "orders"}], allow_auto_topic_creation=True)

        answer = client.ask(LOG_DIRS, version, topics=None)

        (place,) = answer.results
        assert (place.error_code, place.log_dir) == (ErrorCode.NONE, "/memory")
        told = {topic.name: [partition.partition_index for partition in topic.partitions] for topic in place.topics}
        assert told["orders"] == [0, 1]
        if version >= 4:
            assert (place.total_bytes, place.usable_bytes) == (-1, -1)

    @pytest.mark.parametrize("version", range(1, 6))
    def test_only_wanted_partitions_are_told(self, client: WireClient, version: int):
        client.ask(METADATA, 4, topics=[{"name": "orders"}], allow_auto_topic_creation=True)
        wanted = [{"topic": "orders", "partitions": [1, 7]}, {"topic": "unknown", "partitions": [0]}]

        (place,) = client.ask(LOG_DIRS, version, topics=wanted).results

        (topic,) = place.topics
        assert (topic.name, [p.partition_index for p in topic.partitions]) == ("orders", [1])

    def test_sizes_are_those_of_the_files(self, tmp_path: Path):
        with running(tmp_path, {"offsets.topic.num.partitions": "1"}) as broker, broker.client() as client:
            client.ask(METADATA, 4, topics=[{"name": "orders"}], allow_auto_topic_creation=True)
            client.ask(10, 2, key="g")
            client.ask(
                8,
                7,
                group_id="g",
                generation_id_or_member_epoch=-1,
                topics=[{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
            )

            (place,) = client.ask(LOG_DIRS, 2, topics=None).results

            sizes = {topic.name: topic.partitions[0].partition_size for topic in place.topics}
            assert sizes == {
                name: (tmp_path / f"{name}-0" / f"{0:020d}.log").stat().st_size
                for name in ("orders", "__consumer_offsets")
            }
            assert sizes["__consumer_offsets"] > 0
            assert place.log_dir == str(tmp_path)

    @pytest.mark.parametrize("version", [4, 5])
    def test_the_disk_is_as_large_as_the_system_says(self, tmp_path: Path, version: int):
        with running(tmp_path) as broker, broker.client() as client:
            before = shutil.disk_usage(tmp_path)
            (place,) = client.ask(LOG_DIRS, version, topics=[]).results
            after = shutil.disk_usage(tmp_path)

            assert place.total_bytes == before.total
            room = 1 << 30  # others write meanwhile
            assert min(before.free, after.free) - room <= place.usable_bytes <= max(before.free, after.free) + room
