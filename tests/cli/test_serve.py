"""`kohort serve` as people and scripts start it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.broker.wire_client import WireClient

KOHORT = Path(sys.executable).with_name("kohort")
API_VERSIONS, METADATA = 18, 3


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([KOHORT, "serve", *arguments], capture_output=True, text=True, timeout=60)


@contextmanager
def served(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", int, str]]:
    """A broker that is ready: the process, its port, and the line that it printed."""
    process = subprocess.Popen(
        [KOHORT, "serve", "--listen", "127.0.0.1:0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"kohort ready kafka=127\.0\.0\.1:(\d+)(?: http=127\.0\.0\.1:\d+)? data=(.*)\n", line)
        assert found, (line, process.stderr and process.stderr.read())
        yield process, int(found[1]), line
    finally:
        process.kill()
        process.communicate()


def test_it_says_when_it_is_ready_and_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with served("--data", str(tmp_path / "data")) as (process, port, line):
            assert line == f"kohort ready kafka=127.0.0.1:{port} data={tmp_path / 'data'}\n"
            with WireClient(port) as client:
                assert client.ask(API_VERSIONS, 0).error_code == 0
            process.send_signal(number)
            assert process.wait(timeout=30) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_topics_are_there_after_a_restart_even_after_a_kill(tmp_path: Path) -> None:
    for _ in range(2):
        with served("--data", str(tmp_path / "data")) as (_, port, _), WireClient(port) as client:
            wanted = [{"name": "orders"}]
            (topic,) = client.ask(METADATA, 4, topics=wanted, allow_auto_topic_creation=True).topics
            assert (topic.error_code, topic.name, len(topic.partitions)) == (0, "orders", 1)


def test_one_directory_serves_one_broker(tmp_path: Path) -> None:
    with served("--data", str(tmp_path / "data")):
        second = run("--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert "kohort: " in second.stderr


def test_settings_carry_kafkas_names(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("# as Kafka's own\nnum.partitions=3\nauto.create.topics.enable = true\n")
    with (
        served("--memory", "--config", str(config), "--set", "num.partitions=5") as (_, port, _),
        WireClient(port) as c,
    ):
        (topic,) = c.ask(METADATA, 4, topics=[{"name": "orders"}], allow_auto_topic_creation=True).topics
        assert len(topic.partitions) == 5


def test_what_cannot_be_is_told_in_one_line() -> None:
    unknown = run("--memory", "--set", "no.such.setting=1")
    assert (unknown.returncode, unknown.stderr) == (1, "kohort: there is no setting no.such.setting\n")
    bad = run("--memory", "--set", "num.partitions=many")
    assert (bad.returncode, bad.stderr.count("\n")) == (1, 1)


def test_wrong_usage_ends_with_2(tmp_path: Path) -> None:
    assert run().returncode == 2
    assert run("--memory", "--data", str(tmp_path)).returncode == 2
    assert run("--memory", "--listen", "nowhere").returncode == 2
    assert run("--memory", "--http", "nowhere").returncode == 2
    assert run("--memory", "--http", "127.0.0.1:99999").returncode == 2
    assert run("--memory", "--set", "num.partitions").returncode == 2


def test_the_http_port_is_there_if_it_is_asked_for(tmp_path: Path) -> None:
    with served("--data", str(tmp_path / "data"), "--http", "127.0.0.1:0") as (process, port, line):
        found = re.fullmatch(rf"kohort ready kafka=127.0.0.1:{port} http=(127.0.0.1:\d+) data={tmp_path}/data\n", line)
        assert found
        with urllib.request.urlopen(f"http://{found[1]}/healthz", timeout=30) as answer:
            assert json.load(answer)["status"] == "ok"
        with urllib.request.urlopen(f"http://{found[1]}/", timeout=30) as answer:
            assert b"<title>kohort</title>" in answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_an_http_port_in_use_is_told_in_one_line_and_the_broker_ends_cleanly(tmp_path: Path) -> None:
    with served("--memory") as (_, port, _):
        second = run("--data", str(tmp_path), "--listen", "127.0.0.1:0", "--http", f"127.0.0.1:{port}")
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_port_in_use_is_told_in_one_line() -> None:
    with served("--memory") as (_, port, _):
        second = run("--memory", "--listen", f"127.0.0.1:{port}")
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
