"""What a broker takes at a moment: from the system, from its metrics and from its directory."""

import os
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1 << 20
_PATIENCE_S = 120
_GAUGES = {
    "kohort_tasks": "tasks",
    "kafka_server_socket_server_metrics_connection_count": "connections",
    "kafka_coordinator_group_groupmetadatamanager_numgroups": "groups",
    "kafka_coordinator_group_groupmetadatamanager_numoffsets": "offsets",
}


def measure(process: int, http_port: int, data: Path) -> dict[str, float]:
    system = Path("/proc") / str(process)
    sizes = [size for path in data.rglob("*") if (size := _allocated(path)) is not None]
    return {
        "memory, MiB": int((system / "statm").read_text().split()[1]) * _PAGE / _MIB,
        "open files": len(list((system / "fd").iterdir())),
        "threads": len(list((system / "task").iterdir())),
        "logs, MiB": sum(sizes) / _MIB,
        "files on disk": len(sizes),
        **_gauges(http_port),
    }


def processor_s(process: int) -> float:
    """What it has used of the processor so far, user and system."""
    fields = (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:13]) / _TICKS


def _allocated(path: Path) -> int | None:
    """Bytes of a file of a partition; None if it is something else, or gone meanwhile."""
    if path.parent.name == "data":
        return None
    try:
        return path.stat().st_size if path.is_file() else None
    except FileNotFoundError:
        return None


def _gauges(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_PATIENCE_S) as answer:
        text = answer.read().decode()
    found = {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}
    return {name: found[gauge] for gauge, name in _GAUGES.items()}
