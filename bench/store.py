"""Commits that a PostgreSQL database keeps, beside local files and Apache Kafka; and how fast a store is loaded.

The database is Debian's, on this machine and this disk, with its own settings: what is acknowledged is on the disk.
"""

import contextlib
import sys
from pathlib import Path

from tests.postgresql import NoPostgresql, postgresql

from bench import client, kafka, servers
from bench.beside import ALWAYS, Plan
from bench.commits import SHAPES, flags_of, in_turns, warmed_up
from bench.rows import Row, bounded, progress, told
from bench.servers import Server, free_port, running

_FILLING_S = 10
_OFFSETS_A_COMMIT = 10


def measure(work: Path, plan: Plan) -> list[Row]:
    if not client.available():
        return [told("commits in a database", "not measured: no Go here")]
    try:
        with postgresql() as database:
            return _beside(work, plan, database.url)
    except NoPostgresql as reason:
        return [told("commits in a database", f"not measured: {reason}")]


def _beside(work: Path, plan: Plan, url: str) -> list[Row]:
    with contextlib.ExitStack() as stack:
        stored = stack.enter_context(_started(work / "store", ["--store", url]))
        local = stack.enter_context(servers.kohort(ALWAYS)(work / "always"))
        of = [stored, local]
        if plan.is_full and kafka.available():
            of.append(stack.enter_context(servers.apache_kafka({})(work / "kafka")))
        rows = [warmed_up(server, plan) for server in of]
        for conns, depth in SHAPES:
            runs, more = in_turns(conns, depth, of, plan)
            rows += more
            rows.append(_ratio("... requests/s against local files", stored, local, runs))
            for yardstick in of[2:]:
                ratio = runs[stored.name]["rate"] / runs[yardstick.name]["rate"]
                rows.append(bounded("... requests/s against Kafka", ratio, 0.7, digits=2))
    return rows + _loading(work, url)


def _ratio(what: str, one: Server, other: Server, runs: dict[str, dict[str, float]]) -> Row:
    return told(what, f"{runs[one.name]['rate'] / runs[other.name]['rate']:.2f}")


def _loading(work: Path, url: str) -> list[Row]:
    """Each is filled by commits for a while, and started again: what counts are offsets by the second of that start."""
    progress("loading")
    speeds = {}
    for name, place in (("PostgreSQL", ["--store", url]), ("local files", ["--data", str(work / "loaded-data")])):
        with _started(work / f"filling {name}", place) as server:
            filled = client.run("commit", server.address, **flags_of(server, 4, 64, _FILLING_S))
        with _started(work / f"loading {name}", place) as server:
            speeds[name] = filled["rate"] * _FILLING_S * _OFFSETS_A_COMMIT / server.ready_s
    figure = ", ".join(f"{speed / 1e6:.2f} M a second from {name}" for name, speed in speeds.items())
    return [
        told("offsets loaded, the start of the process included", figure),
        bounded("... from PostgreSQL against local files", speeds["PostgreSQL"] / speeds["local files"], 0.3, digits=2),
    ]


def _started(work: Path, place: list[str]) -> contextlib.AbstractContextManager[Server]:
    work.mkdir(parents=True)
    port = free_port()
    command = [str(Path(sys.executable).parent / "kohort"), "serve", "--listen", f"127.0.0.1:{port}", *place]
    return running(f"kohort, {' '.join(place[:1])}", command, port, work)
