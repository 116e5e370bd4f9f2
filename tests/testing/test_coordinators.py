"""Coordinators that move away and come back."""

import pytest

from kohort.testing import Broker, NotPossible
from tests.testing.members import FIND_COORDINATOR, GROUP, TOPIC, client, commit, committed, heartbeat, member

INIT_PRODUCER_ID = 22


def test_a_coordinator_that_is_away_says_so_and_knows_everything_when_it_is_back() -> None:
    with Broker() as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        joined = member(asking)
        assert commit(asking, 4, "simple") == 0
        away, also_away = broker.move_coordinator(GROUP), broker.move_coordinator("simple")
        assert broker.groups() == {}
        assert heartbeat(asking, joined) == 16
        assert commit(asking, 5, "simple") == 16
        away.back()
        also_away.back()
        assert heartbeat(asking, joined) == 0
        assert committed(asking, "simple") == 4


def test_other_partitions_are_not_touched() -> None:
    with Broker() as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        with broker.move_coordinator(GROUP) as away:
            other = next(f"group-{number}" for number in range(100) if commit(asking, 1, f"group-{number}") == 0)
            assert broker.groups()[other].coordinator_partition != away.partition


def test_a_partition_can_be_moved_by_its_number_again_and_again() -> None:
    with Broker(settings={"offsets.topic.num.partitions": 1}) as broker, client(broker) as asking:
        joined = member(asking)
        for _ in range(3):
            with broker.move_coordinator(0):
                assert heartbeat(asking, joined) == 16
            assert heartbeat(asking, joined) == 0
        with pytest.raises(NotPossible, match="has 1 partitions"):
            broker.move_coordinator(1)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_whoever_looks_for_a_coordinator_that_is_away_finds_none(version: int) -> None:
    def found(group: str) -> int:
        if version < 4:
            return int(asking.ask(FIND_COORDINATOR, version, key=group).error_code)
        return int(asking.ask(FIND_COORDINATOR, version, coordinator_keys=[group]).coordinators[0].error_code)

    with Broker() as broker, client(broker) as asking:
        with broker.move_coordinator(GROUP):
            assert found(GROUP) == 15
            assert found("another group") == 0
        assert found(GROUP) == 0


def test_a_member_that_waits_is_told_when_its_coordinator_goes() -> None:
    slow = {"group.initial.rebalance.delay.ms": 60_000}
    with Broker(settings=slow, clock="virtual") as broker, client(broker) as asking:
        request = {"session_timeout": 10_000, "rebalance_timeout": 10_000, "protocol_type": "consumer"}
        asking.send(11, 2, group_id=GROUP, protocols=[{"name": "range", "metadata": b""}], **request)
        broker.wait_for_group(GROUP, state="PreparingRebalance", members=1)
        with broker.move_coordinator(GROUP):
            assert asking.receive().error_code == 16


def test_a_coordinator_is_back_after_a_restart_anyway() -> None:
    with Broker() as broker:
        away = broker.move_coordinator(GROUP)
        broker.restart()
        with client(broker) as asking:
            assert asking.ask(FIND_COORDINATOR, 0, key=GROUP).error_code == 0
            joined = member(asking)
            away.back()
            assert heartbeat(asking, joined) == 0


def test_the_coordinator_of_a_transaction_can_be_moved() -> None:
    with Broker() as broker, client(broker) as asking:

        def init() -> int:
            request = {"transactional_id": "tx", "transaction_timeout": 60_000}
            return int(asking.ask(INIT_PRODUCER_ID, 1, **request).error_code)

        with broker.move_coordinator(transactional_id="tx"):
            assert init() == 16
            assert asking.ask(FIND_COORDINATOR, 1, key="tx", key_type=1).error_code == 15
            assert asking.ask(FIND_COORDINATOR, 1, key="tx", key_type=0).error_code == 0
        assert init() == 0
        for nonsense in ({}, {"group": "a", "transactional_id": "b"}):
            with pytest.raises(ValueError, match="group or of a transactional id"):
                broker.move_coordinator(**nonsense)
