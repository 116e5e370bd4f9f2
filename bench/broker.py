"""The broker beside Apache Kafka and franz-go's kfake: start-up, commits, records, groups."""

import time
from pathlib import Path
from statistics import median

from bench import client, kafka, servers
from bench.beside import OS, Beside, Plan, medians, running
from bench.client import Figures
from bench.commits import committing
from bench.rows import Row, bounded, progress, told
from bench.servers import Server
from bench.transfers import transferring

MEMBERS = 100
_DELAY = "group.initial.rebalance.delay.ms"
_GROUP_ROUNDS = 5
"""For each of the plan's: a group takes less than a second."""


def measure(work: Path, plan: Plan) -> list[Row]:
    if not client.available():
        return [told("the broker beside Apache Kafka and kfake", "not measured: no Go here")]
    progress("start-up")
    rows = starting(work / "starting", plan)
    with running(work / "running", plan, {}) as beside:
        rows += committing(beside, plan, work)
        rows += transferring(beside, plan)
        if beside.kafka is not None:
            progress(f"groups of {MEMBERS}")
            rows += _group_rows("3000", medians(1, [beside.kafka, beside.os], _group))
    with running(work / "at-once", plan, {_DELAY: "0"}) as beside:
        rows += grouping(beside, plan)
    if not kafka.available():
        rows.append(told("Apache Kafka", "not measured: no Java or Maven here"))
    return rows


def starting(work: Path, plan: Plan) -> list[Row]:
    """Time to the first answer, on an empty directory, and the memory a second later.

    The first start of each does not count: it brings the files into memory, and Python compiles modules that are new.
    """
    ready: dict[str, list[float]] = {"kafka": [], "kohort": []}
    resident: dict[str, list[float]] = {"kafka": [], "kohort": []}
    has_kafka = plan.is_full and kafka.available()
    starts = {"kafka": servers.apache_kafka({})} if has_kafka else {}
    starts |= {"kohort": servers.kohort(OS)}
    for number in range(plan.rounds + 1):
        for name, start in starts.items():
            with start(work / f"{name}-{number}") as server:
                if number:
                    time.sleep(1)
                    ready[name].append(server.ready_s)
                    resident[name].append(server.resident_mib())
    rows = []
    if has_kafka:
        figure = f"{median(ready['kafka']):.2f} s, {median(resident['kafka']):.0f} MiB"
        rows.append(told(f"Kafka {servers.KAFKA_VERSION}: ready to serve in, memory then", figure))
    return [
        *rows,
        bounded("kohort: ready to serve in, s", median(ready["kohort"]), 0.3, at_most=True, digits=2),
        bounded("... memory then, MiB", median(resident["kohort"]), 80, at_most=True, digits=0),
    ]


def grouping(beside: Beside, plan: Plan) -> list[Row]:
    """Time until all members of a group are assigned, without a delay before its first generation."""
    progress(f"groups of {MEMBERS}, {_DELAY}=0")
    for server in beside.all:
        for number in range(_GROUP_ROUNDS):
            _group(server, number)
        server.await_rest()
    runs = medians(_GROUP_ROUNDS * plan.rounds, beside.all, _group)
    rows = _group_rows("0", runs)
    if beside.kafka is not None:
        ratio = runs[beside.os.name]["seconds"] / runs[beside.kafka.name]["seconds"]
        rows.append(bounded("... time against Kafka, flush os", ratio, 1, at_most=True, digits=2))
    return rows


def _group(server: Server, _: int) -> Figures:
    return client.run("group", server.address, members=MEMBERS)


def _group_rows(delay: str, runs: dict[str, Figures]) -> list[Row]:
    """Generations: a group without a delay begins with whoever comes first, and again with the others."""
    return [
        told(
            f"{MEMBERS} members assigned, delay {delay} ms: {name}",
            f"{run['seconds']:.3f} s, generation {run['generation']:.0f}",
        )
        for name, run in runs.items()
    ]
