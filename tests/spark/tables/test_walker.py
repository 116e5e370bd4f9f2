"""The walk without Spark: Burrow written out serially says the same, wherever batches are cut."""

import random
from collections import Counter

import pyarrow as pa
import pytest

from kohort.spark.tables import walk_kinds as kinds
from kohort.spark.tables.walk import BurrowRules
from kohort.spark.tables.walker import Walker, WalkRules
from tests.spark.tables.data import Row
from tests.spark.tables.serial_burrow import history
from tests.spark.tables.worlds import ALL_RULES, END_SECONDS, STATUSES, World, make_worlds, millis

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_partition", pa.int32()),
        ("kind", pa.int8()),
        ("group", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.int64()),
        ("millis", pa.int64()),
    ]
)


def _fact(topic: str, kind: int, time: int, value: int) -> Row:
    return _row(topic, "", kind, time, value, time)


def _row(topic: str, group: str, kind: int, offset: int, value: int | None, time: int | None) -> Row:
    return {
        "topic": topic,
        "topic_partition": 0,
        "kind": kind,
        "group": group,
        "partition": 0,
        "offset": offset,
        "value": value,
        "millis": time,
    }


def _rows(world: World) -> list[Row]:
    """What a task gets to see of a topic: samples, then claims, then the commits of each group."""
    samples = [_fact(world.topic, kinds.END_SAMPLE, time, end) for time, end in world.known.ends]
    samples += [_fact(world.topic, kinds.RECORD_SAMPLE, time, offset + 1) for offset, time in world.known.records]
    furthest: dict[int, int] = {}
    for row in world.counted:
        if not row["tombstone"]:
            minute = millis(row["commit_timestamp"]) // 60_000
            furthest[minute] = max(furthest.get(minute, -1), row["committed_offset"])
    claims = [_fact(world.topic, kinds.CLAIM, (minute + 1) * 60_000, end) for minute, end in sorted(furthest.items())]
    commits = []
    for group in world.groups:
        for look in world.looks(group)[:-1]:
            kind = kinds.REMOVAL if look["kind"] == "removed" else kinds.COMMIT
            commits.append(_row(world.topic, group, kind, look["offset"], look["committed"], look["millis"]))
    return sorted(samples, key=lambda row: row["millis"]) + claims + commits


def _rules(burrow: BurrowRules, *, every_commit: bool = True, least_step: int = 1_000) -> WalkRules:
    return WalkRules(
        intervals=burrow.intervals,
        min_distance=round(burrow.min_distance_seconds * 1000),
        lately=round((burrow.intervals - 1) * burrow.offset_refresh_seconds * 1000),
        minimum_complete=burrow.minimum_complete,
        allowed_lag=burrow.allowed_lag,
        as_of=END_SECONDS * 1000,
        least_step=least_step,
        every_commit=every_commit,
    )


def _walk(rows: list[Row], rules: WalkRules, size: int = 10_000) -> list[Row]:
    batches = pa.Table.from_pylist(rows, schema=SCHEMA).to_batches(max_chunksize=size)
    told = [row for batch in Walker(rules).walk(batches) for row in batch.to_pylist()]
    return sorted(told, key=lambda row: (row["topic"], row["group"], row["offset"]))


def _plain(row: Row) -> Row:
    """As the serial code tells it."""
    names = {kinds.NOT_FOUND: None} | {getattr(kinds, status): status for status in STATUSES}
    ended_by = {kinds.BY_COMMIT: "commit", kinds.BY_REMOVAL: "removed", kinds.BY_END: "now"}
    plain = {name: row[name] for name in ("offset", "committed_offset", "lag", "window_commits", "window_start")}
    plain |= {name: row[name] for name in ("until", "stopped_at")} | {"at": row["clock"]}
    plain |= {name: names[row[name]] for name in ("status", "status_before", "last_status")}
    return plain | {"ended_by": ended_by[row["ended_by"]]}


@pytest.mark.parametrize("burrow", ALL_RULES.values(), ids=ALL_RULES)
def test_every_status_is_burrows_own(burrow: BurrowRules) -> None:
    worlds = make_worlds(burrow.intervals, 200)
    found: dict[tuple[str, str], list[Row]] = {}
    for row in _walk([row for world in worlds for row in _rows(world)], _rules(burrow), 1_000):
        found.setdefault((row["topic"], row["group"]), []).append(_plain(row))
    expected = {(world.topic, group): _told(world, group, burrow) for world in worlds for group in world.groups}
    assert found == {key: told for key, told in expected.items() if told}


