"""Servers side by side: all run at the same time on this machine, one of them under load.

Rounds go around the servers, so that a bad minute of the machine hits all of them, and the median is told.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import kafka, servers
from bench.client import Figures
from bench.servers import Server, Start

OS = {"log.flush.mode": "os"}
ALWAYS = {"log.flush.mode": "always"}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    seconds: int
    """Of each measurement."""
    attempts: int
    """At a measurement that others on the machine disturb."""
    warm_up_s: int
    mib: int
    """Of records, in each measurement."""
    is_full: bool
    """With Kafka, with flush `always`, and with what the load client can show; otherwise kohort beside kfake."""


FULL = Plan(rounds=3, seconds=4, attempts=3, warm_up_s=10, mib=300, is_full=True)
QUICK = Plan(rounds=1, seconds=2, attempts=1, warm_up_s=5, mib=100, is_full=False)


@dataclass(frozen=True, slots=True)
class Beside:
    """The servers of a run; Kafka, where there is one, is the yardstick."""

    os: Server
    always: Server | None
    kafka: Server | None
    kfake: Server

    @property
    def all(self) -> list[Server]:
        return [server for server in (self.kafka, self.kfake, self.os, self.always) if server is not None]


@contextlib.contextmanager
def running(work: Path, plan: Plan, settings: dict[str, str]) -> Iterator[Beside]:
    with contextlib.ExitStack() as stack:

        def start(how: Start, name: str) -> Server:
            return stack.enter_context(how(work / name))

        yield Beside(
            os=start(servers.kohort(settings | OS), "os"),
            always=start(servers.kohort(settings | ALWAYS), "always") if plan.is_full else None,
            kafka=start(servers.apache_kafka(settings), "kafka") if plan.is_full and kafka.available() else None,
            kfake=start(servers.kfake, "kfake"),
        )


def medians(rounds: int, of: list[Server], measure: Callable[[Server, int], Figures]) -> dict[str, Figures]:
    """Each figure's median over the rounds, by server. What others wrote is on the disk before it is one's turn."""
    runs: dict[str, list[Figures]] = {server.name: [] for server in of}
    for number in range(rounds):
        for server in of:
            os.sync()
            runs[server.name].append(measure(server, number))
    return {
        name: {figure: median(run[figure] for run in of_server) for figure in of_server[0]}
        for name, of_server in runs.items()
    }
