"""A page of 5,000 groups with all that a page may hold: how large it is, and how fast a browser opens it."""

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kohort.report import limits
from kohort.report.contents import GROUP_COLUMNS
from kohort.report.page import make_page
from kohort.report.series import packed
from kohort.report.topic import COLUMNS
from tests.broker.chromium import Page, needs_chromium
from tests.report.test_page import NAMES, in_browser

START, STEP, BINS = 1_772_323_200_000, 3_600_000, limits.FEWEST_BINS
MOST_BYTES = 15_000_000
PATIENCE_S = 30.0
"""How long it may take where others work at the same time; what it took is printed."""


def full_page() -> dict[str, Any]:
    """Everything at its limit; lines that hardly ever stay the same."""
    rng, numbers = np.random.default_rng(5), random.Random(5)
    count, strings = limits.GROUPS, ["Stable", "orders", "worker", "member_left", "1 member left or expired, 3 stayed"]
    first = len(strings)
    strings += [f"team-{n % 40}.service-{n:04d}.consumer-of-orders" for n in range(count)]

    def line(most: int) -> str:
        return packed(rng.integers(0, most, BINS).astype(float))

    def detail(rows: int, row: list[Any]) -> dict[int, list[list[Any]]]:
        return {g: [row] * rows for g in range(limits.DETAILED)}

    columns: dict[str, list[Any]] = {name: [numbers.randrange(100_000) for _ in range(count)] for name in GROUP_COLUMNS}
    columns |= {"name": list(range(first, first + count)), "status": ["OK"] * count}
    columns |= {name: [0] * count for name in ("state", "type", "protocol_type", "protocol")}
    series = {"commits": 1_000, "rebalances": 3, "status": 6, "lag": 10_000, "committed": 10_000, "steps_behind": BINS}
    at = START + STEP
    health = [numbers.randrange(1_000_000) for _ in COLUMNS]
    return {
        "run": {
            "source": 1, "topic": 1, "at": START + BINS * STEP, "ends": "furthest_group", "rule": "position",
            "retention_minutes": 10080, "records": 100_000_000, "only": [], "made_at": START, "version": "0",
        },
        "axis": {"start": START, "step": STEP, "bins": BINS, "earlier": 0},
        "statuses": ["NOTFOUND", "OK", "WARN", "REWIND", "STALL", "STOP"],
        "summary": [{"tone": "plain", "to": "groups", "g": None, "parts": ["5,000 groups"]}],
        "groups": {"columns": columns, "total": count, "detailed": limits.DETAILED},
        "series": {name: [line(most) for _ in range(count)] for name, most in series.items()},
        "detail": {
            "commits": {g: [[1, n, line(100)] for n in range(limits.PARTITIONS)] for g in range(limits.DETAILED)},
            "partitions": detail(limits.PARTITIONS, [1, 12, 123456, 234567, 1234, 12.5, 0, at, 2, 0, 1]),
            "rebalances": detail(limits.REBALANCES, [at, 123, 3, 4, 1, 1, 12, 3, 3, 3, 25.5]),
            "members": detail(2 * limits.MEMBERS, [2, 2, 2, None, at, at + STEP]),
            "owners": detail(limits.OWNERS, [1, 12, 2, at, at + STEP]),
        },
        "topic": {
            "columns": list(COLUMNS), "topic": health, "partitions": [[n, *health] for n in range(50)],
            "loudest": [[first + n, *health] for n in range(limits.LOUDEST)], "groups": count,
        },
        "expiry": {"hours": [], "groups": [], "reasons": []},
        "transactions": {"open": [], "count": 0, "fates": []},
        "jumps": {"rows": [], "kinds": []},
        "difference": {"earlier": START, "later": at, "counts": [], "rows": []},
        "damage": {"count": 0, "rows": [], "unread": [], "kinds": []},
        "strings": strings,
    }  # fmt: skip


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "report.html"
    path.write_text(make_page(full_page()), encoding="utf-8")
    return path


def test_a_full_page_stays_below_15_megabytes(full: Path) -> None:
    size = full.stat().st_size
    print(f"\n{limits.GROUPS:,} groups: {size / 1e6:.1f} MB")  # noqa: T201
    assert size < MOST_BYTES


@needs_chromium
def test_a_full_page_opens_and_answers_quickly(full: Path) -> None:
    began = time.perf_counter()

    async def story(page: Page) -> None:
        opened = await page.evaluate("performance.now()")
        typed = await page.evaluate(
            """(() => {
                const find = byId("find"), began = performance.now();
                find.value = "service-4321";
                find.dispatchEvent(new Event("input"));
                return performance.now() - began;
            })()"""
        )
        assert await page.evaluate(NAMES) == ["team-1.service-4321.consumer-of-orders"]
        await page.evaluate("document.querySelector('#groups .name').click()")
        assert "kohort report --group" in await page.evaluate("byId('plot-members').textContent || notDetailed()")
        print(f"\nopen after {opened / 1000:.1f} s, a search takes {typed:.0f} ms")  # noqa: T201
        assert opened < PATIENCE_S * 1000
        assert typed < 1_000

    in_browser(full, story)
    assert time.perf_counter() - began < 10 * PATIENCE_S