def _told(world: World, group: str, burrow: BurrowRules) -> list[Row]:
    return history(world.looks(group), burrow, world.ends())


def test_those_histories_show_every_status_and_every_end() -> None:
    """Otherwise the comparison would show little."""
    seen: Counter[str] = Counter()
    for world in make_worlds(10, 200):
        for group in world.groups:
            for row in _told(world, group, BurrowRules()):
                seen.update([row["status"], f"at last {row['last_status']}", f"ended by {row['ended_by']}"])
    wanted = [*STATUSES, *(f"at last {status}" for status in STATUSES), *(f"ended by {w}" for w in ("commit", "now"))]
    assert {*wanted, "ended by removed"} - {"STOP"} <= seen.keys()
    assert seen["at last STOP"] > 100


@pytest.mark.parametrize("size", [1, 2, 3, 17])
def test_it_does_not_matter_where_batches_are_cut(size: int) -> None:
    rows = [row for world in make_worlds(3, 40) for row in _rows(world)]
    chance = random.Random(size)
    for row in rows:
        # Some that Burrow does not take, some without a time.
        if row["kind"] == kinds.COMMIT and chance.random() < 0.1:
            row["kind"], row["millis"] = kinds.UNWATCHED, chance.choice([row["millis"], None])
        elif row["kind"] == kinds.REMOVAL and chance.random() < 0.3:
            row["millis"] = None
    for every_commit in (True, False):
        rules = _rules(BurrowRules(intervals=4), every_commit=every_commit, least_step=10)
        assert _walk(rows, rules, size) == _walk(rows, rules)


def test_what_changes_nothing_can_be_left_out() -> None:
    rows = [row for world in make_worlds(3, 40) for row in _rows(world)]
    every = _walk(rows, _rules(BurrowRules()))
    changes = [row for row in _walk(rows, _rules(BurrowRules(), every_commit=False)) if row["is_change"]]
    assert changes == [row for row in every if row["is_change"]]
    assert 0 < len(changes) < len(every) / 2
    for row in every:
        is_dull = row["status"] == row["status_before"] == row["last_status"] and row["ended_by"] == kinds.BY_COMMIT
        assert row["is_change"] is not is_dull


def _steps(*looks: tuple[int, int | None, int | None]) -> list[Row]:
    """Commits and tombstones of one group: kind, committed offset, time."""
    return [_row("t", "g", kind, place, value, time) for place, (kind, value, time) in enumerate(looks)]


def test_a_step_is_from_the_commit_before_even_over_a_tombstone() -> None:
    commit, removal = kinds.COMMIT, kinds.REMOVAL
    rows = _steps((commit, 10, 0), (commit, 30, 10_000), (removal, None, 11_000), (commit, 5, 12_000))
    first, second, third = _walk(rows, _rules(BurrowRules()))
    assert [first[name] for name in ("previous_committed_offset", "previous_millis", "distance", "speed")] == [None] * 4
    assert not first["is_step"]
    assert (second["distance"], second["speed"], second["fastest_before"], second["after_tombstone"]) == (
        20,
        2.0,
        None,
        False,
    )
    assert (third["previous_committed_offset"], third["previous_offset"], third["previous_millis"]) == (30, 1, 10_000)
    assert (third["distance"], third["fastest_before"], third["after_tombstone"], third["is_step"]) == (
        -25,
        2.0,
        True,
        True,
    )
    assert (third["commits_before"], third["is_last"]) == (2, True)


def test_idle_commits_are_those_that_commit_the_same_again() -> None:
    commit, removal = kinds.COMMIT, kinds.REMOVAL
    looks = [(commit, 5, 0), (commit, 5, 1), (commit, 6, 2), (removal, None, 3), (commit, 6, 4), (commit, 6, 5)]
    (last,) = [row for row in _walk(_steps(*looks), _rules(BurrowRules())) if row["is_last"]]
    assert (last["idle_commits"], last["changed_millis"], last["offset"]) == (2, 4, 5)


def test_no_number_that_a_log_can_hold_is_too_large() -> None:
    low, high = -(1 << 63), (1 << 63) - 1
    looks = [(kinds.COMMIT, value, time) for time, value in enumerate((low + 1, high, low + 1, 0, -1, high))]
    told = _walk(_steps(*looks), _rules(BurrowRules()))
    assert [row["distance"] for row in told] == [None, high, -high, high, -1, high]
    assert all(row["lag"] >= 0 for row in told)


def test_a_tombstone_that_ends_nothing_tells_nothing() -> None:
    assert _walk(_steps((kinds.REMOVAL, None, 5), (kinds.REMOVAL, None, None)), _rules(BurrowRules())) == []
