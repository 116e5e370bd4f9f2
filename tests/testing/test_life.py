"""A broker from its start to its end, and to its next start."""

import os
import signal
import socket
from pathlib import Path

import pytest

from kohort.broker.settings import BadSetting
from kohort.testing import Broker, BrokerFailed, NotPossible
from tests.broker.wire_client import Closed
from tests.testing.members import GROUP, TOPIC, client, commit, committed, join, member

METADATA = 3

both_ways = pytest.mark.parametrize("subprocess", [False, True], ids=["thread", "process"])


def make_topic(broker: Broker) -> None:
    with client(broker) as asking:
        (topic,) = asking.ask(METADATA, 4, topics=[{"name": TOPIC}], allow_auto_topic_creation=True).topics
        assert topic.error_code == 0


@both_ways
def test_a_broker_serves_from_the_start_of_its_block_to_the_end(subprocess: bool) -> None:
    with Broker(subprocess=subprocess) as broker:
        host, port = broker.bootstrap_servers.split(":")
        assert (host, int(port)) == (broker.host, broker.port)
        with client(broker) as asking:
            topics = asking.ask(METADATA, 4, topics=None, allow_auto_topic_creation=False).topics
            assert [(topic.name, len(topic.partitions)) for topic in topics] == [("__consumer_offsets", 50)]
    assert not broker.is_running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((broker.host, broker.port), timeout=30)


def test_the_offsets_topic_need_not_be_there() -> None:
    with Broker(create_offsets_topic=False) as broker, client(broker) as asking:
        assert asking.ask(METADATA, 4, topics=None, allow_auto_topic_creation=False).topics == ()


@both_ways
@pytest.mark.parametrize("on_disk", [False, True], ids=["by-default", "directory"])
@pytest.mark.parametrize("cleanly", [True, False], ids=["restarted", "killed"])
def test_what_was_there_is_there_after_a_restart(
    tmp_path: Path, subprocess: bool, on_disk: bool, cleanly: bool
) -> None:
    with Broker(tmp_path / "data" if on_disk else None, subprocess=subprocess) as broker:
        make_topic(broker)
        with client(broker) as asking:
            assert commit(asking, 7) == 0
        address = broker.bootstrap_servers
        if not cleanly:
            broker.kill()
            assert not broker.is_running
        broker.restart()
        assert broker.bootstrap_servers == address
        with client(broker) as asking:
            assert committed(asking) == 7


def test_a_directory_is_marked_as_clean_by_a_stop_and_not_by_a_kill(tmp_path: Path) -> None:
    marker = tmp_path / ".kafka_cleanshutdown"
    with Broker(tmp_path) as broker:
        broker.kill()
        assert not marker.exists()
        broker.start()
        broker.stop()
        assert marker.exists()


@both_ways
def test_another_broker_goes_on_with_a_directory(tmp_path: Path, subprocess: bool) -> None:
    with Broker(tmp_path) as broker, client(broker) as asking:
        broker.create_topic(TOPIC)
        assert commit(asking, 3) == 0
    with Broker(tmp_path, subprocess=subprocess) as broker, client(broker) as asking:
        assert committed(asking) == 3


def test_a_kill_answers_nobody_and_a_stop_answers_who_waits() -> None:
    slow = {"group.initial.rebalance.delay.ms": 60_000}
    for ending in (Broker.kill, Broker.stop):
        with Broker(settings=slow) as broker, client(broker) as asking:
            request = {
                "group_id": GROUP,
                "session_timeout": 10_000,
                "rebalance_timeout": 10_000,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": b""}],
            }
            asking.send(11, 2, **request)
            broker.wait_for_group(GROUP, state="PreparingRebalance", members=1)
            ending(broker)
            if ending is Broker.kill:
                with pytest.raises(Closed):
                    asking.receive()
            else:
                assert asking.receive().error_code == 15


