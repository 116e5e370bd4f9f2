"""`make load`: 2,000 connections and 1,000 groups of 3 members that heartbeat for a minute.

Sessions end after 10 s without a heartbeat, and heartbeats come every 3 s. The load client gives up at the first answer
that is not good, so that there are figures only if no member was ever late, sent away or told to join again.
"""

import contextlib
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bench import client, servers
from bench.beside import ALWAYS
from bench.rows import Row, bounded, told
from bench.servers import Server

CONNECTIONS = 2_000
GROUPS = 1_000
MEMBERS = 3
SECONDS = 60
_OPEN_FILES = 1_024
"""The limit that most systems give to a process; server and load client have to raise it for themselves."""
_FLAT = 1.05
"""Memory may be so much at the end, against the beginning."""


def measure(work: Path, seconds: int = SECONDS) -> list[Row]:
    if not client.available():
        return [told("2,000 connections", "not measured: no Go here")]
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with servers.kohort(ALWAYS)(work / "kohort") as server:
        idle = server.resident_mib()
        flags = {"conns": CONNECTIONS, "groups": GROUPS, "members": MEMBERS, "for": f"{seconds}s"}
        reports = client.reports("heartbeat", server.address, **flags)
        assembled = next(reports)
        used, began = server.processor_s(), time.perf_counter()
        with _watched_memory(server) as samples:
            (run,) = reports
        used, took = server.processor_s() - used, time.perf_counter() - began
    start, middle, end = samples[0], samples[len(samples) // 2], samples[-1]
    return [
        told(f"{GROUPS:,} groups of {MEMBERS} assembled in", f"{assembled['assembled_seconds']:.1f} s"),
        told(
            f"heartbeats over {CONNECTIONS:,} connections, all good",
            f"{run['answers']:,.0f} in {seconds} s, {run['rate']:,.0f}/s",
        ),
        told("... p50, p99, longest", f"{run['p50_ms']:.2f} ms, {run['p99_ms']:.2f} ms, {run['max_ms']:.1f} ms"),
        told("... of a core, server and load client", f"{used / took:.1%}, {run['client_cores']:.1%}"),
        told("memory when idle, at start, middle, end", f"{idle:.1f}, {start:.1f}, {middle:.1f}, {end:.1f} MiB"),
        bounded("... end against start", end / start, _FLAT, at_most=True, digits=3),
    ]


@contextlib.contextmanager
def _watched_memory(server: Server) -> Iterator[list[float]]:
    """What the server has resident, in MiB, second by second."""
    samples, is_over = [server.resident_mib()], threading.Event()

    def watch() -> None:
        while not is_over.wait(1):
            samples.append(server.resident_mib())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()
    samples.append(server.resident_mib())
