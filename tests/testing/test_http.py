"""The HTTP port of a broker in tests."""

import json
import urllib.error
import urllib.request

import pytest

from kohort.testing import Broker, NotPossible
from tests.testing.members import GROUP, TOPIC, client, commit

both_ways = pytest.mark.parametrize("subprocess", [False, True], ids=["thread", "process"])


def get(broker: Broker, path: str) -> bytes:
    with urllib.request.urlopen(f"{broker.http_url}{path}", timeout=30) as answer:
        return bytes(answer.read())


@both_ways
def test_a_broker_tells_how_it_is(subprocess: bool) -> None:
    with Broker(http=True, subprocess=subprocess) as broker:
        assert json.loads(get(broker, "/healthz"))["status"] == "ok"
        assert b"kafka_network_requestmetrics" in get(broker, "/metrics").lower()
        assert b"<html" in get(broker, "/")


def test_groups_are_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Broker(tmp_path_factory.mktemp("data"), http=True) as broker:
        broker.create_topic(TOPIC)
        with client(broker) as asking:
            assert commit(asking, 7) == 0
        assert GROUP in json.dumps(json.loads(get(broker, "/groups.json")))


@both_ways
@pytest.mark.parametrize("cleanly", [True, False], ids=["restarted", "killed"])
def test_the_port_stays_the_same_through_restarts(subprocess: bool, cleanly: bool) -> None:
    with Broker(http=True, subprocess=subprocess) as broker:
        url = broker.http_url
        assert broker.http_port != broker.port
        if not cleanly:
            broker.kill()
        broker.restart()
        assert broker.http_url == url
        assert json.loads(get(broker, "/healthz"))["status"] == "ok"
    with pytest.raises(urllib.error.URLError):
        get(broker, "/healthz")


def test_a_broker_without_such_a_port_has_none() -> None:
    with Broker() as broker, pytest.raises(NotPossible, match="http=True"):
        broker.http_url  # noqa: B018 - asking is enough


def test_before_the_start_there_is_no_port() -> None:
    with pytest.raises(NotPossible, match="not started"):
        Broker(http=True).http_port  # noqa: B018 - asking is enough


def test_a_port_that_is_taken_is_told_and_leaves_nothing_behind() -> None:
    with Broker(http=True) as broker:
        other = Broker(http=broker.http_port)
        with pytest.raises(OSError, match="address already in use"):
            other.start()
        assert not other.is_running
