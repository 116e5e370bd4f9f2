"""The report as people see it: in a real Chromium, from disk. Screenshots are left in `build/screenshots`."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession  # noqa: F401  # the page is made by Spark: one worker runs all of these

from tests.broker.chromium import Page, needs_chromium, new_page
from tests.report.story import CLOSING, HOSTILE, LONG, TURNED

pytestmark = needs_chromium

PATIENCE_S = 240.0
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
PLOTS = (
    "plot-raster", "plot-lag", "plot-one-lag", "plot-consumed", "plot-members", "plot-owners", "plot-partitions",
    "plot-expiry", "plot-health", "plot-loudest", "plot-transactions", "plot-jumps", "plot-difference",
)  # fmt: skip
NAMES = "[...document.querySelectorAll('#groups .name')].map(name => name.textContent)"
DRAWN = """(id => {
    const plot = document.getElementById(id), marks = ".scatterlayer path, .barlayer path, .heatmaplayer image";
    return plot.querySelectorAll(marks).length;
})"""

Story = Callable[[Page], Awaitable[None]]


def in_browser(path: Path, story: Story, *, width: int = 1280, is_phone: bool = False, **features: str) -> None:
    """The page, opened from disk and ready; at the end nothing has gone wrong in it and nothing was asked for."""

    async def within_time() -> None:
        async with asyncio.timeout(PATIENCE_S), new_page() as page:
            await resize(page, width, 844 if is_phone else 900, is_phone)
            await page.open(path.as_uri(), **features)
            await page.until("document.documentElement.dataset.ready === 'yes'")
            await story(page)
            await page.evaluate("1")
            assert not page.told("Runtime.exceptionThrown")
            assert not page.told("Runtime.consoleAPICalled")
            assert not page.told("Log.entryAdded")
            urls = [sent["request"]["url"] for sent in page.told("Network.requestWillBeSent")]
            assert urls[0] == path.as_uri()
            assert all(url.startswith(("data:", "blob:")) for url in urls[1:]), urls

    asyncio.run(within_time())


async def resize(page: Page, width: int, height: int, is_phone: bool = False) -> None:
    await page.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone
    )


async def all_drawn(page: Page) -> None:
    """What a reader sees who has scrolled to the end."""
    for name in PLOTS:
        await page.evaluate(f"document.getElementById('{name}').scrollIntoView({{ behavior: 'instant' }})")
        await page.until(f"document.getElementById('{name}').matches('.js-plotly-plot, .is-empty')")
    await page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")


async def screenshot(page: Page, name: str, width: int, is_phone: bool = False) -> None:
    """The whole page as one picture."""
    height = await page.evaluate("document.documentElement.scrollHeight")
    await resize(page, width, height, is_phone)
    await page.until("innerHeight === " + str(height))
    shot = await page.call("Page.captureScreenshot", format="png")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


async def pick(page: Page, name: str) -> None:
    """Choose a group as a reader does: by typing its name."""
    await page.evaluate(
        f"""(() => {{
            const input = document.getElementById("pick");
            input.value = {name!r};
            input.dispatchEvent(new Event("input"));
        }})()"""
    )
    await page.until(f"document.querySelector('#facts b').textContent === {name!r}")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_every_plot_is_there_and_not_empty(page_file: Path, scheme: str, width: int) -> None:
    async def story(page: Page) -> None:
        assert await page.evaluate("document.documentElement.dataset.theme") == scheme
        await pick(page, "billing")
        await all_drawn(page)
        empty = [name for name in PLOTS if not await page.evaluate(f"{DRAWN}('{name}')")]
        assert not empty
        assert await page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
        small = await page.evaluate(
            "[...document.querySelectorAll('.js-plotly-plot')].filter(plot => plot.clientHeight < 90).length"
        )
        assert small == 0
        await screenshot(page, f"report-{scheme}-{width}", width, is_phone=width < 720)

    in_browser(page_file, story, width=width, is_phone=width < 720, prefers_color_scheme=scheme)


def test_each_sentence_leads_to_its_evidence(page_file: Path) -> None:
    async def story(page: Page) -> None:
        links = await page.evaluate(
            "[...document.querySelectorAll('#sentences a')].map(link => [link.textContent, link.getAttribute('href')])"
        )
        assert len(links) > 10
        for _, target in links:
            assert await page.evaluate(f"document.querySelector('{target}') !== null"), target
        storm = next(at for at, (text, _) in enumerate(links) if text.startswith("billing rebalanced 212 times"))
        await pick(page, "checkout")
        await page.evaluate(f"document.querySelectorAll('#sentences a')[{storm}].click()")
        await page.until("location.hash === '#timeline'")
        assert await page.evaluate("document.querySelector('#facts b').textContent") == "billing"
        stopped = next(at for at, (text, _) in enumerate(links) if "groups stopped" in text)
        await page.evaluate(f"document.querySelectorAll('#sentences a')[{stopped}].click()")
        assert len(await page.evaluate(NAMES)) == 8

    in_browser(page_file, story)


def test_groups_can_be_searched_filtered_sorted_and_picked(page_file: Path) -> None:
    async def story(page: Page) -> None:
        type_in = "(text => { const find = byId('find'); find.value = text; find.dispatchEvent(new Event('input')); })"
        await all_drawn(page)
        await page.evaluate(f"{type_in}('BILL')")
        assert await page.evaluate(NAMES) == ["billing"]
        await page.until("document.querySelectorAll('#plot-raster .ytick text').length === 1")
        await page.evaluate(f"{type_in}('no such group')")
        assert await page.evaluate(NAMES) == []
        await page.until("document.getElementById('plot-raster').classList.contains('is-empty')")
        await page.evaluate(f"{type_in}('')")
        await page.evaluate("document.querySelector('#statuses [data-key=STALL]').click()")
        assert await page.evaluate(NAMES) == ["chatty"]
        await page.evaluate("document.querySelector('#statuses [data-key=STALL]').click()")
        by_lag = "[...document.querySelectorAll('#groups th button')].find(one => one.textContent === 'Lag').click()"
        await page.evaluate(by_lag)
        assert (await page.evaluate(NAMES))[0] == "stopped-mailer"
        await page.evaluate(by_lag)
        assert (await page.evaluate(NAMES))[-1] != "stopped-mailer"
        await page.evaluate("document.querySelector('#groups .pager button:last-child').click()")
        assert "16–17 of 17" in await page.evaluate("document.querySelector('#groups .pager').textContent")
        for mode in ("lag", "status", "rebalances", "commits"):
            await page.evaluate(f"document.querySelector('#raster-modes [data-key={mode}]').click()")
            assert await page.evaluate(f"{DRAWN}('plot-raster')") or mode == "rebalances"

        await pick(page, "slow-indexer")
        await all_drawn(page)
        assert await page.evaluate(f"{DRAWN}('plot-one-lag')")
        rows = "document.querySelectorAll('#partitions-table tbody tr').length"
        assert await page.evaluate(rows) == 6
        await pick(page, "ledger")
        assert await page.evaluate(rows) == 1
        assert "no generation" in await page.evaluate("document.getElementById('plot-members').textContent")
        await page.evaluate("document.querySelector('#groups .name').click()")
        assert await page.evaluate("document.querySelector('#facts b').textContent") != "ledger"

    in_browser(page_file, story)


def test_a_switch_changes_the_colours(page_file: Path) -> None:
    async def story(page: Page) -> None:
        ground = "getComputedStyle(document.body).backgroundColor"
        await all_drawn(page)
        light = await page.evaluate(ground)
        await page.evaluate("document.getElementById('theme').click()")
        assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert await page.evaluate(ground) != light
        await page.until("document.querySelector('#plot-raster .ytick text').style.fill === 'rgb(228, 234, 232)'")
        await page.evaluate("document.getElementById('theme').click()")
        assert await page.evaluate(ground) == light

    in_browser(page_file, story, prefers_color_scheme="light")


def test_what_is_printed_has_every_plot(page_file: Path) -> None:
    async def story(page: Page) -> None:
        await pick(page, "billing")
        await page.until("typeof Plotly !== 'undefined'")
        await page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert [name for name in PLOTS if not await page.evaluate(f"{DRAWN}('{name}')")] == []
        printed = await page.call("Page.printToPDF", printBackground=True)
        assert base64.b64decode(printed["data"]).startswith(b"%PDF")

    in_browser(page_file, story)


def test_names_are_text_and_nothing_else(page_file: Path) -> None:
    async def story(page: Page) -> None:
        await page.evaluate("groupSheet.pageSize = 50; groupSheet.render()")
        names = await page.evaluate(NAMES)
        assert TURNED.replace("\u202e", "⟨U+202E⟩") in names
        assert "⟨U+001B⟩[31mred⟨U+001B⟩[0m" in names
        assert CLOSING.replace("\u2028", "⟨U+2028⟩") in names
        titles = await page.evaluate("[...document.querySelectorAll('#groups .name')].map(name => name.title)")
        assert LONG in titles
        assert HOSTILE in titles
        assert max(map(len, names)) <= 100
        for name in range(len(names)):
            await page.evaluate(f"pickGroup({name})")
        await all_drawn(page)
        for number in range(len(names)):
            await page.evaluate(f"pickGroup({number})")  # what is drawn is drawn anew
        made = "main img, main iframe, main svg a, main svg b, main a[href^=javascript], main script"
        assert await page.evaluate(f"document.querySelectorAll('{made}').length") == 0
        assert await page.evaluate("typeof window.pwned") == "undefined"
        shown = await page.evaluate("[...document.querySelectorAll('#plot-raster .ytick')].map(one => one.textContent)")
        assert any(text.startswith("<img src=x") for text in shown)

    in_browser(page_file, story)


def test_a_browser_would_not_run_or_fetch_what_got_into_the_page_all_the_same(page_file: Path) -> None:
    async def story(page: Page) -> None:
        refused = await page.evaluate(
            """new Promise(told => {
                const seen = [];
                document.addEventListener("securitypolicyviolation", event => {
                    if (seen.push(event.effectiveDirective) === 2) told(seen);
                });
                const script = document.createElement("script");
                script.textContent = "window.pwned = 1";
                document.body.append(script);
                const image = document.createElement("img");
                image.src = "http://127.0.0.1:9/refused.png";
                document.body.append(image);
            })"""
        )
        assert sorted(directive.partition("-")[0] for directive in refused) == ["img", "script"]
        assert await page.evaluate("typeof window.pwned") == "undefined"
        await page.evaluate("1")
        assert [told["blockedReason"] for told in page.told("Network.loadingFailed")] == ["csp"]
        # Both were meant, and what was refused is told of as if it had been asked for.
        told = [event for event in page.events if "refused.png" not in str(event.get("params"))]
        page.events = [event for event in told if event.get("method") != "Log.entryAdded"]

    in_browser(page_file, story)