@both_ways
def test_settings_carry_kafkas_names_and_may_be_numbers_and_truths(subprocess: bool) -> None:
    settings = {"num.partitions": 3, "auto.create.topics.enable": True, "offsets.topic.num.partitions": "2"}
    with Broker(settings=settings, subprocess=subprocess) as broker, client(broker) as asking:
        make_topic(broker)
        topics = asking.ask(METADATA, 4, topics=None, allow_auto_topic_creation=False).topics
        assert {topic.name: len(topic.partitions) for topic in topics} == {"__consumer_offsets": 2, TOPIC: 3}


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"no\.such\.setting"):
        Broker(settings={"no.such.setting": 1}).start()
    with pytest.raises(BrokerFailed, match=r"kohort: there is no setting no\.such\.setting"):
        Broker(settings={"no.such.setting": 1}, subprocess=True).start()


def test_a_port_can_be_asked_for_and_is_refused_if_it_is_taken() -> None:
    with Broker() as first:
        with pytest.raises(OSError, match="in use"):
            Broker(port=first.port).start()
        with pytest.raises(BrokerFailed, match="in use"):
            Broker(port=first.port, subprocess=True).start()
        port = first.port
    with Broker(port=port) as second:
        assert second.port == port


def test_a_process_that_dies_by_itself_is_told_of() -> None:
    broker = Broker(subprocess=True)
    broker.start()
    process = broker._process
    assert process is not None
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(BrokerFailed, match="ended with -9"):
        broker.__exit__(None, None, None)


def break_down(broker: Broker) -> None:
    """A condition that fails, in the middle of a request."""

    def breaks(_: object) -> bool:
        raise ZeroDivisionError

    broker.drop_next("Metadata", when=breaks)
    with client(broker) as asking, pytest.raises(Closed):
        asking.ask(METADATA, 4, topics=None, allow_auto_topic_creation=False)


def test_what_went_wrong_in_the_broker_is_told_at_its_end() -> None:
    broker = Broker()
    broker.start()
    break_down(broker)
    with pytest.raises(BrokerFailed, match="ZeroDivisionError"):
        broker.stop()


def test_what_went_wrong_in_the_broker_does_not_hide_what_went_wrong_in_the_test() -> None:
    def story() -> None:
        with Broker() as broker:
            break_down(broker)
            raise LookupError

    with pytest.raises(LookupError) as raised:
        story()
    assert any("ZeroDivisionError" in note for note in raised.value.__notes__)


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for use in (broker.groups, broker.compact, broker.expire, broker.kill, lambda: broker.port):
        with pytest.raises(NotPossible):
            use()
    with broker, pytest.raises(NotPossible, match="already"):
        broker.start()
    with pytest.raises(NotPossible):
        Broker(subprocess=True, clock="virtual")
    with pytest.raises(ValueError, match="sundial"):
        Broker(clock="sundial")  # type: ignore[arg-type] # on purpose
    process = Broker(subprocess=True)
    for use in (process.groups, process.compact, process.expire, lambda: process.drop_next("Fetch")):
        with pytest.raises(NotPossible, match="own process"):
            use()


def test_groups_can_be_looked_at() -> None:
    with Broker() as broker, client(broker, "an-app") as asking:
        broker.create_topic(TOPIC, 2, {"retention.ms": 1_000})
        assert broker.groups() == {}
        joined = member(asking)
        assert commit(asking, 5, "simple") == 0
        groups = broker.groups()
        assert groups.keys() == {GROUP, "simple"}
        group = groups[GROUP]
        assert (group.state, group.generation, group.protocol_type, group.protocol) == (
            "Stable",
            1,
            "consumer",
            "range",
        )
        assert group.leader == joined.member_id
        (one,) = group.members
        assert (one.client_id, one.partitions) == ("an-app", {(TOPIC, 0)})
        assert {partition: found.offset for partition, found in groups["simple"].offsets.items()} == {(TOPIC, 0): 5}


def test_waiting_for_what_does_not_happen_ends() -> None:
    with Broker() as broker, client(broker) as asking:
        join(asking)
        assert broker.wait_for_group(GROUP, state="CompletingRebalance", members=1).generation == 1
        with pytest.raises(TimeoutError):
            broker.wait_for_group(GROUP, timeout_s=0.01)
        with pytest.raises(KeyError):
            broker.wait_until(lambda groups: groups["no such group"].generation == 1)
