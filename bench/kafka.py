"""Apache Kafka itself as the yardstick: its loader and its dump tool on the same files.

The jars come from Maven's usual place into a cache of their own. The JVM has all cores, a large heap for the broker and
a warm page cache. Of the loader only the time is counted that Kafka's log reports, not the start of the broker.
"""

import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kohort.records.primitives import Reader

VERSION = "2.6.3"
CACHE = Path(os.environ.get("KOHORT_LAB") or Path.home() / ".cache/kohort-lab")
_DEADLINE_S = 180
_UNKNOWN_TOPIC = 3


def available() -> bool:
    return bool(shutil.which("java") and shutil.which("mvn"))


def jars(version: str = VERSION) -> Path:
    home = CACHE / f"kafka-{version}"
    libs = home / "libs"
    if not any(libs.glob("kafka_2.13-*.jar")):
        home.mkdir(parents=True, exist_ok=True)
        wanted = (("org.apache.kafka", "kafka_2.13", version), ("org.slf4j", "slf4j-simple", "1.7.36"))
        dependencies = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
            for group, name, number in wanted
        )
        (home / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>lab</groupId><artifactId>lab</artifactId>"
            f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
        )
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs", "-DincludeScope=runtime"]
        subprocess.run(copy, cwd=home, check=True)
    return libs


def _java(main: str, *args: str, heap: str = "4g") -> list[str]:
    logging = ["-Dorg.slf4j.simpleLogger.logFile=System.out", "-Dzookeeper.admin.enableServer=false"]
    return ["java", f"-Xmx{heap}", *logging, "-cp", f"{jars()}/*", main, *args]


def dump_seconds(segments: list[Path], output: Path) -> float:
    """How long Kafka's own tool takes to decode some segments into a file, with the heap that its script gives it."""
    files = ",".join(map(str, segments))
    command = _java("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", files, heap="256m")
    started = time.perf_counter()
    with output.open("wb") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
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
    with running(work, settings) as broker:
        broker.await_offsets_topic(partitions)
    for number in range(partitions):
        place = work / f"logs/__consumer_offsets-{number}"
        shutil.rmtree(place)
        shutil.copytree(log / place.name, place)
    with running(work, settings) as broker:
        found = broker.await_offsets_topic(partitions)
    # Partitions are loaded one after the other; while one waits for its turn, it is "in the scheduler".
    return sum(int(total) - int(waited) for total, waited in found) / 1000


class Broker:
    """A running broker, spoken to in the oldest versions of its protocol."""

    def __init__(self, port: int, log_file: Path) -> None:
        self.port = port
        self._log_file = log_file

    def log_text(self) -> str:
        return self._log_file.read_text(errors="replace")

    def await_line(self, pattern: str, count: int = 1, ask_again: Callable[[], object] = bool) -> list[Any]:
        """What Kafka's log says, as soon as it has said it so many times; between looks `ask_again` is called."""
        deadline = time.monotonic() + _DEADLINE_S
        while len(found := re.findall(pattern, self.log_text())) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._log_file}: no {pattern!r} within {_DEADLINE_S} s")
            ask_again()
            time.sleep(0.2)
        return found

    def await_offsets_topic(self, partitions: int) -> list[tuple[str, str]]:
        """Have the offsets topic created if it is not there, and loaded; returns the times that Kafka tells.

        A broker that has only just started does not know of itself yet, and has to be asked again.
        """
        loaded = r"Finished loading offsets .* in (\d+) milliseconds, of which (\d+) "
        return self.await_line(loaded, partitions, lambda: self._ask(10, 0, _string("any group")))

    def commit_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        """OffsetCommit without membership; the topic is made if it is not there."""
        body = _string(group) + struct.pack(">i", -1) + _string("") + struct.pack(">q", -1)
        body += struct.pack(">i", 1) + _string(topic) + struct.pack(">iiq", 1, partition, offset) + _string("m")
        deadline = time.monotonic() + _DEADLINE_S
        while error := struct.unpack(">h", self._ask(8, 2, body)[-2:])[0]:
            if error != _UNKNOWN_TOPIC or time.monotonic() > deadline:
                raise RuntimeError(f"OffsetCommit: error {error}")
            self._ask(3, 0, struct.pack(">i", 1) + _string(topic))

    def describe_offsets(self, groups: list[str]) -> dict[str, dict[tuple[str, int], int]]:
        """OffsetFetch of everything, group by group."""
        found: dict[str, dict[tuple[str, int], int]] = {}
        for group in groups:
            reader = Reader(self._ask(9, 2, _string(group) + struct.pack(">i", -1)))
            found[group] = {
                (topic, partition): offset
                for topic, partitions in reader.array(lambda r: (r.string(), r.array(_partition_offset)))
                for partition, offset in partitions
            }
        return found

    def _ask(self, api: int, version: int, body: bytes) -> bytes:
        message = struct.pack(">hhih", api, version, 1, -1) + body
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(struct.pack(">i", len(message)) + message)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                return answer.read(size)[4:]


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _partition_offset(reader: Reader) -> tuple[int, int]:
    partition, offset = reader.int32(), reader.int64()
    reader.nullable_string()
    reader.int16()
    return partition, offset


@contextlib.contextmanager
def running(work: Path, settings: dict[str, str]) -> Iterator[Broker]:
    """A broker with a ZooKeeper of its own, for as long as it is needed; both are gone afterwards."""
    port, zookeeper_port = _free_port(), _free_port()
    work.mkdir(parents=True, exist_ok=True)
    zookeeper, server = work / "zookeeper.properties", work / "server.properties"
    zookeeper.write_text(f"dataDir={work / 'zookeeper'}\nclientPort={zookeeper_port}\nclientPortAddress=127.0.0.1\n")
    settings = settings | {
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
        "zookeeper.connection.timeout.ms": "30000",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
    }
    server.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    log_file = work / "broker.log"
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(log_file.open("wb"))
        zookeeper_out = stack.enter_context((work / "zookeeper.log").open("wb"))
        for main, config, to in (
            ("org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper, zookeeper_out),
            ("kafka.Kafka", server, out),
        ):
            process = subprocess.Popen(_java(main, str(config)), stdout=to, stderr=to)
            stack.callback(_stop, process)
        broker = Broker(port, log_file)
        broker.await_line(r"KafkaServer id=1\] started")
        yield broker


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
