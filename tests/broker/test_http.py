"""The HTTP port: health, and what browsers and others may do with it."""

import errno
import socket
import subprocess
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from kohort.broker.http.groups import GroupsView
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


ROUTES = ("/", "/metrics", "/healthz", "/groups.json", "/groups.json?view=summary", "/groups.json?group=x", "/nothing")


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_no_other_site_may_read_or_embed_or_keep_anything(path: str, method: str) -> None:
    with running() as broker, http_of(broker) as http:
        check_headers(http.get(path, method=method, headers={"Origin": "https://evil.example"}).headers)


def check_headers(headers: Mapping[str, str]) -> None:
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Server"] == "kohort"
    assert not [name for name in headers if name.lower().startswith("access-control")]


NONSENSE = [
    b"<script>alert(1)</script>\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /<script> HTTP/1.1\r\nHost: localhost\r\nA B\x01: <b>\r\n\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
def test_what_is_no_http_is_told_so_and_nothing_of_it_comes_back(
    nonsense: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with running() as broker, http_of(broker) as http:
        with socket.create_connection(("127.0.0.1", http.port), timeout=PATIENCE_S) as connection:
            connection.sendall(nonsense)
            answer = HTTPResponse(connection)
            answer.begin()
            body = answer.read()
        assert (answer.status, body) == (400, b"this is no HTTP\n")
        check_headers(dict(answer.getheaders()))
    assert not [record for record in caplog.records if record.exc_info]


def test_a_failure_of_ours_is_told_without_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: object) -> bytes:
        raise ZeroDivisionError("/secret/path")

    monkeypatch.setattr(GroupsView, "full", fail)
    with running() as broker, http_of(broker) as http:
        for accept in ("text/html", "*/*"):
            answer = http.get("/groups.json", headers={"Accept": accept})
            assert answer.status == 500
            assert b"secret" not in answer.body
            assert b"ZeroDivision" not in answer.body
            check_headers(answer.headers)


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
