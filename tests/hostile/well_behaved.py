"""The group that must not notice anything: three consumers of librdkafka, and a producer, in a process of its own.

    python -m tests.hostile.well_behaved BOOTSTRAP

Says `ready` when everybody has a partition. For each line that it gets it tells, as JSON, what has happened since the
one before; when there are no more lines it ends.
"""

import json
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

GROUP, TOPIC, MEMBERS = "well-behaved", "steady", 3
SESSION_MS = 6_000
_EVERY_S = 0.02


class _Heard:
    """What the clients have gone through."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._assigned = 0
        self._begin()

    def _begin(self) -> None:
        self._records, self._slowest_s, self._rebalances = 0, 0.0, 0
        self._errors: list[str] = []

    def record(self, took_s: float) -> None:
        with self._lock:
            self._records += 1
            self._slowest_s = max(self._slowest_s, took_s)

    def assigned(self, change: int) -> None:
        with self._lock:
            self._assigned += change
            self._rebalances += 1

    def error(self, told: str) -> None:
        with self._lock:
            self._errors.append(told)

    @property
    def has_begun(self) -> bool:
        return self._assigned == MEMBERS and self._records > MEMBERS

    def tell(self) -> dict[str, Any]:
        """Since it was asked last."""
        with self._lock:
            told = {
                "records": self._records,
                "slowest_ms": round(self._slowest_s * 1000),
                "rebalances": self._rebalances,
                "errors": self._errors,
            }
            self._begin()
        return told


def _consume(bootstrap: str, heard: _Heard, end: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 1_500,
            "auto.commit.interval.ms": 500,
            "auto.offset.reset": "latest",
            "fetch.wait.max.ms": 50,
            "error_cb": lambda error: heard.error(str(error)),
        }
    )
    consumer.subscribe(
        [TOPIC],
        on_assign=lambda _, partitions: heard.assigned(bool(partitions)),
        on_revoke=lambda _, partitions: heard.assigned(-bool(partitions)),
        on_lost=lambda _, partitions: heard.error(f"lost {partitions}"),
    )
    while not end.is_set():
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is None:
            heard.record(time.monotonic() - float(message.value()))
        elif message.error().code() != KafkaError._PARTITION_EOF:
            heard.error(str(message.error()))
    consumer.close()


def _produce(bootstrap: str, heard: _Heard, end: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    number = 0
    while not end.wait(_EVERY_S):
        producer.produce(
            TOPIC,
            str(time.monotonic()),
            partition=number % MEMBERS,
            on_delivery=lambda error, _: heard.error(str(error)) if error else None,
        )
        producer.poll(0)
        number += 1
    producer.flush(30)


def main(bootstrap: str) -> None:
    heard, end = _Heard(), threading.Event()
    work = [threading.Thread(target=_consume, args=(bootstrap, heard, end)) for _ in range(MEMBERS)]
    work.append(threading.Thread(target=_produce, args=(bootstrap, heard, end)))
    for one in work:
        one.start()
    while not heard.has_begun:
        end.wait(_EVERY_S)
    heard.tell()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        sys.stdout.write(json.dumps(heard.tell()) + "\n")
        sys.stdout.flush()
    end.set()
    for one in work:
        one.join()


if __name__ == "__main__":
    main(sys.argv[1])
