"""The demo's story is known: each of its facts is in the tables and in the report.

The run needs a SparkSession of its own, so these go to the worker that runs everything of Spark.
"""

import asyncio
import json
import re
from collections import Counter
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession  # noqa: F401  # one worker runs all of these

from tests.broker.chromium import needs_chromium, new_page
from tests.demo.conftest import Played
from tests.slow import slow

pytestmark = slow

PARTITIONS = 6
STORM = 30
RETENTION = timedelta(minutes=60)
LOOKS_EVERY = timedelta(minutes=10)
SESSION = timedelta(minutes=10)

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def data(played: Played) -> dict[str, Any]:
    """What the page shows."""
    text = (played.out / "report.html").read_text(encoding="utf-8")
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1])
    return told


@pytest.fixture(scope="module")
def said(data: dict[str, Any]) -> list[str]:
    """The sentences of the report."""
    return [
        "".join(part if isinstance(part, str) else data["strings"][part["s"]] for part in sentence["parts"])
        for sentence in data["summary"]
    ]


def table(played: Played, name: str, **wanted: object) -> Rows:
    rows: Rows = pq.read_table(played.out / "tables" / name).to_pylist()
    return [row for row in rows if all(row[column] == value for column, value in wanted.items())]


def in_log_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def told_of(data: dict[str, Any], group: str) -> dict[str, Any]:
    """A group's row of the page's table."""
    columns = data["groups"]["columns"]
    names = [data["strings"][number] for number in columns["name"]]
    return {name: values[names.index(group)] for name, values in columns.items()}


def one(sentences: list[str], part: str) -> str:
    found = [sentence for sentence in sentences if part in sentence]
    assert len(found) == 1, sentences
    return found[0]


def test_it_leaves_nothing_running(played: Played) -> None:
    assert played.left == []


def test_the_terminal_tells_the_story_and_what_the_report_says(played: Played, said: list[str]) -> None:
    assert "Traceback" not in played.stderr
    assert "\x1b" not in played.stdout + played.stderr
    for part in ("clock runs fast", "loses its only consumer", "falls behind", "tombstones for nightly-export",
                 "aborts a transaction", "worker-7 leaves, comes back", "nobody had to rebalance", "does not end it",
                 "report.html", "kohort state", "--keep"):  # fmt: skip
        assert part in played.stdout, part
    assert one(said, "billing rebalanced") in played.stdout
    assert "kohort: records: " in played.stderr  # progress


def test_all_groups_are_there_and_one_is_gone(played: Played, said: list[str]) -> None:
    groups = {row["group"]: (row["state"], row["member_count"]) for row in table(played, "current_groups")}
    assert groups == {
        "checkout": ("Stable", 3),
        "billing": ("Stable", 3),
        "inventory": ("Stable", 2),
        "search-index": ("Stable", 1),
        "ledger": ("Stable", 1),
    }
    assert said[0] == "6 groups: 5 Stable, 1 removed."


def test_the_healthy_one_keeps_up(played: Played, data: dict[str, Any]) -> None:
    lag = table(played, "lag", group="checkout")
    assert [row["lag"] for row in lag] == [0] * PARTITIONS
    assert {row["source"] for row in lag} <= {"end_offsets", "topic_times"}
    assert {row["cause"] for row in table(played, "rebalances", group="checkout")} == {"first_generation"}
    told = told_of(data, "checkout")
    assert (told["lag"], told["status"], told["rebalances"]) == (0, "OK", 0)


def test_nobody_is_said_to_be_behind_who_was_not(played: Played) -> None:
    for group in ("checkout", "billing", "inventory"):  # ledger reads every third minute: it is behind in between
        rows = table(played, "lag_status", group=group)
        assert {row["status"] for row in rows} | {row["last_status"] for row in rows} == {"OK"}, group
        assert max(row["lag"] for row in rows) == 0, group


def test_the_slow_one_falls_behind(played: Played, data: dict[str, Any], said: list[str]) -> None:
    now = table(played, "lag", group="search-index")
    behind = sum(row["lag"] for row in now)
    minutes = behind / (10 * PARTITIONS)  # ten orders more than it manages, in each partition
    assert minutes == int(minutes)
    assert 120 < minutes < 180
    oldest = max(row["lag_seconds"] for row in now)
    assert 3600 < oldest < minutes * 60  # half of that time: it reads half of what comes
    status = table(played, "lag_status", group="search-index", ended_by="now")
    assert {row["last_status"] for row in status} == {"WARN"}
    assert f"search-index is furthest behind: {behind:,} messages" in one(said, "furthest behind")
    assert "(search-index)" in one(said, "fell behind with every commit")
    assert (told_of(data, "search-index")["lag"], told_of(data, "search-index")["status"]) == (behind, "WARN")


