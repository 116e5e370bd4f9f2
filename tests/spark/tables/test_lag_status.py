"""Burrow's status of partitions and groups, on Spark: random histories against Burrow written out serially."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from kohort.spark.tables import walk_kinds
from kohort.spark.tables.group_status import group_status
from kohort.spark.tables.lag_status import lag_status
from kohort.spark.tables.walk import BurrowRules
from tests.slow import slow
from tests.spark.tables.data import Row, at, commit, frame, rows_of
from tests.spark.tables.serial_burrow import group_history, history
from tests.spark.tables.worlds import ALL_RULES, END_SECONDS, STATUSES, World, make_worlds, millis

Told = dict[tuple[str, str], list[Row]]


def _frames(spark: SparkSession, worlds: list[World]) -> tuple[DataFrame, DataFrame, DataFrame]:
    ends = [
        {"topic": w.topic, "topic_partition": 0, "start_offset": 0, "end_offset": end, "at": at(time / 1000)}
        for w in worlds
        for time, end in w.known.ends
    ]
    times = [
        {"topic": w.topic, "topic_partition": 0, "offset": offset, "timestamp": at(time / 1000)}
        for w in worlds
        for offset, time in w.known.records
    ]
    commits = [row for world in worlds for row in world.rows]
    return (
        frame(spark, "offset_commits", commits),
        frame(spark, "end_offsets", ends),
        frame(spark, "topic_times", times),
    )


@pytest.mark.parametrize("name", ["Burrow's defaults", pytest.param("groups that expire soon", marks=slow)])
def test_every_status_is_burrows_own(spark: SparkSession, name: str) -> None:
    rules = ALL_RULES[name]
    worlds = make_worlds(rules.intervals, 80)
    frames = _frames(spark, worlds)
    table = lag_status(*frames, as_of=at(END_SECONDS), rules=rules).cache()
    found: Told = {}
    for row in rows_of(table, "offset"):
        found.setdefault((row["topic"], row["group"]), []).append(row)
    expected: Told = {}
    for world in worlds:
        for group in world.groups:
            if told := history(world.looks(group), rules, world.ends()):
                expected[world.topic, group] = told
    assert {key: [_plain(row) for row in rows] for key, rows in found.items()} == expected
    for row in (row for rows in found.values() for row in rows):
        assert row["complete"] == row["window_commits"] / rules.intervals
        assert row["status_code"] == getattr(walk_kinds, row["status"])
    changes = lag_status(*frames, as_of=at(END_SECONDS), rules=rules, every_commit=False)
    for part in (table, changes):
        _check_groups(part, expected, rules)
    table.unpersist()


def _plain(row: Row) -> Row:
    times = {name: row[name] and millis(row[name]) for name in ("at", "until", "window_start", "stopped_at")}
    names = (
        "offset",
        "ended_by",
        "committed_offset",
        "lag",
        "window_commits",
        "status",
        "status_before",
        "last_status",
    )
    return {name: row[name] for name in names} | times


def _check_groups(table: DataFrame, expected: Told, rules: BurrowRules) -> None:
    """Groups are the worst of their partitions over time."""
    found: dict[str, list[Row]] = {}
    for row in rows_of(group_status(table, rules=rules), "group", "at"):
        found.setdefault(row["group"], []).append(row)
    groups = {group for _, group in expected}
    assert found.keys() == groups
    end = END_SECONDS * 1000
    for group in groups:
        partitions = [rows for (_, name), rows in expected.items() if name == group]
        last_commit = max(row["at"] for rows in partitions for row in rows)
        is_purged = end - last_commit > rules.expire_group_seconds * 1000
        plain = [
            {"at": millis(row["at"]), "status": row["status"], "partitions": row["partitions"]}
            | {name: row[f"partitions_{name.lower()}"] for name in STATUSES}
            for row in found[group]
        ]
        assert (plain[-1]["status"] == "NOTFOUND") is is_purged is (rules.expire_group_seconds < 60)
        assert plain == group_history(partitions, purged_at=end if is_purged else None)
        assert [row["until"] for row in found[group]] == [row["at"] for row in found[group][1:]] + [None]


def test_a_commit_that_was_old_when_it_came_or_has_no_time_is_not_judged(spark: SparkSession) -> None:
    names = {"group": "<b>'; --\x00" + "x" * 32_000, "topic": "=1+1\x00\n,"}
    commits = [
        commit(0, 5, 0, **names),
        commit(1, 6, 604_801, commit_timestamp=at(0), **names),
        commit(2, 7, 0, commit_timestamp=None, timestamp=None, **names),
        commit(3, 8, 604_802, **names),
    ]
    table = lag_status(frame(spark, "offset_commits", commits))
    rows = rows_of(table, "offset")
    assert {(row["group"], row["topic"]) for row in rows} == {(names["group"], names["topic"])}
    assert [(row["offset"], row["status"], row["until"]) for row in rows] == [
        (0, "OK", at(604_802)),
        (3, "OK", None),
    ]
    assert [row["ended_by"] for row in rows] == ["commit", None]
