"""Random topics with consumers of all sorts, and what somebody knows of their ends."""

import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kohort.spark.tables.walk import BurrowRules
from tests.spark.tables.data import START, Row, commit
from tests.spark.tables.serial_burrow import Ends
from tests.spark.tables.serial_lag import Commit, Known

END_SECONDS = 600
STATUSES = ("OK", "WARN", "STOP", "STALL", "REWIND")

ALL_RULES = {
    "Burrow's defaults": BurrowRules(),
    "a short window and some lag allowed": BurrowRules(intervals=3, allowed_lag=5, offset_refresh_seconds=30),
    "a window of one": BurrowRules(intervals=1),
    "half a window is not enough": BurrowRules(intervals=6, minimum_complete=0.6),
    "commits at least seven seconds apart": BurrowRules(intervals=5, min_distance_seconds=7.0),
    "groups that expire soon": BurrowRules(intervals=4, expire_group_seconds=50),
}


@dataclass
class World:
    """A topic with its commits, and what is known of its end."""

    topic: str
    rows: list[Row]
    known: Known

    @property
    def counted(self) -> list[Row]:
        return [row for row in self.rows if row["fate"] in ("plain", "committed")]

    @property
    def groups(self) -> list[str]:
        return sorted({row["group"] for row in self.counted})

    def looks(self, group: str) -> list[Row]:
        """All that Burrow sees of a group, and the end."""
        looks: list[Row] = [
            {
                "offset": row["offset"],
                "kind": "removed" if row["tombstone"] else "commit",
                "committed": row["committed_offset"],
                "millis": millis(row["timestamp"] if row["tombstone"] else row["commit_timestamp"]),
            }
            for row in self.counted
            if row["group"] == group
        ]
        return [*looks, {"offset": None, "kind": "now", "committed": None, "millis": END_SECONDS * 1000}]

    def ends(self) -> Ends:
        commits = [
            Commit(row["offset"], row["group"], row["committed_offset"], millis(row["commit_timestamp"]))
            for row in self.counted
            if not row["tombstone"]
        ]
        return Ends(self.known, commits)


def make_world(chance: random.Random, number: int) -> World:
    """Consumers that are steady, slow, stuck or anything; ends that are known well, badly or not at all."""
    topic, rate = f"t{number}", chance.choice([0.0, 0.5, 2.0])
    rows: list[Row] = []
    for group in range(chance.randrange(1, 4)):
        seconds, committed, sort = chance.randrange(200) / 1.0, 0.0, chance.choice(["steady", "slow", "stuck", "mixed"])
        for _ in range(chance.randrange(1, 30)):
            seconds += chance.choice([0.0, 0.4, 5.0, 5.0, 5.0, 60.0, -0.3]) if sort == "mixed" else 5.0
            speed = {"steady": 2.0, "slow": 0.3, "stuck": 0.0}.get(sort, chance.choice([0.0, 0.5, 3.0]))
            committed = max(committed + speed * 5, 0)
            if sort == "mixed" and chance.random() < 0.15:
                committed = max(committed - chance.randrange(20), 0)
            if seconds > END_SECONDS - 60:
                break
            changes: dict[str, Any] = {"topic": topic, "group": f"g{group}"}
            if chance.random() < 0.05:
                changes |= {"fate": chance.choice(["aborted", "open", "committed"]), "transactional": True}
            is_tombstone = sort == "mixed" and chance.random() < 0.05
            place = number * 10_000 + group * 1_000 + len(rows)
            rows.append(commit(place, None if is_tombstone else int(committed), max(seconds, 0.0), **changes))
    known = Known()
    if chance.random() < 0.7:
        for moment in sorted(chance.sample(range(END_SECONDS), chance.choice([1, 5, 60]))):
            if chance.random() < 0.5:
                known.ends.append((moment * 1000, int(moment * rate)))
            else:
                known.records.append((int(moment * rate) - 1, moment * 1000))
    return World(topic, rows, known)


def make_worlds(seed: int, count: int) -> list[World]:
    chance = random.Random(seed)
    return [make_world(chance, number) for number in range(count)]


def millis(instant: datetime) -> int:
    """Milliseconds since the tests begin."""
    return round((instant - START).total_seconds() * 1000)
