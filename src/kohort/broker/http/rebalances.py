"""How often each group has rebalanced in the last hour, counted minute by minute."""

from kohort.clock import Clock
from kohort.group.group_metadata import GroupMetadata
from kohort.group.requests import GroupId

_MINUTE_MS = 60_000
_MINUTES = 60
_MOST_GROUPS = 100_000
"""Beyond these the group whose last rebalance is the longest ago is forgotten."""


class RecentRebalances:
    """A listener for completed rebalances. What is older than an hour is let go of."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._groups: dict[GroupId, dict[int, int]] = {}
        """For each minute the number of rebalances; the group that rebalanced last stands last."""

    def __len__(self) -> int:
        return len(self._groups)

    def on_rebalance(self, group: GroupMetadata) -> None:
        """A group has completed one."""
        minute = self._minute()
        minutes = {at: n for at, n in self._groups.pop(group.group_id, {}).items() if at > minute - _MINUTES}
        minutes[minute] = minutes.get(minute, 0) + 1
        self._groups[group.group_id] = minutes
        while len(self._groups) > _MOST_GROUPS or self._is_first_outdated(minute):
            del self._groups[next(iter(self._groups))]

    def count(self, group_id: GroupId) -> int:
        since = self._minute() - _MINUTES
        return sum(number for at, number in self._groups.get(group_id, {}).items() if at > since)

    def _minute(self) -> int:
        return self._clock.monotonic_ms() // _MINUTE_MS

    def _is_first_outdated(self, minute: int) -> bool:
        first = next(iter(self._groups.values()))
        return max(first) <= minute - _MINUTES
