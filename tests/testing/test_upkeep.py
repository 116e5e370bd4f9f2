"""What a broker does now and then, done now."""

from pathlib import Path

import pytest

from kohort.testing import Broker
from tests.broker.data_plane import LIST_OFFSETS, batch, produce
from tests.testing.members import GROUP, TOPIC, client, commit, committed

EARLIEST = -2


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "directory"])
def test_compaction_makes_the_offsets_topic_small_and_changes_no_offset(tmp_path: Path, on_disk: bool) -> None:
    with Broker(tmp_path if on_disk else None) as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        for offset in range(50):
            assert commit(asking, offset) == 0
        assert broker.compact("another topic") == 0
        assert broker.compact() > 1_000
        assert broker.compact() == 0
        assert committed(asking) == 49
        broker.restart()
        with client(broker) as again:
            assert committed(again) == 49


def test_what_has_not_expired_stays() -> None:
    with Broker(clock="virtual", settings={"offsets.retention.minutes": 10}) as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        assert commit(asking, 1) == 0
        broker.clock.advance(9 * 60_000)
        broker.expire()
        assert broker.groups().keys() == {GROUP}
        broker.clock.jump(60_000)
        assert broker.groups().keys() == {GROUP}
        broker.expire()
        assert broker.groups() == {}


def test_records_beyond_their_retention_go() -> None:
    with Broker(clock="virtual") as broker, client(broker) as asking:
        broker.create_topic(TOPIC, settings={"retention.ms": 60_000})
        assert produce(asking, batch("old")).error_code == 0
        broker.clock.advance(120_000)
        (topic,) = asking.ask(
            LIST_OFFSETS,
            2,
            replica_id=-1,
            isolation_level=0,
            topics=[{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": EARLIEST}]}],
        ).topics
        assert topic.partitions[0].offset == 1
