"""Lag in messages and in time, now and at every commit: rule by rule, and against a serial reckoning."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark.tables.lag import lag, lag_history
from kohort.spark.tables.walk import walk
from tests.spark.tables.data import START, Row, at, commit, frame, rows_of
from tests.spark.tables.serial_lag import Commit, Known, history

TELLS = ("end_offset", "source", "lag", "time_method", "lag_seconds", "lag_seconds_min", "lag_seconds_max")


def _end(topic: str, end: int, seconds: float, start: int = 0) -> Row:
    return {"topic": topic, "topic_partition": 0, "start_offset": start, "end_offset": end, "at": at(seconds)}


def _time(topic: str, offset: int, seconds: float) -> Row:
    return {"topic": topic, "topic_partition": 0, "offset": offset, "timestamp": at(seconds)}


def _current(topic: str, committed: int, seconds: float = 50.0, group: str = "g") -> Row:
    return {
        "group": group,
        "topic": topic,
        "topic_partition": 0,
        "committed_offset": committed,
        "commit_timestamp": at(seconds),
        "partition": 0,
        "offset": 0,
    }


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> dict[str, Row]:
    offsets = [
        _current("ended", 70),
        _current("caught up", 100),
        _current("ahead", 130),
        _current("lost", 5),
        _current("sampled", 40),
        _current("between", 30),
        _current("old", 10),
        _current("negative", -1),
        _current("proxy", 10, group="slow"),
        _current("proxy", 35, 90, group="fast"),
    ]
    ends = [
        *(_end(name, 100, 100) for name in ("caught up", "ahead", "sampled", "between", "old", "negative")),
        _end("ended", 60, 40),
        _end("ended", 100, 100),
        _end("ended", 1_000, 900),
        _end("lost", 100, 100, start=20),
    ]
    times = [_time("sampled", 40, 10), _time("between", 20, 10), _time("between", 40, 30), _time("old", 20, 30)]
    commits = frame(spark, "offset_commits", _proxy_commits())
    table = lag(
        frame(spark, "current_offsets", offsets),
        frame(spark, "end_offsets", ends),
        frame(spark, "topic_times", times),
        commits=commits,
        walked=walk(commits, as_of=at(120)),
        as_of=at(120),
    )
    return {f"{row['group']}/{row['topic']}": row for row in rows_of(table)}


def _proxy_commits() -> list[Row]:
    slow: Row = {"group": "slow", "topic": "proxy"}
    fast: Row = {"group": "fast", "topic": "proxy"}
    return [
        commit(0, 8, 10, **slow),
        commit(1, 12, 5, **fast),
        commit(2, 20, 70, **fast),
        commit(3, 35, 90, **fast),
        commit(4, 10, 20, **slow),
        commit(5, 10, 50, **slow),
        # One that has gone since was further than all, and one after the time that is asked for does not count.
        commit(6, 40, 100, group="gone", topic="proxy"),
        commit(7, 900, 130, **fast),
    ]


def test_lag_in_messages_is_up_to_the_last_end_that_was_known_by_then(told: dict[str, Row]) -> None:
    row = told["g/ended"]
    assert (row["lag"], row["end_offset"], row["source"], row["at"]) == (30, 100, "end_offsets", at(120))


def test_lag_in_time_lies_between_the_ends_that_were_seen(told: dict[str, Row]) -> None:
    row = told["g/ended"]
    assert (row["time_method"], row["produced_at"]) == ("interpolated", at(55))
    assert (row["lag_seconds"], row["lag_seconds_min"], row["lag_seconds_max"]) == (65, 20, 80)


def test_who_has_read_all_has_no_lag(told: dict[str, Row]) -> None:
    row = told["g/caught up"]
    assert (row["lag"], row["lag_seconds"], row["time_method"], row["produced_at"]) == (0, 0, "caught_up", None)


def test_a_commit_beyond_the_end_is_told_as_that(told: dict[str, Row]) -> None:
    assert (told["g/ahead"]["lag"], told["g/ahead"]["messages_ahead"]) == (0, 30)
    assert told["g/ended"]["messages_ahead"] == 0


def test_what_retention_took_is_lost(told: dict[str, Row]) -> None:
    assert (told["g/lost"]["lag"], told["g/lost"]["messages_lost"]) == (95, 15)
    assert told["g/ended"]["messages_lost"] == 0


def test_a_known_record_gives_its_time(told: dict[str, Row]) -> None:
    row = told["g/sampled"]
    assert (row["time_method"], row["lag_seconds"]) == ("sample", 110)
    assert (row["lag_seconds_min"], row["lag_seconds_max"]) == (110, 110)


def test_between_two_records_the_time_is_interpolated(told: dict[str, Row]) -> None:
    row = told["g/between"]
    assert (row["time_method"], row["produced_at"]) == ("interpolated", at(20))
    assert (row["lag_seconds_min"], row["lag_seconds_max"]) == (90, 110)


def test_before_the_first_record_there_is_a_lower_bound_and_nothing_is_extrapolated(told: dict[str, Row]) -> None:
    row = told["g/old"]
    assert (row["time_method"], row["lag_seconds"], row["lag_seconds_max"]) == ("before_first_sample", 90, None)


def test_without_any_knowledge_the_furthest_group_is_the_end(told: dict[str, Row]) -> None:
    slow, fast = told["slow/proxy"], told["fast/proxy"]
    assert (slow["source"], slow["end_offset"], slow["lag"]) == ("furthest_group", 40, 30)
    assert (slow["time_method"], slow["lag_seconds"], slow["lag_seconds_max"]) == ("furthest_group", 115, None)
    assert (fast["lag"], fast["lag_seconds"]) == (5, 20)
    assert (slow["start_offset"], slow["messages_lost"]) == (None, None)


def test_a_committed_offset_below_zero_is_the_beginning(told: dict[str, Row]) -> None:
    assert told["g/negative"]["lag"] == 100


def test_ages_count_from_the_commit_and_from_the_last_change(told: dict[str, Row]) -> None:
    assert told["slow/proxy"]["commit_age_seconds"] == 70
    assert told["slow/proxy"]["stall_seconds"] == 100
    assert told["g/ended"]["stall_seconds"] is None


def test_without_a_time_each_topic_partition_is_told_for_when_it_was_last_heard_of(spark: SparkSession) -> None:
    table = lag(
        frame(spark, "current_offsets", [_current("a", 10, 50), _current("b", 5, 60), _current("b", 9, 80, group="h")]),
        frame(spark, "end_offsets", [_end("a", 30, 70)]),
    )
    told = [
        (row["group"], row["topic"], row["at"], row["lag"], row["source"]) for row in rows_of(table, "topic", "group")
    ]
    assert told == [
        ("g", "a", at(70), 20, "end_offsets"),
        ("g", "b", at(80), 4, "furthest_group"),
        ("h", "b", at(80), 0, "furthest_group"),
    ]


def test_the_lag_at_every_commit_is_what_one_reckons_by_hand(spark: SparkSession) -> None:
    """Random topic partitions, some well known, some hardly, some not at all; several groups, clocks that go back."""
    chance = random.Random(20260301)
    worlds = [_random_world(chance, number) for number in range(60)]
    commits = [row for rows, _, _ in worlds for row in rows]
    ends = [_end(topic, end, millis / 1000) for _, known, topic in worlds for millis, end in known.ends]
    times = [_time(topic, offset, millis / 1000) for _, known, topic in worlds for offset, millis in known.records]
    table = lag_history(
        frame(spark, "offset_commits", commits), frame(spark, "end_offsets", ends), frame(spark, "topic_times", times)
    )
    expected: dict[int, Row] = {}
    for rows, known, _ in worlds:
        plain = [
            Commit(row["offset"], row["group"], row["committed_offset"], _millis(row["commit_timestamp"]))
            for row in rows
            if not row["tombstone"] and row["fate"] in ("plain", "committed")
        ]
        expected |= history(known, plain)
    found = {row["offset"]: {name: row[name] for name in TELLS} for row in rows_of(table)}
    assert found == expected
    methods = {row["time_method"] for row in found.values()}
    assert {"caught_up", "sample", "interpolated", "before_first_sample", "furthest_group"} <= methods


def test_no_number_or_name_that_a_log_can_hold_is_too_much(spark: SparkSession) -> None:
    low, high = -(1 << 63), (1 << 63) - 1
    name = "<b>'; --\x00" + "x" * 32_000
    rows = [commit(place, value, place, topic=name) for place, value in enumerate((low, high, 0, -1, low, high))]
    commits = frame(spark, "offset_commits", rows)
    offsets = [_current(name, value, group=f"g{number}") for number, value in enumerate((low, high, 0))]
    ends = frame(spark, "end_offsets", [_end(name, high, 3), _end(name, 0, 1)])
    told = rows_of(lag(frame(spark, "current_offsets", offsets), ends, commits=commits, as_of=at(9)), "group")
    assert [row["lag"] for row in told] == [high, 0, high]
    history_told = rows_of(lag_history(commits, None, frame(spark, "topic_times", [_time(name, high, 2)])), "offset")
    assert [row["lag"] for row in history_told] == [0, 0, high, high, high, 0]
    assert {row["topic"] for row in history_told} == {name}


def _random_world(chance: random.Random, number: int) -> tuple[list[Row], Known, str]:
    topic = f"t{number}"
    rows: list[Row] = []
    for place in range(chance.randrange(1, 25)):
        changes: dict[str, Any] = {"topic": topic, "group": f"g{chance.randrange(3)}"}
        if chance.random() < 0.15:
            changes |= {"fate": chance.choice(["aborted", "open", "committed"]), "transactional": True}
        committed = None if chance.random() < 0.1 else chance.randrange(-1, 60)
        rows.append(commit(number * 1_000 + place, committed, chance.randrange(0, 60_000) / 1000, **changes))
    known = Known()
    end = 0
    for millis in sorted(chance.sample(range(60_000), chance.choice([0, 0, 1, 2, 5]))):
        end += chance.randrange(0, 25)
        known.ends.append((millis, end))
    place = 0
    for millis in sorted(chance.choices(range(60_000), k=chance.choice([0, 0, 1, 4, 9]))):
        place += chance.randrange(1, 9)
        known.records.append((place, millis))
    return rows, known, topic


def _millis(instant: Any) -> int:
    return round((instant - START).total_seconds() * 1000)
