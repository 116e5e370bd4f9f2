"""What work costs as a sum of a few things that can be counted, fitted to measurements; and how far off that is.

    cost = once + per_byte · bytes + per_key · keys + per_segment · segments

No cost is negative. The fit makes the relative errors small, so that a small log counts as much as a large one. With
three things that grow it can be done by trying each choice of those that cost anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

ONCE = "once"
THINGS = (ONCE, "bytes", "keys", "segments")

Sizes = Mapping[str, float]
"""How many there are of each thing; `once` is always one."""


class CannotFit(ValueError):
    """Too few measurements for what is asked of them."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What one of each thing costs."""

    each: Mapping[str, float]

    def of(self, sizes: Sizes) -> float:
        """The cost of a log of such sizes."""
        return sum(self.parts(sizes).values())

    def parts(self, sizes: Sizes) -> dict[str, float]:
        """The same, thing by thing."""
        return {thing: cost * _count(sizes, thing) for thing, cost in self.each.items()}


def fit(measured: Sequence[tuple[Sizes, float]]) -> Costs:
    """The costs that tell the measurements best."""
    if len(measured) <= len(THINGS):
        raise CannotFit(f"{len(measured)} measurements for {len(THINGS)} costs")
    taken = np.array([cost for _, cost in measured])
    counts = np.array([[_count(sizes, thing) for thing in THINGS] for sizes, _ in measured])
    scale = counts.max(axis=0)
    relative = counts / scale / taken[:, None]
    best, least = np.zeros(len(THINGS)), np.inf
    for many in range(1, len(THINGS) + 1):
        for chosen in map(list, combinations(range(len(THINGS)), many)):
            found, *_ = np.linalg.lstsq(relative[:, chosen], np.ones(len(taken)))
            error = float(np.square(relative[:, chosen] @ found - 1).sum())
            if (found >= 0).all() and error < least:
                best, least = np.zeros(len(THINGS)), error
                best[chosen] = found
    return Costs(dict(zip(THINGS, (best / scale).tolist(), strict=True)))


def error_percent(predicted: float, measured: float) -> float:
    """How far off a prediction is; above zero if it said too much."""
    return 100 * (predicted - measured) / measured


def _count(sizes: Sizes, thing: str) -> float:
    return 1.0 if thing == ONCE else float(sizes[thing])
