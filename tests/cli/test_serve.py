"""`kohort serve` as people and scripts start it."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.broker.security import certificates
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
    assert run("--memory", "--http", "ftp://127.0.0.1:0").returncode == 2
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


def test_the_http_port_can_have_tls(tmp_path: Path) -> None:
    keystore = f"ssl.keystore.location={certificates.file_of(certificates.server())}"
    settings = ("--set", keystore, "--http", "https://127.0.0.1:0")
    with served("--data", str(tmp_path / "data"), *settings) as (_, _, line):
        port = re.search(r" http=127\.0\.0\.1:(\d+) ", line)
        assert port is not None
        told = urllib.request.urlopen(
            f"https://localhost:{port[1]}/healthz", timeout=30, context=certificates.trusting()
        )
        with told:
            assert json.load(told)["status"] == "ok"


def test_an_http_port_without_a_certificate_has_no_tls() -> None:
    done = run("--memory", "--listen", "127.0.0.1:0", "--http", "https://127.0.0.1:0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "TLS needs ssl.keystore.location" in done.stderr


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


def ready_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [KOHORT, "serve", "--memory", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class TestListeners:
    def test_an_address_may_be_of_ipv6(self) -> None:
        with started("--listen", "[::1]:0") as process:
            found = re.fullmatch(r"kohort ready kafka=\[::1\]:(\d+) data=memory\n", ready_line(process))
            assert found
            with WireClient(int(found[1]), "::1") as client:
                (node,) = client.ask(METADATA, 9, topics=[]).brokers
                assert (node.host, node.port) == ("::1", int(found[1]))

    def test_several_are_told_with_their_names(self, tmp_path: Path) -> None:
        pem = tmp_path / "server.pem"
        pem.write_text(certificates.pem(certificates.server()))
        with started(
            *("--listen", "127.0.0.1:0", "--listen", "ssl://127.0.0.1:0", "--set", f"ssl.keystore.location={pem}")
        ) as process:
            found = re.fullmatch(
                r"kohort ready kafka=PLAINTEXT://127.0.0.1:(\d+),SSL://127.0.0.1:(\d+) data=memory\n",
                ready_line(process),
            )
            assert found
            with WireClient(int(found[1])) as plain, WireClient(int(found[2]), tls=certificates.trusting()) as secured:
                assert plain.ask(METADATA, 9, topics=[]).brokers[0].port == int(found[1])
                assert secured.ask(METADATA, 9, topics=[]).brokers[0].port == int(found[2])

            pem.write_text(certificates.pem(certificates.server(by="others")))
            process.send_signal(signal.SIGHUP)
            with WireClient(int(found[2]), tls=until_trusted(int(found[2]), "others")) as secured:
                assert secured.ask(METADATA, 9, topics=[]).cluster_id == "kohort"

    def test_they_may_stand_in_the_file_of_settings(self, tmp_path: Path) -> None:
        config = tmp_path / "server.properties"
        config.write_text(
            "listeners=INSIDE://127.0.0.1:0\n"
            "listener.security.protocol.map=INSIDE:PLAINTEXT\n"
            "advertised.listeners=INSIDE://localhost:0\n"
        )
        with started("--config", str(config)) as process:
            found = re.fullmatch(r"kohort ready kafka=INSIDE://127.0.0.1:(\d+) data=memory\n", ready_line(process))
            assert found
            with WireClient(int(found[1])) as client:
                assert client.ask(METADATA, 9, topics=[]).brokers[0].host == "localhost"
        with started("--config", str(config), "--listen", "127.0.0.1:0", "--set", "advertised.listeners=") as process:
            assert re.fullmatch(r"kohort ready kafka=127.0.0.1:\d+ data=memory\n", ready_line(process))

    def test_who_lets_everybody_in_from_everywhere_is_warned_in_one_line(self) -> None:
        with started("--listen", "0.0.0.0:0") as process:
            assert ready_line(process).startswith("kohort ready ")
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=30)
        assert re.fullmatch(
            r"kohort: warning: whoever can connect to PLAINTEXT://0.0.0.0:\d+ may read, write and delete everything: "
            r"nobody has to log in there .*\n",
            told,
        )

    @pytest.mark.parametrize("listen", ["PLAINTEXT://", "://127.0.0.1:0", "[::1:0", ":9092", "PLAINTEXT://:1"])
    def test_what_is_no_listener_is_wrong_usage(self, listen: str) -> None:
        done = run("--memory", "--listen", listen)
        assert (done.returncode, "--listen wants" in done.stderr) == (2, True)

    def test_one_without_a_certificate_is_told_in_one_line(self) -> None:
        done = run("--memory", "--listen", "SSL://127.0.0.1:0")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "TLS needs ssl.keystore.location" in done.stderr


def until_trusted(port: int, authority: str) -> ssl.SSLContext:
    """Wait until the broker shows a certificate of that authority."""
    context = certificates.trusting(authority)
    for _ in range(500):
        try:
            WireClient(port, tls=context).close()
        except ssl.SSLCertVerificationError:
            threading.Event().wait(0.02)
        else:
            break
    return context


class TestSecrets:
    JAAS = "listener.name.plaintext.plain.sasl.jaas.config"

    def test_one_on_the_command_line_is_refused_and_not_repeated(self) -> None:
        done = run("--memory", "--set", f"{self.JAAS}=hush", "--set", "ssl.key.password=hush")
        assert done.returncode == 2
        assert "everybody on this machine can read it" in done.stderr
        assert "hush" not in done.stderr

    def test_it_may_be_in_the_file_or_where_that_refers_to(self, tmp_path: Path) -> None:
        issued = certificates.server()
        (tmp_path / "chain").write_text(issued.certificate)
        (tmp_path / "other.properties").write_text("protocols = TLSv1.3\n")
        config = tmp_path / "server.properties"
        config.write_text(
            f"listeners=SSL://127.0.0.1:0\nssl.keystore.certificate.chain=${{dir:{tmp_path}:chain}}\n"
            f"ssl.enabled.protocols=${{file:{tmp_path}/other.properties:protocols}}\n"
        )
        with started(
            "--config", str(config), "--set", "ssl.keystore.key=${env:BROKER_KEY}", BROKER_KEY=issued.key
        ) as p:
            found = re.search(r"SSL://127.0.0.1:(\d+)", ready_line(p))
            assert found
            with WireClient(int(found[1]), tls=certificates.trusting()) as client:
                assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"

    @pytest.mark.parametrize(
        ("reference", "reason"),
        [
            ("${env:NO_SUCH_NAME}", "there is no NO_SUCH_NAME in the environment"),
            ("${file:/no/such/file:x}", "/no/such/file: No such file"),
            ("${file:/no/such/file}", "is not ${file:PATH:NAME}"),
            ("${dir:/no/such:file}", "/no/such/file: No such file"),
        ],
    )
    def test_a_reference_to_nothing_is_told_in_one_line(self, reference: str, reason: str) -> None:
        done = run("--memory", "--set", f"ssl.key.password={reference}")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert reason in done.stderr
