"""OffsetCommit of 10 partitions, in closed loop, in four shapes.

Before anything is measured each server has the same load for some seconds, and then the time that it needs to be at
rest: Java compiles what Kafka does often, and numba, in the background, what kohort does often.
"""

from pathlib import Path

from bench import client, servers
from bench.beside import Beside, Plan, medians
from bench.client import Figures
from bench.machine import Meter
from bench.rows import Row, bounded, progress, told
from bench.servers import Server

SHAPES = ((1, 1), (4, 64), (64, 1), (256, 1))
"""Connections, and requests in flight on each."""
_LEAD_S = 1
"""Under load, before each measurement."""
_QUIET_CORES = 0.25
"""If others use more than this, a measurement is made again; the one that was disturbed least is taken."""


def committing(beside: Beside, plan: Plan, work: Path) -> list[Row]:
    rows = [warmed_up(server, plan) for server in beside.all]
    for conns, depth in SHAPES:
        rows += _in_shape(conns, depth, beside, plan, work)
    return rows


def warmed_up(server: Server, plan: Plan) -> Row:
    """What it takes of a core when all is compiled that is worth it."""
    progress(f"{server.name} warms up")
    for conns, depth in ((4, 64), (64, 1)):
        client.run("commit", server.address, **flags_of(server, conns, depth, plan.warm_up_s / 2))
    server.await_rest()
    return told(f"{server.name}, warm and at rest", f"{server.processor_share(2):.1%} of a core")


def in_turns(conns: int, depth: int, of: list[Server], plan: Plan) -> tuple[dict[str, Figures], list[Row]]:
    """The medians of a shape by server, and what is told of them."""
    progress(f"commits, {conns} × {depth}")

    def commit(server: Server, _: int) -> Figures:
        attempts: list[Figures] = []
        while not attempts or (attempts[-1]["other_cores"] > _QUIET_CORES and len(attempts) < plan.attempts):
            meter = Meter(server)
            run = client.run("commit", server.address, **flags_of(server, conns, depth, plan.seconds))
            attempts.append(run | meter.read())
        return min(attempts, key=lambda attempt: attempt["other_cores"])

    runs = medians(plan.rounds, of, commit)
    rows = [told(f"commits, {conns} × {depth}: {name}", _figure(run)) for name, run in runs.items()]
    others = max(run["other_cores"] for run in runs.values())
    return runs, [*rows, told("... other work on this machine meanwhile", f"{others:.2f} cores")]


def _in_shape(conns: int, depth: int, beside: Beside, plan: Plan, work: Path) -> list[Row]:
    runs, rows = in_turns(conns, depth, beside.all, plan)
    if beside.kafka is not None:
        theirs, ours = runs[beside.kafka.name], runs[beside.os.name]
        rows += [
            bounded("... requests/s against Kafka, flush os", ours["rate"] / theirs["rate"], 1, digits=2),
            bounded("... p50 against Kafka, flush os", ours["p50_ms"] / theirs["p50_ms"], 1, at_most=True, digits=2),
            bounded("... p99 against Kafka, flush os", ours["p99_ms"] / theirs["p99_ms"], 1, at_most=True, digits=2),
        ]
        if beside.always is not None:
            ratio = runs[beside.always.name]["rate"] / theirs["rate"]
            rows.append(bounded("... requests/s against Kafka, flush always", ratio, 0.7, digits=2))
    if plan.is_full:
        with servers.nothing(work / f"nothing-{conns}") as nothing:
            rows.append(ceiling(nothing, conns, depth, plan, runs))
    return rows


def ceiling(nothing: Server, conns: int, depth: int, plan: Plan, runs: dict[str, Figures]) -> Row:
    """Whether the load client could have shown more than any of the servers did."""
    most = client.run("commit", nothing.address, **flags_of(nothing, conns, depth, plan.seconds), prepare="false")
    ratio = most["rate"] / max(run["rate"] for run in runs.values())
    return bounded("... what the load client can show, against the fastest", ratio, 1.5, digits=2)


def flags_of(server: Server, conns: int, depth: int, seconds: float) -> dict[str, object]:
    load = {"conns": conns, "depth": depth, "lead": f"{_LEAD_S}s", "for": f"{seconds}s", "server": server.pid}
    return server.login | load


def _figure(run: Figures) -> str:
    """Processor time for one request: of the server, and of the load client beside it."""
    return (
        f"{run['rate']:,.0f}/s, p50 {run['p50_ms']:.2f} ms, p99 {run['p99_ms']:.2f} ms; "
        f"processor {run['server_cores'] / run['rate'] * 1e6:.0f} + {run['client_cores'] / run['rate'] * 1e6:.0f} µs"
    )
