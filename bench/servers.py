"""The brokers that are measured, each as a process of its own on a free port: Apache Kafka, kfake and kohort.

Kafka runs as one KRaft process with what it has by default: the settings, and the options that its start script gives
to Java. The replication factors of its own topics are 1, as in the configuration that it is shipped with.
"""

import contextlib
import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench import client, kafka

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
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


@dataclass(frozen=True, slots=True)
class Server:
    """A running one."""

    name: str
    port: int
    pid: int
    ready_s: float
    """From the start of the process to its first answer."""

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


def apache_kafka(settings: dict[str, str]) -> Start:
    @contextlib.contextmanager
    def start(work: Path) -> Iterator[Server]:
        work.mkdir(parents=True)
        libs, port, controller = kafka.jars(KAFKA_VERSION), free_port(), free_port()
        properties = work / "server.properties"
        given = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(work / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in (given | settings).items()))
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
        with running(f"Kafka {KAFKA_VERSION}", [*java, "kafka.Kafka", str(properties)], port, work) as server:
            yield server

    return start


def kohort(settings: dict[str, str]) -> Start:
    @contextlib.contextmanager
    def start(work: Path) -> Iterator[Server]:
        work.mkdir(parents=True)
        port = free_port()
        command = [str(Path(sys.executable).parent / "kohort"), "serve", "--listen", f"127.0.0.1:{port}"]
        command += ["--data", str(work / "data")]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        with running(f"kohort, flush {settings['log.flush.mode']}", command, port, work) as server:
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
def nothing(work: Path) -> Iterator[Server]:
    """A server that answers without doing anything: what it reaches is what the load client can show."""
    work.mkdir(parents=True)
    port = free_port()
    command = [str(client.program("load")), "nothing", "-addr", f"127.0.0.1:{port}"]
    with running("nothing", command, port, work) as server:
        yield server


@contextlib.contextmanager
def running(name: str, command: list[str], port: int, work: Path) -> Iterator[Server]:
    log = work / "output.txt"
    with log.open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=work)
        try:
            while not _answers(port):
                if process.poll() is not None or time.perf_counter() > began + _DEADLINE_S:
                    raise RuntimeError(f"{name} is not ready: {log.read_text()[-2000:]}")
                time.sleep(0.002)
            yield Server(name, port, process.pid, time.perf_counter() - began)
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended by itself: {log.read_text()[-2000:]}")
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(port: int) -> bool:
    """Whether ApiVersions is answered without an error."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
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
