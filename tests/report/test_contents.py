"""What a report says of the story: sentences, lines over time, and each section, from real tables."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession  # noqa: F401  # the tables are made by Spark: one worker runs all of these

from kohort.report.limits import REBALANCES
from tests.report.packing import unpacked
from tests.report.story import END, HOUR, MINUTE, SECOND, START, produced
from tests.spark.runs import rows_in

Data = dict[str, Any]
Number = Callable[[str], int]


def sentences(data: Data) -> list[str]:
    return [
        "".join(part if isinstance(part, str) else f"`{data['strings'][part['s']][:20]}`" for part in told["parts"])
        for told in data["summary"]
    ]


def series(data: Data, name: str, g: int) -> list[Any]:
    line = unpacked(data["series"]["steps_behind" if name == "seconds" else name][g])
    if name == "seconds":
        return [None if steps is None else steps * data["axis"]["step"] / SECOND for steps in line]
    if name in ("lag", "committed"):  # differences
        sums = itertools.accumulate(value or 0 for value in line)
        return [None if value is None else sum_ for value, sum_ in zip(line, sums, strict=True)]
    return line


def of_group(data: Data, column: str, g: int) -> Any:
    return data["groups"]["columns"][column][g]


def words(data: Data, rows: list[list[Any]], *columns: int) -> list[tuple[str, ...]]:
    return [tuple(data["strings"][row[column]] for column in columns) for row in rows]


def test_the_summary_tells_the_story(data: Data) -> None:
    told = sentences(data)
    assert told[0] == "17 groups: 11 Stable, 5 Empty, 1 removed."
    assert any(line.startswith("8 groups stopped: ") and "`stopped-mailer`" in line for line in told)
    assert "1 group stalled: commits go on, but no further (`chatty`)." in told
    assert "2 groups fell behind with every commit of late (`slow-indexer`, `rewinder`)." in told
    storm = "`billing` rebalanced 212 times between 02:10 and 03:39"
    assert f"{storm}, because `worker-7` left 106 times and joined 106 times." in told
    assert "`stopped-mailer` is furthest behind: 13,026 messages; the oldest of them waits for 3.0 h." in told
    assert "2 offsets of 1 group expire within 24 h, the first at 11:00 (`abandoned`)." in told
    assert (
        "42 % of the topic's bytes come from one group, `chatty` (10,800 commits, 100 % of them for what was committed "
        "already)." in told
    )
    assert "1 transaction is open; the oldest holds 2 offsets of `ledger` since 05:00." in told
    assert any(
        line.endswith("the longest: `rewinder` went back 1,428 messages in `events`-0 at 04:00.") for line in told
    )
    assert "1 place of the log could not be read (1 record)." in told


def test_each_sentence_leads_to_what_shows_it(data: Data, number: Number) -> None:
    storm = next(told for told in data["summary"] if told["to"] == "timeline")
    assert storm["g"] == number("billing")
    assert {told["to"] for told in data["summary"]} <= {
        "groups", "raster", "lag", "timeline", "expiry", "health", "loudest", "transactions", "jumps", "quarantine",
    }  # fmt: skip


def test_groups_that_need_a_look_come_first(data: Data, number: Number) -> None:
    assert number("billing") == 0  # a storm of rebalances
    assert number("stopped-mailer") < number("slow-indexer") < number("checkout")
    assert [of_group(data, "status", number(name)) for name in ("stopped-mailer", "chatty", "checkout")] == [
        "STOP", "STALL", "OK",
    ]  # fmt: skip
    assert data["strings"][of_group(data, "state", number("deleted"))] == "Removed"
    assert of_group(data, "rebalances", number("billing")) == 212
    assert of_group(data, "pending", number("ledger")) == 2


def test_every_commit_is_in_a_step_of_time(data: Data, tables: Path, number: Number) -> None:
    commits = [row for row in rows_in(tables, "offset_commits") if not row["tombstone"]]
    drawn = [sum(value or 0 for value in unpacked(line)) for line in data["series"]["commits"] if line]
    assert sum(drawn) + data["axis"]["earlier"] == len(commits)
    assert data["axis"]["earlier"] == 2  # of the group that was abandoned days before
    stopped = series(data, "commits", number("stopped-mailer"))
    step = data["axis"]["step"]
    last = max(at for at, value in enumerate(stopped) if value)
    assert data["axis"]["start"] + last * step <= START + 3 * HOUR < data["axis"]["start"] + (last + 2) * step


def test_lag_ends_where_the_table_has_it(data: Data, tables: Path, number: Number) -> None:
    now: dict[str, int] = {}
    for row in rows_in(tables, "lag"):
        now[row["group"]] = now.get(row["group"], 0) + row["lag"]
    for group, lag in now.items():
        assert series(data, "lag", number(group))[-1] == lag, group


def test_lag_in_time_is_that_of_the_story(data: Data, number: Number) -> None:
    step = data["axis"]["step"] / SECOND
    stopped, seconds = number("stopped-mailer"), 3 * HOUR / SECOND
    assert series(data, "seconds", stopped)[-1] == pytest.approx(seconds, abs=2 * step)
    at_four = (START + 4 * HOUR - data["axis"]["start"]) // data["axis"]["step"]
    assert series(data, "seconds", stopped)[at_four] == pytest.approx(HOUR / SECOND, abs=2 * step)
    assert max(value or 0 for value in series(data, "seconds", number("checkout"))) <= step


def test_a_strip_shows_when_a_group_stopped(data: Data, number: Number) -> None:
    strip = [data["statuses"][int(value)] for value in series(data, "status", number("stopped-mailer"))]
    half = len(strip) // 2
    assert strip[-1] == "STOP"
    assert "STOP" not in strip[2:half]
    assert "REWIND" in [
        data["statuses"][int(value)] for value in series(data, "status", number("rewinder")) if value is not None
    ]


def test_members_come_and_go_and_partitions_move(data: Data, number: Number) -> None:
    billing = number("billing")
    lone = [row for row in data["detail"]["members"][billing] if data["strings"][row[0]] == "worker-7"]
    assert len(lone) > 10
    assert all(start < end for *_, start, end in lone)
    rebalances = data["detail"]["rebalances"][billing]
    assert len(rebalances) == REBALANCES
    assert rebalances == sorted(rebalances, key=lambda row: row[0])
    checkout = number("checkout")
    owners = [
        (data["strings"][client], (start - START) // HOUR, (end - START) // HOUR)
        for _, partition, client, start, end in data["detail"]["owners"][checkout]
        if partition == 2
    ]
    assert owners == [("checkout-1", 0, 2), ("checkout-0", 2, 3), ("checkout-1", 3, 5)]
    assert sum(value or 0 for value in unpacked(data["detail"]["commits"][checkout][0][2])) == 6 * HOUR // (MINUTE // 2)


def test_partitions_are_told_with_the_largest_lag_first(data: Data, number: Number) -> None:
    rows = data["detail"]["partitions"][number("slow-indexer")]
    assert len(rows) == 6
    last = END - MINUTE
    topic, partition, committed, end, lag, *_ = rows[0]
    assert (data["strings"][topic], partition, committed) == ("orders", 0, produced(last) * 2 // 3)
    assert lag == end - committed
    assert data["strings"][rows[0][9]] == "WARN"


def test_expiry_transactions_jumps_and_damage_are_told(data: Data) -> None:
    assert data["expiry"]["hours"][0] == [(START + 11 * HOUR) // HOUR, 2, 1]
    assert words(data, data["expiry"]["groups"][:1], 0, 4) == [("abandoned", "group_empty")]
    ((group, producer, since, offsets, topics),) = data["transactions"]["open"]
    assert (data["strings"][group], producer, since, offsets, topics) == ("ledger", 9, END - HOUR, 2, 1)
    fates = {data["strings"][fate]: count for fate, count in data["transactions"]["fates"]}
    assert (fates["aborted"], fates["committed"], fates["open"]) == (6, 24, 2)
    longest = data["jumps"]["rows"][0]
    assert words(data, [longest], 0, 1, 7) == [("rewinder", "events", "rewind")]
    assert longest[3] == START + 4 * HOUR
    ((_, _, _, _, records, reason),) = data["damage"]["rows"]
    assert records == 1
    assert "checksum" in data["strings"][reason]


def test_the_topic_and_its_loudest_are_told(data: Data, tables: Path) -> None:
    health = rows_in(tables, "topic_health")
    columns = data["topic"]["columns"]
    at = columns.index("bytes")
    assert data["topic"]["topic"][at] == next(row["bytes"] for row in health if row["scope"] == "topic")
    assert len(data["topic"]["partitions"]) == sum(row["scope"] == "partition" for row in health)
    loudest = [(name, row[at]) for (name,), (_, *row) in zip(
        words(data, data["topic"]["loudest"], 0), data["topic"]["loudest"], strict=True
    )]  # fmt: skip
    assert loudest[0][0] == "chatty"
    assert [size for _, size in loudest] == sorted((size for _, size in loudest), reverse=True)
