"""Offsets that went back or leapt ahead: each kind once, and what is none."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark.tables.offset_jumps import offset_jumps
from kohort.spark.tables.walk import JumpRules
from tests.spark.tables.data import GroupLog, M, Row, at, commit, frame, rows_of

HOSTILE = "<script>\x00';--"


class _Log:
    """Commits and group records of one partition, in the order in which they are written."""

    def __init__(self) -> None:
        self.commits: list[Row] = []
        self.groups = GroupLog()
        self._offset = 0

    def commit(self, committed: int | None, seconds: float, **changes: Any) -> None:
        self.commits.append(commit(self._offset, committed, seconds, **changes))
        self._offset += 1

    def steady(self, group: str, commits: int = 12, **changes: Any) -> None:
        """A consumer of 500 messages a second, as its commits show."""
        for number in range(commits):
            self.commit(number * 5_000, number * 10.0, group=group, **changes)

    def group(self, generation: int, *members: M, group: str) -> None:
        self._record(lambda: self.groups.write(generation, *members, group=group))

    def remove_group(self, group: str) -> None:
        self._record(lambda: self.groups.remove(group=group))

    def _record(self, write: Any) -> None:
        rows = (self.groups.generations, self.groups.members, self.groups.assignments)
        before = [len(part) for part in rows]
        write()
        for part, known in zip(rows, before, strict=True):
            for row in part[known:]:
                row["offset"] = self._offset
        self._offset += 1


def _cases() -> _Log:
    log = _Log()
    log.group(4, M("m-1", ["t-1"], client="c1"), M("m-2", ["t-0"], client="c2", host="/h2"), group="back")
    log.steady("back", 5)
    log.commit(19_000, 60, group="back")
    log.steady("to the start", 5)
    log.commit(0, 60, group="to the start")
    log.steady("to a known start", 5, topic="known")
    log.commit(7_000, 60, group="to a known start", topic="known")
    log.steady("leap")
    log.commit(5_000_000, 120, group="leap")
    log.steady("leap to the end", topic="known")
    log.commit(1_000_000, 120, group="leap to the end", topic="known")
    # No jumps: catching up at ten times the pace, a long pause, a step that is short, and one that nobody can judge.
    log.steady("hurry")
    log.commit(55_000 + 49_000, 120, group="hurry")
    log.commit(55_000 + 49_000 + 10_000_000, 100_000, group="hurry")
    log.commit(0, 0, group="short")
    for number in range(1, 20):
        log.commit(number, number * 10.0, group="short")
    log.commit(19 + 999, 200, group="short")
    log.steady("new", 3)
    log.commit(5_000_000, 40, group="new")
    # A tool sets the offset of a group that has lost its members; then somebody who does not join goes on from there.
    log.group(4, M("m-1", ["t-0"]), group="tool")
    log.commit(10, 0, group="tool")
    log.group(5, group="tool")
    log.commit(90_000, 5_000, group="tool")
    log.commit(95_000, 10_000, group="tool")
    log.remove_group("tool")
    log.commit(80_000, 20_000, group="tool")
    # An expired offset, and a consumer that starts again.
    log.commit(8_000, 0, group="expired")
    log.commit(None, 700, group="expired")
    log.commit(12, 800, group="expired")
    # What was aborted or is open was never there.
    log.commit(50, 0, group="transactions", fate="committed")
    log.commit(10, 1, group="transactions", fate="aborted")
    log.commit(11, 2, group="transactions", fate="open")
    log.commit(60, 3, group="transactions", fate="committed")
    log.commit(55, 4, group="transactions", fate="committed")
    log.commit(500, 0, group=HOSTILE, topic=HOSTILE)
    log.commit(400, 1, group=HOSTILE, topic=HOSTILE)
    log.commit(9, 0, group="timeless", commit_timestamp=None, timestamp=None)
    log.commit(8, 0, group="timeless", commit_timestamp=None, timestamp=None)
    log.commit(9_000, 0, group="timeless", commit_timestamp=None, timestamp=None)
    return log


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> dict[str, list[Row]]:
    log = _cases()
    place: Row = {"topic": "known", "topic_partition": 0}
    table = offset_jumps(
        frame(spark, "offset_commits", log.commits),
        *log.groups.tables(spark),
        end_offsets=frame(
            spark,
            "end_offsets",
            [
                place | {"start_offset": 7_000, "end_offset": 500_000, "at": at(60)},
                place | {"start_offset": 9_000, "end_offset": 1_500_000, "at": at(180)},
            ],
        ),
    )
    groups: dict[str, list[Row]] = {}
    for row in rows_of(table, "partition", "offset"):
        groups.setdefault(row["group"], []).append(row)
    return groups


@pytest.mark.parametrize(
    ("group", "jumps"),
    [
        ("back", [("rewind", "backward", 20_000, 19_000)]),
        ("to the start", [("reset_to_earliest", "backward", 20_000, 0)]),
        ("to a known start", [("reset_to_earliest", "backward", 20_000, 7_000)]),
        ("leap", [("skip", "faster_than_ever", 55_000, 5_000_000)]),
        ("leap to the end", [("reset_to_latest", "faster_than_ever", 55_000, 1_000_000)]),
        ("tool", [("skip", "group_empty", 10, 90_000), ("rewind", "backward", 95_000, 80_000)]),
        ("expired", [("rewind", "backward", 8_000, 12)]),
        ("transactions", [("rewind", "backward", 60, 55)]),
        (HOSTILE, [("rewind", "backward", 500, 400)]),
        ("timeless", [("rewind", "backward", 9, 8)]),
    ],
)
def test_jump(told: dict[str, list[Row]], group: str, jumps: list[tuple[Any, ...]]) -> None:
    found = [(row["kind"], row["evidence"], row["from_offset"], row["to_offset"]) for row in told[group]]
    assert found == jumps


def test_what_goes_on_as_ever_is_no_jump(told: dict[str, list[Row]]) -> None:
    assert not {"hurry", "short", "new"} & told.keys()


def test_a_jump_over_a_tombstone_says_so(told: dict[str, list[Row]]) -> None:
    assert told["expired"][0]["after_tombstone"]
    assert not told["back"][0]["after_tombstone"]


def test_who_did_it_is_the_owner_in_the_generation_of_that_time(told: dict[str, list[Row]]) -> None:
    names = ("generation", "member_id", "client_id", "client_host")
    assert tuple(told["back"][0][name] for name in names) == (4, "m-2", "c2", "/h2")
    assert tuple(told["tool"][0][name] for name in names) == (5, None, None, None)
    assert tuple(told["tool"][1][name] for name in names) == (None, None, None, None)
    assert tuple(told["leap"][0][name] for name in names) == (None, None, None, None)


def test_a_jump_tells_when_how_far_and_how_fast(told: dict[str, list[Row]]) -> None:
    leap, back = told["leap"][0], told["back"][0]
    assert (leap["at"], leap["previous_at"], leap["distance"]) == (at(120), at(110), 4_945_000)
    assert (leap["speed"], leap["fastest_before"]) == (494_500, 500)
    assert back["distance"] == -1_000
    assert told["timeless"][0]["at"] is None


def test_the_rules_can_be_others_and_nothing_but_commits_is_needed(spark: SparkSession) -> None:
    rules = JumpRules(least_messages=10, speed_factor=2.0, least_commits=1)
    commits = [commit(0, 0, 0), commit(1, 10, 10), commit(2, 100, 20), commit(3, 109, 30)]
    (row,) = rows_of(offset_jumps(frame(spark, "offset_commits", commits), rules=rules))
    assert (row["to_offset"], row["kind"], row["generation"], row["member_id"]) == (100, "skip", None, None)
