"""How fast librdkafka's Python consumer merely reads a log of the offsets topic from a broker.

The broker is `kohort serve` on that very log. The consumer takes messages in large batches and looks at none of them.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition

from bench.servers import free_port

TOPIC = "__consumer_offsets"
_BATCH = 100_000
_DEADLINE_S = 120
_MOMENT_S = 0.1
_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "log.flush.mode": "os",
    # The log is to stay as it is.
    "log.cleaner.min.compaction.lag.ms": "1000000000000",
    "offsets.retention.minutes": "10000000",
}


def records_per_second(log: Path) -> float:
    """The rate at which the records of the topic's only partition arrive, once they do, up to its end."""
    with _served(log) as address:
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "bench",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_uncommitted",
                "queued.max.messages.kbytes": 1 << 20,
                "fetch.max.bytes": 64 << 20,
                "max.partition.fetch.bytes": 16 << 20,
            }
        )
        try:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            while not _some(consumer)[0]:
                pass
            seen, is_over = 0, False
            started = time.perf_counter()
            while not is_over:
                count, is_over = _some(consumer)
                seen += count
                if time.perf_counter() - started > _DEADLINE_S:
                    raise RuntimeError(f"librdkafka has got {seen} records in {_DEADLINE_S} s, and not the end")
            return seen / (time.perf_counter() - started)
        finally:
            consumer.close()


def _some(consumer: Consumer) -> tuple[int, bool]:
    """How many messages came, and whether there are no more. It waits until there are so many, or for a moment."""
    messages = consumer.consume(_BATCH, timeout=_MOMENT_S)
    error = messages[-1].error() if messages else None
    if error is None:
        return len(messages), False
    if error.code() != KafkaError._PARTITION_EOF:
        raise RuntimeError(f"librdkafka: {error}")
    return len(messages) - 1, True


@contextlib.contextmanager
def _served(log: Path) -> Iterator[str]:
    """The address of a broker that has the log."""
    port = free_port()
    kohort = str(Path(sys.executable).parent / "kohort")
    command = [kohort, "serve", "--listen", f"127.0.0.1:{port}", "--data", str(log)]
    command += [part for name, value in _SETTINGS.items() for part in ("--set", f"{name}={value}")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            ready = broker.stdout.readline()
            if not ready.startswith("kohort ready"):
                raise RuntimeError(f"the broker did not start: {ready!r}")
            yield f"127.0.0.1:{port}"
        finally:
            broker.terminate()
            broker.wait(_DEADLINE_S)
