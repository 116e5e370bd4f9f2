"""A real broker, 500 groups that come and go, transactions, compaction and expiry, and samples of it all."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic
from tests_clients.building import GO, built

from kohort.testing.own_process import OwnProcess
from kohort.testing.ports import Ports
from tests.soak.measuring import measure, processor_s

GROUPS = 500
TRANSACTORS = 5
_HOST = "127.0.0.1"
_TOPIC, _PARTITIONS = "orders", 4
_PATIENCE_S = 120.0
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "10",
    "offsets.topic.segment.bytes": "100000",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.segment.bytes": "50000",
    "log.cleaner.backoff.ms": "2000",
    "log.cleaner.delete.retention.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "2000",
    "transactional.id.expiration.ms": "20000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "2000",
}
_PART_OF_THE_GAME = ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "CONCURRENT_TRANSACTIONS")
"""Refusals that members hear when others come and go, and producers whose last transaction is not quite over."""


_TIMES = {
    "commit p50": "p50_ms",
    "commit p99": "p99_ms",
    "nothing p50": "nothing_p50_ms",
    "nothing p99": "nothing_p99_ms",
}


_LATE = ("REQUEST_TIMED_OUT", "i/o timeout", "deadline exceeded")
_STANDSTILL_MS = 1000.0
"""If a request for nothing takes so long, others had the machine, and somebody may have waited too long."""


class Soaked(NamedTuple):
    samples: list[dict[str, float]]
    done: Counter[str]
    refusals: Counter[str]
    complaints: Counter[str]
    """Refusals that nobody should hear."""

    def note(self, sample: dict[str, float], figures: dict[str, Any]) -> None:
        self.samples.append(sample)
        self.done.update(figures["done"])
        self.refusals.update(figures["refusals"])
        stood_still = sample["nothing p99, ms"] > _STANDSTILL_MS
        expected = _PART_OF_THE_GAME + (_LATE if stood_still else ())
        refusals = figures["refusals"].items()
        self.complaints.update({what: times for what, times in refusals if not any(one in what for one in expected)})


def soak(data: Path, seconds: float, groups: int, on_sample: Callable[[dict[str, float]], None]) -> Soaked:
    broker = OwnProcess(str(data), _HOST, Ports(0, 0), _SETTINGS)
    soaked = Soaked([], Counter(), Counter(), Counter())
    try:
        ports = broker.start()
        _busy(broker, ports, data, time.monotonic() + seconds, groups, soaked, on_sample)
    except BaseException:
        broker.finish(cleanly=False)
        raise
    broker.finish(cleanly=True)
    return soaked


def _busy(
    broker: OwnProcess,
    ports: Ports,
    data: Path,
    ends: float,
    groups: int,
    soaked: Soaked,
    on_sample: Callable[[dict[str, float]], None],
) -> None:
    assert broker.pid is not None
    assert ports.http is not None
    address = f"{_HOST}:{ports.kafka}"
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for made in admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 1)]).values():
        made.result(_PATIENCE_S)
    told = {"address": address, "topic": _TOPIC, "partitions": _PARTITIONS, "groups": groups}
    command = [*built(GO, "soak").command, *(f"-{name}={value}" for name, value in told.items())]
    with subprocess.Popen(
        [*command, f"-transactors={TRANSACTORS}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as clients:
        assert clients.stdin is not None
        assert clients.stdout is not None
        used = processor_s(broker.pid)
        try:
            for line in clients.stdout:
                figures = json.loads(line)
                sample = measure(broker.pid, ports.http, data)
                used, before = processor_s(broker.pid), used
                sample["processor, ms per commit"] = 1000 * (used - before) / max(1, figures["done"].get("commits", 0))
                sample |= {f"{name}, ms": figures[key] for name, key in _TIMES.items()}
                soaked.note(sample, figures)
                on_sample(sample)
                if time.monotonic() >= ends:
                    break
            else:
                raise RuntimeError(f"the clients ended early, with {clients.wait()}")
            clients.stdin.close()
            clients.stdout.read()
        finally:
            clients.kill()
