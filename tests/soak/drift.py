"""Whether something grows: the median of the last quarter of a run against that of the second.

The first quarter is left out: caches fill, and what expires has not begun to. A leak goes on; what is merely busy stays
where it was. Each quantity has its own allowance, as a factor and something on top for what is small. Times may grow by
as much as those of a request that asks for nothing: then somebody else has the machine. What the broker itself does for
a commit is told by the time of the processor, which has no such excuse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

Sample = Mapping[str, float]
"""What was measured at one moment, by name."""


@dataclass(frozen=True, slots=True)
class Allowance:
    factor: float
    extra: float
    beside: str | None = None
    """What it may grow with."""


ALLOWED = {
    "memory, MiB": Allowance(1.10, 4),
    "open files": Allowance(1.05, 20),
    "threads": Allowance(1.0, 1),
    "tasks": Allowance(1.0, 5),
    "connections": Allowance(1.05, 20),
    "groups": Allowance(1.10, 50),
    "offsets": Allowance(1.10, 200),
    "logs, MiB": Allowance(1.25, 4),
    "files on disk": Allowance(1.25, 50),
    "processor, ms per commit": Allowance(1.3, 0.5),
    "commit p50, ms": Allowance(1.5, 5, "nothing p50, ms"),
    "commit p99, ms": Allowance(1.75, 20, "nothing p99, ms"),
}
FEWEST = 8
"""Two samples for each quarter."""


@dataclass(frozen=True, slots=True)
class Drift:
    name: str
    first: float
    second: float
    last: float
    busier: float = 1.0
    """By how much that has grown which it may grow with."""

    @property
    def most(self) -> float:
        allowed = ALLOWED[self.name]
        return (self.second * allowed.factor + allowed.extra) * self.busier

    @property
    def is_leak(self) -> bool:
        return self.last > self.most


def drifts(samples: Sequence[Sample]) -> list[Drift]:
    """One for each quantity."""
    if len(samples) < FEWEST:
        raise ValueError(f"{len(samples)} samples are too few to tell, {FEWEST} are needed")
    quarter = len(samples) // 4
    parts = samples[:quarter], samples[quarter : 2 * quarter], samples[-quarter:]
    found = []
    for name, allowed in ALLOWED.items():
        drift = Drift(name, *_medians(parts, name))
        if allowed.beside is not None:
            _, second, last = _medians(parts, allowed.beside)
            drift = replace(drift, busier=max(1.0, last / second))
        found.append(drift)
    return found


def _medians(parts: Sequence[Sequence[Sample]], name: str) -> list[float]:
    return [median(sample[name] for sample in part) for part in parts]


def table(found: Sequence[Drift]) -> str:
    """Medians of the first, second and last quarter, and the most that the last may be."""
    lines = [f"{'':26}{'first':>10}{'second':>10}{'last':>10}{'at most':>10}"]
    for one in found:
        verdict = "  GROWS" if one.is_leak else ""
        lines.append(f"{one.name:26}{one.first:10.1f}{one.second:10.1f}{one.last:10.1f}{one.most:10.1f}{verdict}")
    return "\n".join(lines)
