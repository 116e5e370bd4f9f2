"""Both brokers, with the same settings, one after the other on a free port."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench import kafka

SETTINGS = {
    "broker.id": "1",
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "120",
    "group.min.session.timeout.ms": "100",
    "group.max.session.timeout.ms": "60000",
    "group.max.size": "3",
    "offset.metadata.max.bytes": "64",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.max.timeout.ms": "600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""Times are short so that nobody waits; the one partition of the offsets topic is there to be read."""

_KAFKA_ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.cleaner.enable": "false",
}
_READY = re.compile(r"kohort ready kafka=\S+:(\d+)")

Start = Callable[[Path], AbstractContextManager[int]]
"""A broker that keeps its data under a directory; gives its port."""


@contextmanager
def apache_kafka(work: Path) -> Iterator[int]:
    settings = SETTINGS | _KAFKA_ALONE | {"log.dirs": str(kafka_data(work))}
    with kafka.running(work, settings) as broker:
        yield broker.port


@contextmanager
def kohort(work: Path) -> Iterator[int]:
    data = kohort_data(work)
    data.mkdir(parents=True, exist_ok=True)
    command = [str(Path(sys.executable).parent / "kohort"), "serve", "--listen", "127.0.0.1:0", "--data", str(data)]
    for name, value in SETTINGS.items():
        command += ["--set", f"{name}={value}"]
    log_path = work / "kohort.log"
    with log_path.open("ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            ready = _READY.match(line := process.stdout.readline())
            if ready is None:
                raise RuntimeError(f"kohort said {line!r}: {log_path.read_text()}")
            yield int(ready[1])
        finally:
            process.terminate()
            process.communicate(timeout=60)
    if process.returncode:
        raise RuntimeError(f"kohort ended with {process.returncode}: {log_path.read_text()}")
    if complaints := log_path.read_text():
        raise RuntimeError(f"kohort complained: {complaints}")


def kafka_data(work: Path) -> Path:
    return work / "logs"


def kohort_data(work: Path) -> Path:
    return work / "data"
