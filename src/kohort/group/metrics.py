"""What a coordinator counts, under the names of Kafka's metrics."""

from collections.abc import Callable, Iterable

from kohort.clock import Clock
from kohort.group.group_metadata import GroupMetadata
from kohort.group.states import GroupState

_WINDOW_MS = 30_000


class Meter:
    """How often something happened: ever, and a second, over the last window and the one that has begun."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ms = clock.monotonic_ms()
        self._before = 0
        self._now = 0
        self._has_before = False
        self.count = 0

    def record(self, number: int = 1) -> None:
        self._turn()
        self._now += number
        self.count += number

    def rate(self) -> float:
        """Per second."""
        self._turn()
        elapsed = self._clock.monotonic_ms() - self._began_ms + (_WINDOW_MS if self._has_before else 0)
        return (self._before + self._now) * 1000 / max(elapsed, _WINDOW_MS)

    def _turn(self) -> None:
        """Begin a new window when the current one is full."""
        windows = (self._clock.monotonic_ms() - self._began_ms) // _WINDOW_MS
        if windows:
            self._before = self._now if windows == 1 else 0
            self._has_before = True
            self._now = 0
            self._began_ms += windows * _WINDOW_MS


class LoadTimes:
    """How long the loads of the last windows took, and how much they read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loads: list[tuple[int, int]] = []
        self.loaded_records = 0

    def record(self, duration_ms: int, records: int) -> None:
        self._loads = self._recent()
        self._loads.append((self._clock.monotonic_ms(), duration_ms))
        self.loaded_records += records

    def maximum(self) -> float:
        """NaN when there was none."""
        return max((float(duration) for _, duration in self._recent()), default=float("nan"))

    def average(self) -> float:
        """NaN when there was none."""
        recent = self._recent()
        return sum(duration for _, duration in recent) / len(recent) if recent else float("nan")

    def _recent(self) -> list[tuple[int, int]]:
        since = self._clock.monotonic_ms() - 2 * _WINDOW_MS
        return [load for load in self._loads if load[0] >= since]


class GroupMetrics:
    """The counters of one coordinator."""

    def __init__(self, clock: Clock) -> None:
        self.offset_commits = Meter(clock)
        self.offset_expirations = Meter(clock)
        self.offset_deletions = Meter(clock)
        self.completed_rebalances = Meter(clock)
        self.rebalance_listeners: list[Callable[[GroupMetadata], None]] = []
        """Called with each group that completes a rebalance."""
        self.partition_loads = LoadTimes(clock)
        self.unreadable_records = 0

    def rebalance_completed(self, group: GroupMetadata) -> None:
        self.completed_rebalances.record()
        for listener in self.rebalance_listeners:
            listener(group)

    def snapshot(self, groups: Iterable[GroupMetadata]) -> dict[str, float]:
        """Every metric by its Kafka name; the last two are kohort's own."""
        states = dict.fromkeys(GroupState, 0)
        offsets = 0
        for group in groups:
            states[group.state] += 1
            offsets += len(group.offsets)
        return {
            "NumOffsets": offsets,
            "NumGroups": sum(states.values()),
            **{f"NumGroups{state.value}": number for state, number in states.items()},
            "offset-commit-count": self.offset_commits.count,
            "offset-commit-rate": self.offset_commits.rate(),
            "offset-expiration-count": self.offset_expirations.count,
            "offset-expiration-rate": self.offset_expirations.rate(),
            "offset-deletion-count": self.offset_deletions.count,
            "offset-deletion-rate": self.offset_deletions.rate(),
            "group-completed-rebalance-count": self.completed_rebalances.count,
            "group-completed-rebalance-rate": self.completed_rebalances.rate(),
            "partition-load-time-max": self.partition_loads.maximum(),
            "partition-load-time-avg": self.partition_loads.average(),
            "partition-load-records": self.partition_loads.loaded_records,
            "unreadable-records": self.unreadable_records,
        }
