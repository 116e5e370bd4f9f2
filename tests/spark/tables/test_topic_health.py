"""What the offsets topic is full of: a log counted by Spark, and record by record."""

import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark.tables.topic_health import LoadRates, topic_health
from kohort.spark.tables.walk import walk
from tests.spark.tables.data import GroupLog, M, Row, commit, frame, rows_of

KINDS = ("live", "superseded", "tombstone", "aborted", "open")
HOSTILE = "=cmd|'/c calc'!A1\x00"


def _log(chance: random.Random) -> tuple[list[Row], GroupLog]:
    commits: list[Row] = []
    for offset in range(0, 3_000, 3):
        partition = chance.choice([0, 0, 0, 1, 7])
        group = chance.choice(["loud", "loud", "loud", HOSTILE, "quiet"]) + f" {partition}"
        committed = None if chance.random() < 0.1 else chance.randrange(4)
        changes: dict[str, Any] = {"partition": partition, "group": group, "topic_partition": chance.randrange(5)}
        if chance.random() < 0.3:
            changes |= {"fate": chance.choice(["committed", "aborted", "open"]), "transactional": True}
        commits.append(commit(offset, committed, offset / 10, bytes=chance.randrange(50, 150), **changes))
    groups = GroupLog()
    groups.write(1, M("a"), group="loud 0")
    groups.write(2, M("b"), group="loud 0")
    groups.write(1, M("b"), group="only a group", partition=9)
    groups.remove(group="only a group", partition=9)
    return commits, groups


def _count(commits: list[Row], groups: list[Row]) -> dict[tuple[int, str], Counter[str]]:
    """The same, record by record."""
    told: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    last: dict[tuple[Any, ...], tuple[int, str]] = {}
    previous: dict[tuple[Any, ...], int | None] = {}
    everything = [(row, row["fate"]) for row in commits] + [(row, "plain") for row in groups]
    for row, fate in sorted(everything, key=lambda item: (item[0]["partition"], item[0]["offset"])):
        counter = told[row["partition"], row["group"]]
        key = (row["partition"], row["group"], row.get("topic"), row.get("topic_partition"))

        def add(kind: str, sign: int = 1, size: int = row["bytes"], counter: Counter[str] = counter) -> None:
            counter[f"{kind}_records"] += sign
            counter[f"{kind}_bytes"] += sign * size

        counter["records"] += 1
        counter["bytes"] += row["bytes"]
        if "topic" not in row:
            add("group")
        if fate in ("aborted", "open"):
            add(fate)
            continue
        if key in last:
            size, kind = last[key]
            add(kind, -1, size)
            add("superseded", 1, size)
        last[key] = (row["bytes"], "tombstone" if row["tombstone"] else "live")
        add(last[key][1])
        if "topic" in row and not row["tombstone"]:
            counter["commits"] += 1
            counter["idle_commits"] += previous.get(key) == row["committed_offset"]
        previous[key] = row.get("committed_offset")
    return told


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> tuple[list[Row], dict[tuple[int, str], Counter[str]]]:
    commits, groups = _log(random.Random(7))
    table = topic_health(frame(spark, "offset_commits", commits), groups.tables(spark)[0])
    return rows_of(table, "scope", "rank"), _count(commits, groups.generations)


Told = tuple[list[Row], dict[tuple[int, str], Counter[str]]]


def test_every_group_is_counted_as_one_counts_by_hand(told: Told) -> None:
    rows, counted = told
    found = {(row["partition"], row["group"]): row for row in rows if row["scope"] == "group"}
    assert found.keys() == counted.keys()
    names = {name for counter in counted.values() for name in counter}
    assert {f"{kind}_bytes" for kind in KINDS} < names
    for key, row in found.items():
        assert {name: row[name] for name in names} == {name: counted[key][name] for name in names}, key


def test_partitions_and_the_topic_are_the_sums_of_their_groups(told: Told) -> None:
    rows, counted = told
    partitions = {row["partition"]: row for row in rows if row["scope"] == "partition"}
    (topic,) = (row for row in rows if row["scope"] == "topic")
    assert set(partitions) == {0, 1, 7, 9}
    for name in ("records", "superseded_bytes", "idle_commits", "group_records"):
        for partition, row in partitions.items():
            assert row[name] == sum(counter[name] for key, counter in counted.items() if key[0] == partition)
        assert topic[name] == sum(counter[name] for counter in counted.values())
    assert all(row["group"] is None for row in (topic, *partitions.values()))
    assert topic["partition"] is None


def test_every_record_is_of_one_kind(told: Told) -> None:
    for row in told[0]:
        for what in ("records", "bytes"):
            assert row[what] == sum(row[f"{kind}_{what}"] for kind in KINDS)


def test_the_loudest_group_is_the_first_and_shares_add_up(told: Told) -> None:
    groups = [row for row in told[0] if row["scope"] == "group"]
    assert [row["rank"] for row in groups] == list(range(1, len(groups) + 1))
    assert groups[0]["group"] == "loud 0"
    assert [row["commits"] for row in groups] == sorted((row["commits"] for row in groups), reverse=True)
    assert sum(row["share"] for row in groups) == pytest.approx(1)
    assert sum(row["skew"] for row in groups) == pytest.approx(len(groups))


def test_debt_is_what_compaction_would_free(told: Told) -> None:
    (topic,) = (row for row in told[0] if row["scope"] == "topic")
    freed = topic["superseded_bytes"] + topic["aborted_bytes"]
    assert topic["compaction_debt"] == pytest.approx(freed / topic["bytes"])
    assert 0.5 < topic["compaction_debt"] < 1


def test_the_rate_is_over_the_time_from_first_to_last_commit(told: Told) -> None:
    row = next(row for row in told[0] if row["group"] == "loud 0")
    hours = (row["last_commit_at"] - row["first_commit_at"]).total_seconds() / 3600
    assert row["commits_per_hour"] == pytest.approx((row["commits"] - 1) / hours)
    silent = next(row for row in told[0] if row["group"] == "only a group")
    assert (silent["commits"], silent["commits_per_hour"], silent["first_commit_at"]) == (0, None, None)


def test_the_slower_of_two_rates_decides_how_long_a_load_takes(spark: SparkSession) -> None:
    commits = frame(spark, "offset_commits", [commit(0, 1, bytes=1_000), commit(1, 1, 1, bytes=3_000)])
    groups = GroupLog().tables(spark)[0]
    rates = LoadRates(records_per_second=1, bytes_per_second=1_000)
    rows = rows_of(topic_health(commits, groups, walked=walk(commits), rates=rates))
    assert {row["load_seconds"] for row in rows} == {4.0}
    rows = rows_of(topic_health(commits, groups, rates=LoadRates(records_per_second=1, bytes_per_second=1_000_000)))
    assert {row["load_seconds"] for row in rows} == {2.0}
