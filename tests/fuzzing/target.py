"""What a fuzzing target is: a function that takes any bytes, with a name. It raises where something is wrong.

A target decides itself which errors are foreseen; what gets out of it is a failure. So is an input of a few kilobytes
that takes seconds of the processor or hundreds of megabytes.
"""

import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.fuzzing.corpus import kept

LONGEST_INPUT = 4096
_MOST_CPU_S = 10.0
"""Time of the processor, not of the clock: whoever is stopped for a while is not slow."""
_MOST_GROWTH_KIB = 256 * 1024

Fuzz = Callable[[bytes], object]
Seeds = Callable[[], Iterable[bytes]]


class TooExpensive(Exception):
    """A small input that took too much time or memory."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to be fuzzed, and inputs to begin with."""

    name: str
    fuzz: Fuzz
    seeds: Seeds

    def run(self, data: bytes) -> None:
        """One input, and what it cost."""
        began, most_before = time.thread_time(), _peak_kib()
        self.fuzz(data)
        spent, grown = time.thread_time() - began, _peak_kib() - most_before
        if spent > _MOST_CPU_S:
            raise TooExpensive(f"{len(data)} bytes took {spent:.1f} s")
        if grown > _MOST_GROWTH_KIB:
            raise TooExpensive(f"{len(data)} bytes took {grown // 1024} MiB more than anything before")

    def inputs(self) -> list[bytes]:
        """Seeds that are short enough, and what is kept of earlier runs."""
        return [seed for seed in self.seeds() if len(seed) <= LONGEST_INPUT] + list(kept(self.name).values())


TARGETS: dict[str, Target] = {}


def target(name: str, seeds: Seeds) -> Callable[[Fuzz], Fuzz]:
    """Registers a function as a target."""

    def register(fuzz: Fuzz) -> Fuzz:
        if name in TARGETS:
            raise ValueError(f"{name} is fuzzed twice")
        TARGETS[name] = Target(name, fuzz, seeds)
        return fuzz

    return register


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
