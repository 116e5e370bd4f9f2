"""Burrow, one commit after the other: rings of commits, polls of the end, and its rules in its own order."""

from dataclasses import dataclass, field
from itertools import pairwise

from kohort.spark.tables.walk import BurrowRules
from tests.spark.tables.data import Row
from tests.spark.tables.serial_lag import Commit, Known, end_at


@dataclass
class Ends:
    """The end of one topic partition at any time; before anything is known of it, the first thing that is."""

    known: Known
    commits: list[Commit]

    def at(self, millis: int, committed: int = -1) -> int:
        """Whoever committed that shows that the end is not before it."""
        if self._first_sample() <= millis:
            return end_at(self.known, self.commits, millis)[0]
        return max(self._claimed(millis), committed)

    def polls(self, millis: int, rules: BurrowRules) -> list[int]:
        """What was asked for lately, as far back as there was anything to ask. Without any knowledge of the topic, and
        no commit that is old enough, nobody can say that the consumer was not at the end.
        """
        step = round(rules.offset_refresh_seconds * 1000)
        times = [millis - number * step for number in range(rules.intervals)]
        first = self._first_sample()
        if first <= millis:
            return [self.at(max(time, first)) for time in times]
        return [self._claimed(time) for time in times]

    def _first_sample(self) -> float:
        sampled = [time for time, _ in self.known.ends] + [time for _, time in self.known.records]
        return min(sampled, default=float("inf"))

    def _claimed(self, millis: int) -> int:
        """The furthest commit of the minutes that are over."""
        minute = millis // 60_000
        return max((commit.committed for commit in self.commits if commit.millis // 60_000 < minute), default=-1)


@dataclass
class Stored:
    """A commit that is kept."""

    committed: int
    millis: int
    lag: int


@dataclass
class Ring:
    """What Burrow knows of one topic partition of one group."""

    rules: BurrowRules
    ends: Ends
    stored: list[Stored] = field(default_factory=list)
    clock: int = -1

    def commit(self, committed: int, millis: int) -> None:
        lag = max(self.ends.at(millis, committed) - max(committed, 0), 0)
        if self.stored and millis - self.stored[-1].millis < self.rules.min_distance_seconds * 1000:
            self.stored[-1] = Stored(committed, self.stored[-1].millis, lag)
        else:
            self.stored.append(Stored(committed, self.clock, lag))
            self.stored = self.stored[-self.rules.intervals :]

    def current_lag(self, millis: int) -> int:
        committed = self.stored[-1].committed
        return max(self.ends.at(millis, committed) - max(committed, 0), 0)

    def status(self, millis: int) -> str:
        """Burrow's word at a time; the ends are those of `millis`, the clock may be ahead of it."""
        rules, stored = self.rules, self.stored
        if len(stored) / rules.intervals < rules.minimum_complete or self.current_lag(millis) <= rules.allowed_lag:
            return "OK"
        last, first = stored[-1], stored[0]
        has_stopped = self.clock - last.millis > last.millis - first.millis
        if has_stopped and not any(end <= last.committed for end in self.ends.polls(millis, rules)):
            return "STOP"
        offsets = [kept.committed for kept in stored]
        drop = next((number for number in range(1, len(offsets)) if offsets[number] < offsets[number - 1]), None)
        if drop is not None and not any(offset >= offsets[drop - 1] for offset in offsets[drop:]):
            return "REWIND"
        lags = [kept.lag for kept in stored]
        if all(lag > rules.allowed_lag for lag in lags):
            if len(set(offsets)) == 1:
                return "STALL"
            if all(later >= earlier for earlier, later in pairwise(lags)):
                return "WARN"
        return "OK"


def history(looks: list[Row], rules: BurrowRules, ends: Ends) -> list[Row]:
    """All that is told of one topic partition of one group; `looks` are its commits, tombstones, and the end."""
    told: list[Row] = []
    ring = Ring(rules, ends)
    clock = -1
    for look in looks:
        millis = look["millis"]
        ring.clock = clock = max(clock, millis)
        before = None
        if ring.stored:
            before = ring.status(millis)
            told[-1] |= {"until": ring.clock, "ended_by": look["kind"], "last_status": before}
            if before == "STOP":
                told[-1]["stopped_at"] = max(2 * ring.stored[-1].millis - ring.stored[0].millis, told[-1]["at"])
        if look["kind"] == "removed":
            ring = Ring(rules, ends)
        elif look["kind"] == "commit":
            ring.commit(look["committed"], millis)
            told.append(
                {
                    "offset": look["offset"],
                    "at": ring.clock,
                    "committed_offset": look["committed"],
                    "lag": ring.current_lag(millis),
                    "window_commits": len(ring.stored),
                    "window_start": ring.stored[0].millis,
                    "status": ring.status(millis),
                    "status_before": before,
                    "stopped_at": None,
                }
            )
    return told


def group_history(partitions: list[list[Row]], *, purged_at: int | None = None) -> list[Row]:
    """The worst of a group's partitions whenever it, or how many there are of each, changes."""
    events: dict[int, list[tuple[int, str | None]]] = {}
    for number, told in enumerate(partitions):
        for row in told:
            events.setdefault(row["at"], []).append((number, row["status"]))
            if row["last_status"] != row["status"]:
                since = row["until"] if row["stopped_at"] is None else row["stopped_at"]
                events.setdefault(since, []).append((number, row["last_status"]))
            if row["ended_by"] == "removed":
                events.setdefault(row["until"], []).append((number, None))
            elif row["ended_by"] == "now" and purged_at is not None:
                events.setdefault(purged_at, []).append((number, None))
    now: dict[int, str | None] = {}
    timeline: list[Row] = []
    counts: dict[str, int] | None = None
    for millis in sorted(events):
        now.update(events[millis])
        standing = [status for status in now.values() if status is not None]
        found = {name: standing.count(name) for name in ("OK", "WARN", "STOP", "STALL", "REWIND")}
        if found == counts:
            continue
        counts = found
        bad = found["STOP"] + found["STALL"] + found["REWIND"]
        status = "ERR" if bad else "WARN" if found["WARN"] else "OK" if standing else "NOTFOUND"
        timeline.append({"at": millis, "status": status, "partitions": len(standing)} | found)
    return timeline
