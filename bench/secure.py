"""What TLS, logins and permissions cost commits, beside Apache Kafka that does the same.

The user who commits has logged in over TLS, and may read the groups and the topic of the measurement and nothing else:
before anything is measured, both brokers have to refuse what he may not.
"""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from bench import client, kafka, secrets, servers
from bench.beside import ALWAYS, OS, Plan
from bench.client import Figures
from bench.commits import SHAPES, ceiling, in_turns, warmed_up
from bench.rows import Row, bounded, progress, told
from bench.secrets import ADMIN, USER, Secrets
from bench.servers import Server, Start

FULL = Plan(rounds=3, seconds=3, attempts=3, warm_up_s=16, mib=0, is_full=True)
QUICK = Plan(rounds=1, seconds=2, attempts=1, warm_up_s=10, mib=0, is_full=False)


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is there with security, with less of it, and without."""

    os: Server
    always: Server
    no_acls: Server
    open: Server
    kafka: Server | None
    open_kafka: Server | None

    @property
    def all(self) -> list[Server]:
        there = (self.kafka, self.os, self.always, self.no_acls, self.open, self.open_kafka)
        return [server for server in there if server is not None]


def measure(work: Path, plan: Plan) -> list[Row]:
    if not client.available():
        return [told("TLS and permissions beside Apache Kafka", "not measured: no Go here")]
    known = secrets.make(work / "secrets")
    with contextlib.ExitStack() as stack:

        def start(how: Start, name: str) -> Server:
            progress(f"{name} starts")
            return stack.enter_context(how(work / name))

        has_kafka = kafka.available()
        beside = _Beside(
            os=start(servers.kohort(OS, known), "os"),
            always=start(servers.kohort(ALWAYS, known), "always"),
            no_acls=start(servers.kohort(OS, known, acls=False), "no-acls"),
            open=start(servers.kohort(OS), "open"),
            kafka=start(servers.apache_kafka({}, known), "kafka") if has_kafka else None,
            open_kafka=start(servers.apache_kafka({}), "open-kafka") if has_kafka and plan.is_full else None,
        )
        with_acls = (beside.kafka, beside.os, beside.always)
        rows = [_settled(server, known) for server in with_acls if server is not None]
        _permit(beside.no_acls, known, acls=False)
        rows += [warmed_up(server, plan) for server in beside.all]
        for conns, depth in SHAPES:
            rows += _in_shape(conns, depth, beside, plan, work, known)
    if not has_kafka:
        rows.append(told("Apache Kafka", "not measured: no Java or Maven here"))
    return rows


def _permit(server: Server, known: Secrets, *, acls: bool) -> None:
    """The broker keeps the user's password, has the topic, and is told what the user may."""
    user = {"to": USER, "to-password-file": known.password_file(USER), "acls": str(acls).lower()}
    client.run("permit", server.address, **known.login(ADMIN), **user)


def _settled(server: Server, known: Secrets) -> Row:
    _permit(server, known, acls=True)
    shown = client.run("refused", server.address, **server.login)
    return told(f"{server.name}: refuses what is not allowed, speaks", str(shown["speaks"]))


def _in_shape(conns: int, depth: int, beside: _Beside, plan: Plan, work: Path, known: Secrets) -> list[Row]:
    runs, rows = in_turns(conns, depth, beside.all, plan)

    def ratio(one: Server, other: Server, figure: str = "rate") -> float:
        return runs[one.name][figure] / runs[other.name][figure]

    if beside.kafka is not None:
        rows += [
            bounded("... requests/s against Kafka, flush os", ratio(beside.os, beside.kafka), 1, digits=2),
            told("... requests/s against Kafka, flush always", f"{ratio(beside.always, beside.kafka):.2f}"),
            told(
                "... p50, p99 against Kafka, flush os",
                f"{ratio(beside.os, beside.kafka, 'p50_ms'):.2f}, {ratio(beside.os, beside.kafka, 'p99_ms'):.2f}",
            ),
        ]
    rows += [
        _cost("TLS and logins", runs[beside.no_acls.name], runs[beside.open.name]),
        _cost("ACLs", runs[beside.os.name], runs[beside.no_acls.name]),
        _cost("both", runs[beside.os.name], runs[beside.open.name]),
    ]
    if beside.kafka is not None and beside.open_kafka is not None:
        rows.append(_cost("both in Kafka", runs[beside.kafka.name], runs[beside.open_kafka.name]))
    if plan.is_full:
        with servers.nothing(work / f"nothing-{conns}", known) as nothing:
            rows.append(ceiling(_anonymous(nothing, known), conns, depth, plan, runs))
    return rows


def _cost(of: str, with_it: Figures, without: Figures) -> Row:
    """By the rate and by the server's processor time for a request, which other work on the machine disturbs less."""
    rate = with_it["rate"] / without["rate"]
    microseconds = (with_it["server_cores"] / with_it["rate"] - without["server_cores"] / without["rate"]) * 1e6
    return told(f"... with {of}: rate against without, processor more", f"{rate:.2f}, {microseconds:+.0f} µs")


def _anonymous(server: Server, known: Secrets) -> Server:
    """One that speaks TLS and asks nobody who he is."""
    return replace(server, login={"authority": known.authority})
