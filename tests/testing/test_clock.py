"""Time that passes when it is told to."""

from pathlib import Path

import pytest

from kohort.testing import Broker, NotPossible
from tests.testing.members import GROUP, TOPIC, client, commit, committed, heartbeat, member

DAY_MS = 86_400_000
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 22, 24, 26


def test_a_group_forms_while_time_stands_still() -> None:
    with Broker(clock="virtual") as broker, client(broker) as asking:
        joined = member(asking)
        assert heartbeat(asking, joined) == 0
        assert broker.groups()[GROUP].state == "Stable"


def test_a_session_runs_out_at_once_and_not_before() -> None:
    with Broker(clock="virtual") as broker, client(broker) as asking:
        joined = member(asking, session_timeout_ms=10_000)
        broker.clock.advance(9_000)
        assert heartbeat(asking, joined) == 0
        broker.clock.advance(9_000)
        assert len(broker.groups()[GROUP].members) == 1
        broker.clock.advance(1_000)
        group = broker.groups()[GROUP]
        assert (group.state, group.members) == ("Empty", ())
        assert heartbeat(asking, joined) == 25


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "directory"])
def test_offsets_expire_after_a_week(tmp_path: Path, on_disk: bool) -> None:
    with Broker(tmp_path if on_disk else None, clock="virtual") as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        assert commit(asking, 5) == 0
        broker.clock.advance(6 * DAY_MS)
        assert committed(asking) == 5
        broker.clock.advance(DAY_MS + 600_000)
        assert broker.groups() == {}
        assert committed(asking) == -1
        broker.restart()
        assert broker.groups() == {}


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "directory"])
def test_a_transaction_that_takes_too_long_is_aborted(tmp_path: Path, on_disk: bool) -> None:
    with Broker(tmp_path if on_disk else None, clock="virtual") as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        asking.ask(10, 1, key="tx", key_type=1)
        known = asking.ask(INIT_PRODUCER_ID, 1, transactional_id="tx", transaction_timeout=60_000)
        asking.ask(
            ADD_PARTITIONS_TO_TXN,
            1,
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=known.producer_id,
            v3_and_below_producer_epoch=known.producer_epoch,
            v3_and_below_topics=[{"name": TOPIC, "partitions": [0]}],
        )
        broker.clock.advance(75_000)
        end = {"producer_id": known.producer_id, "producer_epoch": known.producer_epoch, "committed": True}
        assert asking.ask(END_TXN, 1, transactional_id="tx", **end).error_code in (47, 90)


def test_time_goes_on_where_it_was_after_a_restart() -> None:
    with Broker(clock="virtual") as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        assert commit(asking, 5) == 0
        before = broker.clock.now_ms()
        broker.stop()
        broker.clock.advance(8 * DAY_MS)
        broker.start()
        assert broker.clock.now_ms() >= before + 8 * DAY_MS
        assert broker.groups()[GROUP].offsets[TOPIC, 0].offset == 5
        broker.expire()
        assert broker.groups() == {}


def test_the_time_of_day_can_be_set_without_ending_a_session() -> None:
    with Broker(clock="virtual") as broker, client(broker) as asking:
        joined = member(asking)
        broker.clock.jump(DAY_MS)
        assert heartbeat(asking, joined) == 0


def test_the_real_clock_cannot_be_moved() -> None:
    broker = Broker()
    assert not broker.clock.is_virtual
    with pytest.raises(NotPossible, match="virtual"):
        broker.clock.advance(1)
    with pytest.raises(ValueError, match="back"):
        Broker(clock="virtual").clock.advance(-1)
