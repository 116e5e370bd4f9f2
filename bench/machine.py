"""What the machine does beside the measurement: figures of a busy one say little."""

import os
import resource
from pathlib import Path
from time import perf_counter

from bench.servers import Server

_IDLE_FIELDS = (3, 4)


def busy_s() -> float:
    """Processor time of everybody since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = sum(int(field) for place, field in enumerate(fields) if place not in _IDLE_FIELDS)
    return ticks / os.sysconf("SC_CLK_TCK")


class Meter:
    """What a server, and what others than it and the load client, have used since this was made."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._before = self._read()

    def _read(self) -> tuple[float, float, float, float]:
        clients = resource.getrusage(resource.RUSAGE_CHILDREN)
        return perf_counter(), self._server.processor_s(), clients.ru_utime + clients.ru_stime, busy_s()

    def read(self) -> dict[str, float]:
        took, server, clients, all_busy = (now - then for now, then in zip(self._read(), self._before, strict=True))
        return {"server_s": server, "other_cores": max(0.0, all_busy - server - clients) / took}
