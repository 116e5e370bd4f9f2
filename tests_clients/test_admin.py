"""Topics and groups, administered."""

import pytest

from tests_clients.client import Refused
from tests_clients.kinds import Can, with_clients
from tests_clients.scene import Scene


@with_clients()
def test_topics_are_administered(scene: Scene) -> None:
    call = scene.client.call
    assert call("cluster") == {"brokers": [scene.broker.address], "controller": True}
    scene.create_topic("orders", 2, retention_ms="3600000")
    with pytest.raises(Refused):
        call("create_topic", topic="returns", partitions=1, settings={"no.such.setting": "1"})
    assert call("topics") == {"orders": 2}
    call("create_partitions", topic="orders", partitions=5)
    with pytest.raises(Refused):
        call("create_partitions", topic="orders", partitions=3)
    assert call("topics") == {"orders": 5}

    assert call("settings", topic="orders")["retention.ms"] == "3600000"
    call("alter_settings", topic="orders", settings={"retention.ms": "7200000", "cleanup.policy": "compact"})
    told = call("settings", topic="orders")
    assert (told["retention.ms"], told["cleanup.policy"]) == ("7200000", "compact")
    call("alter_settings", topic="orders", settings={"retention.ms": "7200000", "cleanup.policy": "delete"})
    with pytest.raises(Refused):
        call("alter_settings", topic="orders", settings={"retention.ms": "a while"})

    scene.produce("orders", [str(number) for number in range(10)], 3)
    assert call("watermarks", topic="orders", partition=3) == [0, 10]
    call("delete_records", topic="orders", partition=3, offset=4)
    assert call("watermarks", topic="orders", partition=3) == [4, 10]
    assert scene.read_all("orders", 5) == [str(number) for number in range(4, 10)]
    with pytest.raises(Refused):
        call("delete_records", topic="orders", partition=3, offset=1000)

    scene.broker.restart()
    assert call("watermarks", topic="orders", partition=3) == [4, 11]
    assert call("settings", topic="orders")["retention.ms"] == "7200000"
    call("delete_topic", topic="orders")
    assert call("topics") == {}


@with_clients()
def test_groups_are_listed_described_reset_and_deleted(scene: Scene) -> None:
    call = scene.client.call
    values = [str(number) for number in range(10)]
    scene.create_topic("orders")
    scene.produce("orders", values)
    member = scene.open("billing", "orders")
    member.values(10)
    member.commit()
    assert call("groups") == ["billing"]
    assert call("group", group="billing") == {"state": "Stable", "members": 1}
    for refused in ("delete_group", "set_offset"):
        with pytest.raises(Refused):
            call(refused, group="billing", topic="orders", partition=0, offset=5)
    member.close()

    assert call("group", group="billing") == {"state": "Empty", "members": 0}
    call("set_offset", group="billing", topic="orders", partition=0, offset=6)
    assert scene.offsets("billing")["orders", 0][0] == 6
    again = scene.open("billing", "orders")
    assert again.values(4) == values[6:]
    again.close()

    call("delete_group", group="billing")
    assert call("groups") == []
    with pytest.raises(Refused):
        call("delete_group", group="billing")
    scene.broker.restart()
    assert call("groups") == []


@with_clients(Can.DELETE_OFFSETS)
def test_single_offsets_are_deleted(scene: Scene) -> None:
    call = scene.client.call
    for topic in ("orders", "returns"):
        scene.create_topic(topic)
        call("set_offset", group="g", topic=topic, partition=0, offset=5)
    call("delete_offset", group="g", topic="orders", partition=0)
    assert set(scene.offsets("g")) == {("returns", 0)}
    member = scene.open("g", "returns")
    scene.settle([member], {"returns": 1})
    with pytest.raises(Refused):
        call("delete_offset", group="g", topic="returns", partition=0)
