"""The brokers that are measured, each as a process of its own on a free port: Apache Kafka, kfake and kohort.

Kafka runs as one KRaft process with what it has by default: the settings, and the options that its start script gives
to Java. The replication factors of its own topics are 1, as in the configuration that it is shipped with. Kafka and
kohort are also to be had behind TLS and SASL, for those who are in `Secrets`.
"""

import contextlib
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bench import client, kafka
from bench.secrets import ADMIN, LOGIN_MODULES, MECHANISM, PROTOCOL, USER, Secrets

KAFKA_VERSION = "4.3.1"
_DEADLINE_S = 120
_STOP_S = 60
_JAVA_OPTIONS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
)
BEHIND_BOTH = f", {PROTOCOL} and ACLs"
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


@dataclass(frozen=True, slots=True)
class Server:
    """A running one."""

    name: str
    port: int
    pid: int
    ready_s: float
    """From the start of the process to its first answer."""
    login: dict[str, object] = field(default_factory=dict)
    """What the load client is told, so that it gets in."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def resident_mib(self) -> float:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        if found is None:
            raise RuntimeError(f"{self.name} is gone")
        return int(found[1]) / 1024

    def processor_s(self) -> float:
        """What it has used so far, on all cores together."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def await_rest(self) -> None:
        """Until nothing is done in the background any more: compilers, cleaners, writers."""
        deadline = time.monotonic() + _DEADLINE_S
        while self.processor_share(0.5) > 0.2:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} is not at rest within {_DEADLINE_S} s")

    def processor_share(self, seconds: float) -> float:
        """How much of one core it uses from now on for so long."""
        before = self.processor_s()
        time.sleep(seconds)
        return (self.processor_s() - before) / seconds


Start = Callable[[Path], AbstractContextManager[Server]]
"""Starts a server that keeps its data under a directory."""


def apache_kafka(settings: dict[str, str], secrets: Secrets | None = None) -> Start:
    protocol = "PLAINTEXT" if secrets is None else PROTOCOL

    @contextlib.contextmanager
    def start(work: Path) -> Iterator[Server]:
        work.mkdir(parents=True)
        libs, port, controller = kafka.jars(KAFKA_VERSION), free_port(), free_port()
        properties = work / "server.properties"
        given = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"{protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"{protocol}://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(work / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        if secrets is not None:
            given |= _behind_both(secrets)
        _write_properties(properties, given | settings)
        java = ["java", *_JAVA_OPTIONS, "-cp", f"{libs}/*"]
        format_storage = [
            *java,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "a29ob3J0LWJlbmNoLTAwMQ",
            "-c",
            str(properties),
        ]
        subprocess.run(format_storage, stdout=subprocess.DEVNULL, check=True)
        command = [*java, "kafka.Kafka", str(properties)]
        name = f"Kafka {KAFKA_VERSION}{'' if secrets is None else BEHIND_BOTH}"
        with running(name, command, port, work, secrets) as server:
            yield server

    return start


def _behind_both(secrets: Secrets) -> dict[str, str]:
    """The broker speaks to itself as the administrator. Its controller, on a port of its own, asks nobody who he is."""
    return {
        **secrets.settings(acls=True),
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{PROTOCOL}:{PROTOCOL}",
        "inter.broker.listener.name": PROTOCOL,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"listener.name.{PROTOCOL.lower()}.{MECHANISM.lower()}.sasl.jaas.config": (
            f"{LOGIN_MODULES}.scram.ScramLoginModule required;"
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secrets.authority),
    }


def _write_properties(path: Path, properties: dict[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def kohort(settings: dict[str, str], secrets: Secrets | None = None, *, acls: bool = True) -> Start:
    @contextlib.contextmanager
    def start(work: Path) -> Iterator[Server]:
        work.mkdir(parents=True)
        port, properties = free_port(), work / "server.properties"
        name, listener = f"kohort, flush {settings['log.flush.mode']}", f"127.0.0.1:{port}"
        given = settings
        if secrets is not None:
            name += BEHIND_BOTH if acls else f", {PROTOCOL}"
            listener = f"{PROTOCOL}://{listener}"
            given = given | secrets.settings(acls=acls)
        _write_properties(properties, given)
        command = [str(Path(sys.executable).parent / "kohort"), "serve", "--listen", listener]
        command += ["--data", str(work / "data"), "--config", str(properties)]
        with running(name, command, port, work, secrets) as server:
            yield server

    return start


@contextlib.contextmanager
def kfake(work: Path) -> Iterator[Server]:
    """franz-go's, all in memory."""
    work.mkdir(parents=True)
    port = free_port()
    with running("kfake", [str(client.program("kfake")), str(port)], port, work) as server:
        yield server


@contextlib.contextmanager
def nothing(work: Path, secrets: Secrets | None = None) -> Iterator[Server]:
    """A server that answers without doing anything: what it reaches is what the load client can show."""
    work.mkdir(parents=True)
    port = free_port()
    command = [str(client.program("load")), "nothing", "-addr", f"127.0.0.1:{port}"]
    if secrets is not None:
        command += ["-certificate", str(secrets.broker)]
    with running("nothing", command, port, work, secrets) as server:
        yield server


@contextlib.contextmanager
def running(name: str, command: list[str], port: int, work: Path, secrets: Secrets | None = None) -> Iterator[Server]:
    context = None if secrets is None else ssl.create_default_context(cafile=secrets.authority)
    login = {} if secrets is None else secrets.login(USER)
    log = work / "output.txt"
    with log.open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=work)
        try:
            while not _answers(port, context):
                if process.poll() is not None or time.perf_counter() > began + _DEADLINE_S:
                    raise RuntimeError(f"{name} is not ready: {log.read_text()[-2000:]}")
                time.sleep(0.002)
            yield Server(name, port, process.pid, time.perf_counter() - began, login)
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended by itself: {log.read_text()[-2000:]}")
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(port: int, context: ssl.SSLContext | None = None) -> bool:
    """Whether ApiVersions is answered without an error; nobody has to log in before that."""
    try:
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            if context is not None:
                connection = stack.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1"))
            connection.sendall(_API_VERSIONS)
            with connection.makefile("rb") as answer:
                head = answer.read(10)
    except ConnectionError:
        return False
    return len(head) == 10 and head[8:] == b"\0\0"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
