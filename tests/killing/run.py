"""A broker that is killed again and again while clients commit, and the ledger of what they were promised."""

import random
import statistics
import time
from collections import Counter
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.killing.clients import Clients
from tests.killing.go_clients import GoClients
from tests.killing.killed import KilledBroker
from tests.killing.place import COPIES, PARTITIONS, TOPIC
from tests.simulation.ledger import Ledger, Outcome, Violation

_PATIENCE_S = 60.0
_LOOKS = 60
_SOONEST_S, _LATEST_S = 0.05, 1.5
_KILLED_AT_START = 0.2
"""How often a broker is killed already while it starts."""


class Heard(NamedTuple):
    """What the clients of one kind have asked and heard."""

    commits: int
    acknowledged: int
    refused_or_aborted: int
    unknown: int
    reads: int


class Told(NamedTuple):
    """What a run has seen."""

    kills: int
    kills_at_start: int
    clients: dict[str, Heard]
    generations: int
    compared: int
    median_start_s: float
    slowest_start_s: float
    took_s: float


def run(broker: KilledBroker, kills: int, seed: int, *, with_go: bool) -> Told:
    """Kill it so many times, each after 50 to 1,500 ms; `Violation` if a promise was broken."""
    began = time.monotonic()
    chance = random.Random(seed)
    ledger = Ledger()
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    topics = [NewTopic(TOPIC, PARTITIONS, 1), NewTopic(COPIES, 1, 1)]
    for made in admin.create_topics(topics).values():
        made.result(_PATIENCE_S)
    clients = Clients(broker.address, ledger, committers=2 if with_go else 4, transactors=1 if with_go else 2)
    everybody: dict[str, Clients | GoClients] = {"librdkafka": clients}
    if with_go:
        everybody["franz-go"] = GoClients(broker.address, ledger, groups=2, transactors=2)
    for some in everybody.values():
        some.start()
    try:
        while broker.kills + broker.kills_at_start < kills:
            time.sleep(chance.uniform(_SOONEST_S, _LATEST_S))
            broker.kill()
            if chance.random() < _KILLED_AT_START and broker.kills + broker.kills_at_start < kills:
                broker.start_and_kill(chance.uniform(_SOONEST_S, _LATEST_S))
            broker.start()
    except BaseException:
        for some in everybody.values():
            some.abandon()  # without a broker they would wait for ever
        broker.abandon()
        raise
    for some in everybody.values():
        some.end()
    for group in [group for some in everybody.values() for group in some.groups]:
        consumer = clients.consumer(group)
        if not any(clients.look(consumer, group) for _ in range(_LOOKS)):
            raise Violation(f"{group} cannot be read any more")
        consumer.close()
    state = broker.end()
    if clients.errors:
        raise clients.errors[0]
    ledger.check()
    return Told(
        broker.kills,
        broker.kills_at_start,
        {name: _heard(ledger, some.groups) for name, some in everybody.items()},
        len({(sync.group, sync.generation) for sync in ledger.syncs}),
        _compare(ledger, state),
        statistics.median(broker.starts_s),
        max(broker.starts_s),
        time.monotonic() - began,
    )


def _heard(ledger: Ledger, groups: list[str]) -> Heard:
    own = set(groups)
    outcomes = Counter(write.outcome for write in ledger.writes if {group for group, _ in write.offsets} <= own)
    return Heard(
        outcomes.total(),
        outcomes[Outcome.OK],
        outcomes[Outcome.FAILED],
        outcomes[Outcome.UNKNOWN],
        sum(read.key[0] in own for read in ledger.reads),
    )


def _compare(ledger: Ledger, state: Any) -> int:
    """`kohort state` is a second opinion on what clients have read last; how many offsets there are."""
    stored = {(entry["group"], entry["partition"]): entry["offset"] for entry in state["offsets"]}
    read_last = {read.key: read.offset for read in ledger.reads}
    for key, offset in read_last.items():
        if stored.get(key) != offset:
            raise Violation(f"{key}: the broker says {offset}, its files {stored.get(key)}")
    return len(read_last)