def test_the_storm_has_a_name(played: Played, data: dict[str, Any], said: list[str]) -> None:
    causes = Counter(row["cause"] for row in table(played, "rebalances", group="billing"))
    assert causes == {"first_generation": 1, "member_left": STORM // 2, "member_joined": STORM // 2}
    rows = in_log_order(table(played, "members", group="billing"))
    of_worker = {row["member_id"] for row in rows if row["client_id"] == "worker-7"}
    assert len(of_worker) == STORM // 2 + 1  # each time under a new member id
    sentence = one(said, "billing rebalanced")
    assert f" rebalanced {STORM} times between " in sentence
    assert sentence.endswith(f"because worker-7 left {STORM // 2} times and joined {STORM // 2} times.")
    assert told_of(data, "billing")["rebalances"] == STORM
    assert told_of(data, "billing")["lag"] == 0


def test_static_members_restart_without_a_rebalance(played: Played, data: dict[str, Any]) -> None:
    rows = in_log_order(table(played, "rebalances", group="inventory"))
    assert [row["cause"] for row in rows] == ["first_generation", *["static_member_replaced"] * 2]
    assert {row["to_generation"] for row in rows} == {1}
    ids: dict[str, set[str]] = {}
    for row in table(played, "members", group="inventory"):
        ids.setdefault(row["instance_id"], set()).add(row["member_id"])
    assert {name: len(found) for name, found in ids.items()} == {"shelf-1": 2, "shelf-2": 2}
    assert told_of(data, "inventory")["rebalances"] == 0


def test_one_transaction_was_aborted_and_one_is_open(played: Played, data: dict[str, Any], said: list[str]) -> None:
    fates = Counter(row["fate"] for row in table(played, "offset_commits", group="ledger"))
    assert (fates["aborted"], fates["open"], fates["plain"]) == (PARTITIONS, PARTITIONS, 0)
    assert fates["committed"] > 50 * PARTITIONS
    pending = table(played, "pending_offsets")
    assert {row["group"] for row in pending} == {"ledger"}
    assert len(pending) == PARTITIONS
    aborted = {row["committed_offset"] for row in table(played, "offset_commits", group="ledger", fate="aborted")}
    later = {row["committed_offset"] for row in table(played, "offset_commits", group="ledger", fate="committed")}
    assert max(later) > max(aborted)  # read again, and committed
    assert "1 transaction is open; the oldest holds 6 offsets of ledger since " in one(said, "is open")
    assert f"{PARTITIONS} of " in one(said, "aborted")
    assert told_of(data, "ledger")["pending"] == PARTITIONS


def test_the_abandoned_one_has_expired(played: Played, data: dict[str, Any]) -> None:
    rows = in_log_order(table(played, "rebalances", group="nightly-export"))
    assert [row["cause"] for row in rows] == ["first_generation", "group_emptied", "group_removed"]
    commits = in_log_order(table(played, "offset_commits", group="nightly-export"))
    gone = [row for row in commits if row["tombstone"]]
    assert {row["topic_partition"] for row in gone} == set(range(PARTITIONS))
    emptied, removed = rows[1]["completed_at"], rows[2]["completed_at"]
    last = max(row["timestamp"] for row in commits if not row["tombstone"])
    # The last heartbeat came up to a minute after the last commit: the clock goes by minutes.
    assert SESSION <= emptied - last <= SESSION + timedelta(seconds=61)
    assert RETENTION <= removed - emptied <= RETENTION + LOOKS_EVERY + timedelta(minutes=1)
    assert all(abs(row["timestamp"] - removed) < timedelta(seconds=1) for row in gone)
    assert table(played, "current_offsets", group="nightly-export") == []
    assert data["strings"][told_of(data, "nightly-export")["state"]] == "Removed"


def test_everything_was_read(played: Played, said: list[str]) -> None:
    assert table(played, "quarantine") == []
    assert "could be read." in said[-1]
    assert said[-1].startswith("All ")


@needs_chromium
def test_the_page_opens_and_says_so(played: Played) -> None:
    async def look() -> list[str]:
        async with asyncio.timeout(240), new_page() as page:
            await page.open((played.out / "report.html").as_uri())
            await page.until("document.documentElement.dataset.ready === 'yes'")
            texts: list[str] = await page.evaluate(
                "[...document.querySelectorAll('#sentences a')].map(link => link.textContent)"
            )
            assert not page.told("Runtime.exceptionThrown")
            return texts

    shown = asyncio.run(look())
    assert any(text.startswith(f"billing rebalanced {STORM} times") for text in shown)
    assert any(text.startswith("search-index is furthest behind") for text in shown)
