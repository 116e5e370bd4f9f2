"""Reports of logs that nobody wrote for them: those of real brokers, and one in which nothing can be read."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kohort.report.contents import Wanted, gather
from kohort.report.page import make_page
from kohort.report.run import open_tables
from tests.broker.chromium import Page, needs_chromium
from tests.report.test_contents import sentences
from tests.report.test_page import all_drawn, in_browser
from tests.slow import slow
from tests.spark.golden_tables import state_of
from tests.spark.runs import Watched, all_golden_logs, run_on

pytestmark = [slow, needs_chromium]

_PICKED = 10
"""So many of the groups that come first are looked at, and all that are not classic ones."""


def data_of(spark: SparkSession, log: Path, out: Path, **more: Any) -> dict[str, Any]:
    run_on(spark, log, out, **more)
    return gather(open_tables(spark, out), Wanted(), Watched())


def look_at(data: dict[str, Any], path: Path) -> list[str]:
    """Open the page, scroll to its end, pick groups of all kinds: nothing goes wrong. The sentences that it shows."""
    path.write_text(make_page(data), encoding="utf-8")
    shown: list[str] = []

    async def story(page: Page) -> None:
        await all_drawn(page)
        for number, type_ in enumerate(data["groups"]["columns"]["type"]):
            if number < _PICKED or type_ is None or data["strings"][type_] != "classic":
                await page.evaluate(f"pickGroup({number})")
        shown.extend(await page.evaluate("[...document.querySelectorAll('#sentences li')].map(one => one.textContent)"))

    in_browser(path, story)
    return shown


def test_the_logs_of_real_brokers(spark: SparkSession, tmp_path: Path) -> None:
    """Groups of every protocol, with the states, members and offsets that `kohort state` tells of."""
    log = all_golden_logs(tmp_path / "logs")
    data = data_of(spark, log, tmp_path / "tables")
    state, texts, columns = state_of(log), data["strings"], data["groups"]["columns"]
    told = {
        texts[name]: (texts[state_], texts[type_], generation, members)
        for name, state_, type_, generation, members in zip(
            *(columns[name] for name in ("name", "state", "type", "generation", "members")), strict=True
        )
        if type_ is not None
    }
    assert told == {
        name: (group.state, group.type, group.generation, len(group.members)) for name, group in state.groups.items()
    }
    assert {type_ for _, type_, _, _ in told.values()} == {"classic", "consumer", "share"}
    assert sum(columns["offsets"]) == len(state.offsets)
    assert sum(columns["pending"]) == sum(map(len, state.pending.values()))
    assert set(state.removed_groups) <= {texts[name] for name in columns["name"]}
    assert len(look_at(data, tmp_path / "report.html")) == len(data["summary"])


def test_a_log_in_which_nothing_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """As of a time far behind all calendars, too."""
    partition = tmp_path / "logs" / "__consumer_offsets-3"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(b"\xff\x00 nothing but <b>noise</b>" * 40)
    data = data_of(spark, tmp_path / "logs", tmp_path / "tables", as_of=10**18 - 1)
    told = sentences(data)
    assert told[0] == "There is no group in this log."
    assert told[-1] == "1 place of the log could not be read (1 record)."
    assert data["run"]["at"] == 253_402_300_799_999
    assert len(look_at(data, tmp_path / "report.html")) == len(told)
