"""What the processes below this one take: time of the processor, and memory."""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOK_EVERY_S = 0.2


@dataclass(slots=True)
class Taken:
    """What was taken meanwhile. Processes come and go, so each is looked at every so often while it is there."""

    peak_mib: dict[str, float] = field(default_factory=lambda: {"java": 0.0, "python": 0.0, "driver": 0.0})
    """The most that Java, the largest of the Python workers, and this process had in memory."""
    _before: dict[int, float] = field(default_factory=dict)
    _latest: dict[int, float] = field(default_factory=dict)

    @property
    def processor_s(self) -> float:
        """On all cores together, user and system."""
        return sum(used - self._before.get(number, 0.0) for number, used in self._latest.items())

    def begin(self) -> None:
        self._before = {number: _used(number) for number in _all()}

    def look(self) -> None:
        for number in _all():
            self._latest[number] = max(_used(number), self._latest.get(number, 0.0))
            kind = "driver" if number == os.getpid() else "python" if _is_python(number) else "java"
            self.peak_mib[kind] = max(self.peak_mib[kind], _resident_mib(number))


@contextlib.contextmanager
def watched() -> Iterator[Taken]:
    """What this process and all below it take until the end of the block; it is told then."""
    taken = Taken()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_EVERY_S):
            taken.look()

    taken.begin()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield taken
    finally:
        done.set()
        watcher.join()
        taken.look()


def _all() -> list[int]:
    return [os.getpid(), *_below(os.getpid())]


def _below(process: int) -> Iterator[int]:
    """The processes that descend from one. Any may end at any time."""
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for number in _read(children).split():
            yield int(number)
            yield from _below(int(number))


def _used(process: int) -> float:
    fields = _read(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:13]) / _TICKS


def _resident_mib(process: int) -> float:
    fields = _read(Path(f"/proc/{process}/statm")).split()
    return int(fields[1]) * _PAGE / (1 << 20) if fields else 0.0


def _is_python(process: int) -> bool:
    """Java's threads have names of their own, and for a moment so has a process that one of them starts."""
    return _read(Path(f"/proc/{process}/comm")).startswith("python")


def _read(path: Path) -> str:
    """What the system tells of a process; nothing if it has ended meanwhile."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
