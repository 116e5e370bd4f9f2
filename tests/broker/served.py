"""`kohort serve` in a process of its own, whose memory is measured from outside."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen


@contextmanager
def served(settings: Mapping[str, str] | None = None) -> Iterator[tuple[int, Callable[[], int]]]:
    """Its port, and a way to ask for the most memory that it ever had."""
    command = [sys.executable, "-m", "kohort.cli.main", "serve", "--listen", "127.0.0.1:0", "--memory"]
    for name, value in {"group.initial.rebalance.delay.ms": "0", **(settings or {})}.items():
        command += ["--set", f"{name}={value}"]
    process = Popen(command, stdout=PIPE, text=True)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        port = int(ready.split("kafka=")[1].split()[0].rpartition(":")[2])
        status = Path(f"/proc/{process.pid}/status")
        yield port, lambda: int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0
