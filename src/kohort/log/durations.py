"""How long things took, counted in a few buckets: recording one costs a search among six numbers and two additions."""

from bisect import bisect_left

BOUNDS_MS = (1, 5, 25, 100, 600, 5_000)
"""Upper ends. Long polls that find nothing (500 ms unless a client says otherwise) have a bucket of their own."""

_BOUNDS_S = tuple(bound / 1000 for bound in BOUNDS_MS)


class Durations:
    """Written by one thread; whoever reads meanwhile may miss the newest."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        """One for each bound, and those that took longer than all of them."""
        self.total_s = 0.0

    def record(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS_S, seconds)] += 1
        self.total_s += seconds
