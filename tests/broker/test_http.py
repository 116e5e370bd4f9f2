"""The HTTP port: health, and what browsers and others may do with it."""

import errno
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from kohort.group.placement import partition_for
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.files import RealFiles
from tests.broker.data_plane import TOPIC, batch, make_topic, produce
from tests.broker.group_clients import commit, find_coordinator
from tests.broker.http_port import http_of
from tests.broker.running import running

GROUP = "readers"
PATIENCE_S = 30.0


def test_a_broker_that_serves_is_healthy() -> None:
    with running() as broker, http_of(broker) as http:
        answer = http.get("/healthz")
        assert (answer.status, answer.json) == (200, {"status": "ok", "cluster_id": "kohort", "broker_id": 0})
        assert http.metric("kohort_healthy") == 1


def test_a_coordinator_partition_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    place = f"__consumer_offsets-{partition_for(GROUP, 50)}"
    with running(tmp_path) as broker, broker.client() as client:
        make_topic(broker)
        find_coordinator(client, GROUP)
        assert commit(client, GROUP, TOPIC, {0: 0}) == 0
    segment = tmp_path / place / f"{0:020}.log"
    damaged = bytearray(segment.read_bytes())
    damaged[-1] ^= 1
    segment.write_bytes(damaged)
    with running(tmp_path) as broker, http_of(broker) as http:
        answer = http.get("/healthz")
        assert (answer.status, answer.json["status"]) == (503, "failed")
        (reason,) = answer.json["reasons"]
        assert reason.startswith(f"{place} could not be loaded: ")
        assert http.get("/groups.json").json["problems"] == [reason]
        assert http.metric("kohort_healthy") == 0


def test_a_coordinator_partition_that_is_missing_is_told(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        find_coordinator(client, GROUP)
    partition = tmp_path / "__consumer_offsets-7"
    partition.rename(tmp_path / "elsewhere")
    with running(tmp_path) as broker, http_of(broker) as http:
        answer = http.get("/healthz")
        assert answer.status == 503
        assert answer.json["reasons"] == ["__consumer_offsets-7 could not be loaded: its directory is not there"]


def test_a_partition_of_data_that_is_missing_is_told_while_the_others_are_served(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        make_topic(broker, TOPIC, 2)
    (tmp_path / f"{TOPIC}-1").rename(tmp_path / "elsewhere")
    with running(tmp_path) as broker, http_of(broker) as http:
        answer = http.get("/healthz")
        assert answer.status == 200
        assert answer.json["offline_partitions"] == {f"{TOPIC}-1": "its directory is not there"}
        assert http.metric("kafka_server_replicamanager_offlinereplicacount") == 1


def test_a_disk_that_failed_is_told(tmp_path: Path) -> None:
    files = FaultyFiles(RealFiles())
    with running(tmp_path, files=files) as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        assert produce(client, batch("a")).error_code == 0
        broker.on_loop(lambda: setattr(files, "_fault", Fault(call=files.calls, number=errno.EIO)))
        assert produce(client, batch("b")).error_code != 0
        answer = http.get("/healthz")
        assert answer.status == 503
        assert any("the disk failed" in reason for reason in answer.json["reasons"])


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/groups.json", "/nothing"])
def test_no_other_site_may_read_or_embed_anything(path: str) -> None:
    with running() as broker, http_of(broker) as http:
        headers = http.get(path, headers={"Origin": "https://evil.example"}).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    ("name", "status"),
    [("localhost", 200), ("LOCALHOST:80", 200), ("127.0.0.1", 200), ("[::1]:9644", 200), ("evil.example", 421)],
)
def test_on_its_own_machine_it_answers_to_no_other_name(name: str, status: int) -> None:
    with running() as broker, http_of(broker) as http:
        assert http.get("/groups.json", headers={"Host": name}).status == status


@pytest.mark.parametrize("name", ["", "a b", "[::", "x" * 5000, "\xff", "localhost:x", "127.0.0.1.evil.example"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with running() as broker, http_of(broker) as http:
        connection = http_connection(http.port)
        connection.putrequest("GET", "/groups.json", skip_host=True)
        connection.putheader("Host", name.encode("latin-1"))
        connection.endheaders()
        assert 400 <= connection.getresponse().status < 500
        connection.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed_through_it(method: str) -> None:
    with running() as broker, http_of(broker) as http:
        assert http.get("/groups.json", method=method).status == 405


def http_connection(port: int) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)


def test_a_broker_without_the_port_does_not_import_what_it_needs() -> None:
    look = "import sys, kohort.cli.serve; print({'aiohttp', 'prometheus_client'} & sys.modules.keys())"
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout == "set()\n"
