"""Apache Kafka itself as the yardstick: its loader and its dump tool on the same files.

The jars come from Maven's usual place into a cache of their own. The JVM runs with its own defaults, both cores and a
warm page cache; only the time that Kafka's log reports for the loading is counted, not its start.
"""

import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

VERSION = "2.6.3"
CACHE = Path(os.environ.get("KOHORT_LAB") or Path.home() / ".cache/kohort-lab")
_DEADLINE_S = 180


def available() -> bool:
    return bool(shutil.which("java") and shutil.which("mvn"))


def jars() -> Path:
    home = CACHE / f"kafka-{VERSION}"
    libs = home / "libs"
    if not any(libs.glob("kafka_2.13-*.jar")):
        home.mkdir(parents=True, exist_ok=True)
        wanted = (("org.apache.kafka", "kafka_2.13", VERSION), ("org.slf4j", "slf4j-simple", "1.7.36"))
        dependencies = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
            for group, name, version in wanted
        )
        (home / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>lab</groupId><artifactId>lab</artifactId>"
            f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
        )
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs", "-DincludeScope=runtime"]
        subprocess.run(copy, cwd=home, check=True)
    return libs


def _java(main: str, *args: str) -> list[str]:
    logging = ["-Dorg.slf4j.simpleLogger.logFile=System.out", "-Dzookeeper.admin.enableServer=false"]
    return ["java", "-Xmx4g", *logging, "-cp", f"{jars()}/*", main, *args]


def dump_seconds(segment: Path) -> float:
    """How long Kafka's own tool takes to decode a segment."""
    command = _java("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(segment))
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def load_seconds(log: Path, work: Path, partitions: int) -> float:
    """How long a broker takes to load the groups and offsets of a log, all partitions one after the other."""
    settings = {
        "broker.id": "1",
        "log.dirs": str(work / "logs"),
        "offsets.topic.num.partitions": str(partitions),
        "offsets.topic.replication.factor": "1",
        "log.cleaner.enable": "false",
    }
    with _broker(work, settings) as (port, log_file):
        while not all((work / f"logs/__consumer_offsets-{n}").is_dir() for n in range(partitions)):
            _find_coordinator(port)
        _await(log_file, r"Finished loading offsets", partitions)
    for number in range(partitions):
        place = work / f"logs/__consumer_offsets-{number}"
        shutil.rmtree(place)
        shutil.copytree(log / place.name, place)
    with _broker(work, settings) as (_, log_file):
        found = _await(log_file, r"Finished loading offsets .* in (\d+) milliseconds, of which (\d+) ", partitions)
    # Partitions are loaded one after the other; while one waits for its turn, it is "in the scheduler".
    return sum(int(total) - int(waited) for total, waited in found) / 1000


@contextlib.contextmanager
def _broker(work: Path, settings: dict[str, str]) -> Iterator[tuple[int, Path]]:
    """A broker with a ZooKeeper of its own, for as long as it is needed; both are gone afterwards."""
    port, zookeeper_port = _free_port(), _free_port()
    work.mkdir(parents=True, exist_ok=True)
    zookeeper = work / "zookeeper.properties"
    zookeeper.write_text(f"dataDir={work / 'zookeeper'}\nclientPort={zookeeper_port}\nclientPortAddress=127.0.0.1\n")
    server = work / "server.properties"
    settings = settings | {
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
        "zookeeper.connection.timeout.ms": "30000",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
    }
    server.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    log_file = work / "broker.log"
    log_file.write_bytes(b"")
    with (
        contextlib.ExitStack() as stack,
        log_file.open("ab") as out,
        (work / "zookeeper.log").open("ab") as zookeeper_out,
    ):
        for main, config, to in (
            ("org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper, zookeeper_out),
            ("kafka.Kafka", server, out),
        ):
            process = subprocess.Popen(_java(main, str(config)), stdout=to, stderr=to)
            stack.callback(_stop, process)
        _await(log_file, r"KafkaServer id=1\] started", 1)
        yield port, log_file


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await(log_file: Path, pattern: str, count: int) -> list[tuple[str, str]]:
    deadline = time.monotonic() + _DEADLINE_S
    while len(found := re.findall(pattern, log_file.read_text(errors="replace"))) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log_file}: no {pattern!r} within {_DEADLINE_S} s")
        time.sleep(0.2)
    return found


def _find_coordinator(port: int) -> None:
    """Ask for a group's coordinator, which makes a broker create the offsets topic."""
    body = struct.pack(">hhih", 10, 0, 1, -1) + struct.pack(">h", 1) + b"g"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        connection.recv(4096)
    time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
