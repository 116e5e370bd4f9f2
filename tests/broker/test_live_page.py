"""The live page as people see it: in a real Chromium."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.broker.chromium import Page, needs_chromium, new_page
from tests.broker.data_plane import TOPIC, batch, make_topic, produce
from tests.broker.group_clients import assignment, commit, find_coordinator, join, leave, settle, sync
from tests.broker.http_port import http_of
from tests.broker.running import Running, running

pytestmark = needs_chromium

GROUP = "readers"
HOSTILE = '<img src=x onerror="window.pwned = 1"><script>window.pwned = 2</script>&lt;b&gt;\'`${1}'
DIRECTION = "abc\u202exe.cba"
LONG = "=HYPERLINK(1)\x1b[31m" + "x" * 32_000
PATIENCE_S = 120.0

BADGE = "document.querySelector('#rows .badge')"
NAMES = "[...document.querySelectorAll('#rows .name')].map(name => name.textContent)"
CELLS = "[...document.querySelectorAll('#rows tr.group:first-child td')].map(cell => cell.textContent)"


def in_browser(story: Callable[[Running, Page, str], Awaitable[None]]) -> None:
    """A broker, its page's address, and an empty tab; at the end nothing has gone wrong in the page."""

    async def within_time() -> None:
        async with asyncio.timeout(PATIENCE_S), new_page() as page:
            await story(broker, page, http.url)
            await page.evaluate("1")
            assert not page.told("Runtime.exceptionThrown")
            # the profile of a new browser may ask for things of its own; only the page's own requests count
            urls = [sent["request"]["url"] for sent in page.told("Network.requestWillBeSent")]
            assert urls
            assert all(url.startswith((http.url, "data:")) for url in urls), urls
            assert not [told for told in page.told("Log.entryAdded") if told["entry"]["source"] == "security"]

    with running() as broker, http_of(broker) as http:
        asyncio.run(within_time())


async def shown(page: Page, *names: str) -> None:
    """Come back when exactly these groups are in the table."""
    wanted = ", ".join(f'"{name}"' for name in names)
    await page.until(f"{NAMES}.join('|') === [{wanted}].join('|')")


@asynccontextmanager
async def in_thread(broker: Running) -> AsyncIterator[Callable[..., Awaitable[object]]]:
    """A client whose blocking calls do not hold up the browser's connection."""
    with broker.client(client_id="reader-1") as client:
        yield lambda call, *arguments: asyncio.to_thread(call, client, *arguments)


def test_a_group_appears_changes_its_state_and_goes_without_a_reload() -> None:
    async def story(broker: Running, page: Page, url: str) -> None:
        make_topic(broker, TOPIC, 3)
        await page.open(url)
        await page.until("document.getElementById('status').dataset.is === 'live'")
        assert "No groups yet" in await page.evaluate("document.getElementById('empty').textContent")
        await page.evaluate("window.loadedOnce = true")
        async with in_thread(broker) as ask:
            await ask(find_coordinator, GROUP)
            joined = await ask(join, GROUP, TOPIC)
            await page.until(f"{BADGE}?.textContent === 'CompletingRebalance'")
            await ask(sync, GROUP, joined, {joined.member_id: assignment(TOPIC, 0, 1, 2)})
            await page.until(f"{BADGE}.textContent === 'Stable'")
            assert await page.evaluate(CELLS) == [GROUP, "Stable", "1", "1", "range", "0", "–", "1"]
            await ask(produce, batch("a", "b", "c"))
            await ask(commit, GROUP, TOPIC, {0: 1}, joined)
            await page.until(f"{CELLS}[6] === '2'")
            await ask(leave, GROUP, joined)
            await page.until(f"{BADGE}.textContent === 'Empty'")
        broker.on_loop(
            lambda: broker.broker.groups.handle_delete_groups([GROUP], lambda errors: None)  # noqa: ARG005
        )
        await page.until("!document.querySelector('#rows .badge')")
        assert await page.evaluate("window.loadedOnce")

    in_browser(story)


def test_members_and_partitions_are_shown_on_demand_and_stay_up_to_date() -> None:
    async def story(broker: Running, page: Page, url: str) -> None:
        make_topic(broker, TOPIC, 4)
        async with in_thread(broker) as ask:
            joined = await ask(settle, GROUP, TOPIC, 0, 1, 3)
            await page.open(url)
            await shown(page, GROUP)
            details = "document.querySelector('tr.details')"
            assert await page.evaluate(f"{details} === null")
            await page.evaluate("document.querySelector('#rows .name').click()")
            await page.until(f"{details}?.querySelectorAll('.inner tbody tr').length === 4")
            text = await page.evaluate(f"{details}.innerText")
            assert f"{TOPIC} 0–1, 3" in text
            assert "reader-1" in text
            assert "/127.0.0.1" in text
            await ask(produce, batch("a", "b", "c", "d"))
            await ask(commit, GROUP, TOPIC, {0: 1}, joined)
            first = f"{details}.querySelectorAll('.inner:last-child tbody tr:first-child td')"
            cells = f"[...{first}].map(cell => cell.innerText)"
            await page.until(f"{cells}.join() === '{TOPIC},0,1,4,3,reader-1'")
            await page.evaluate("document.querySelector('#rows .name').click()")
            await page.until(f"{details} === null")

    in_browser(story)


@pytest.mark.parametrize("name", [HOSTILE, DIRECTION, LONG, ""], ids=["html", "direction", "long", "empty"])
def test_what_a_client_calls_itself_is_text_and_nothing_else(name: str) -> None:
    async def story(broker: Running, page: Page, url: str) -> None:
        make_topic(broker)
        await asyncio.to_thread(make_hostile, broker)
        await page.open(url)
        await page.until(f"{NAMES}.length === 1")
        await page.evaluate("document.querySelector('#rows .name').click()")
        await page.until("document.querySelectorAll('tr.details tbody tr').length >= 1")
        text = name.replace("\u202e", "⟨U+202E⟩").replace("\x1b", "⟨U+001B⟩") or "(empty)"
        if name == LONG:
            text = text[:200]
            (told,) = await page.evaluate(NAMES)
            assert told.startswith(text)
            assert len(told) < 1_000
            assert await page.evaluate("document.documentElement.scrollWidth") <= 1280
        else:
            assert await page.evaluate(NAMES) == [text]
        if name:  # somebody without a name cannot be a member
            assert text in await page.evaluate("document.querySelector('tr.details tbody').textContent")
        assert await page.evaluate("document.querySelectorAll('main img, main script, main b b').length") == 0
        assert await page.evaluate("typeof window.pwned") == "undefined"

    def make_hostile(broker: Running) -> None:
        with broker.client(client_id=name) as client:
            find_coordinator(client, "any")
            if name:
                settle(client, name, TOPIC, 0)
            else:
                commit(client, name, TOPIC, {0: 0})

    in_browser(story)


def test_a_browser_would_not_run_a_script_that_got_into_the_page_all_the_same() -> None:
    async def story(broker: Running, page: Page, url: str) -> None:  # noqa: ARG001
        await page.open(url)
        await page.until("document.getElementById('status').dataset.is === 'live'")
        refused = await page.evaluate(
            """new Promise(told => {
                document.addEventListener("securitypolicyviolation", event => told(event.effectiveDirective));
                const script = document.createElement("script");
                script.textContent = "window.pwned = 1";
                document.body.append(script);
            })"""
        )
        assert refused.startswith("script-src")
        assert await page.evaluate("typeof window.pwned") == "undefined"
        page.events.clear()  # the refusal was meant
        await page.until("document.getElementById('status').dataset.is === 'live'")
        await page.evaluate("fetch('groups.json').then(answer => answer.status)")

    in_browser(story)


def test_it_says_so_when_the_broker_is_gone() -> None:
    async def story(broker: Running) -> None:
        async with asyncio.timeout(PATIENCE_S), new_page() as page:
            with http_of(broker) as http:
                await page.open(http.url)
                await page.until("document.getElementById('status').dataset.is === 'live'")
            await page.until("document.getElementById('status').dataset.is === 'lost'")

    with running() as broker:
        asyncio.run(story(broker))


def test_it_stays_responsive_with_3000_groups() -> None:
    def make_groups(broker: Running) -> None:
        with broker.client() as client:
            find_coordinator(client, "any")
            produce(client, *[batch(*"abcde")] * 10)
            for number in range(2_999):
                assert commit(client, f"job-{number}", TOPIC, dict.fromkeys(range(10), number % 5)) == 0
            settle(client, "needle", TOPIC, 0)

    async def story(broker: Running, page: Page, url: str) -> None:
        make_topic(broker, TOPIC, 10)
        await asyncio.to_thread(make_groups, broker)
        await page.open(url)
        await page.until("document.getElementById('total-groups').textContent === '3,000'")
        assert await page.evaluate("document.querySelectorAll('#rows tr').length") == 50
        assert await page.evaluate("document.getElementById('shown').textContent") == "1–50 of 3,000"

        # how long each of ours kept the page from doing anything else, as the browser sees it
        await page.evaluate(
            """window.longest = 0;
            new PerformanceObserver(list => {
                for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
            }).observe({ type: "longtask" });"""
        )
        took = await page.evaluate(
            """(() => {
                const filter = document.getElementById("filter"), began = performance.now();
                for (const text of ["n", "ne", "nee", "needle"]) {
                    filter.value = text;
                    filter.dispatchEvent(new Event("input"));
                }
                return (performance.now() - began) / 4;
            })()"""
        )
        assert await page.evaluate(NAMES) == ["needle"]
        await page.evaluate(
            "filter = document.getElementById('filter'); filter.value = '';filter.dispatchEvent(new Event('input'))"
        )
        await page.evaluate("document.querySelectorAll('#head button')[6].click()")  # by lag, the largest first
        assert await page.evaluate(f"{CELLS}[6]") == "50"
        await page.evaluate("document.getElementById('next').click()")
        assert await page.evaluate("document.getElementById('shown').textContent") == "51–100 of 3,000"
        await page.evaluate("document.querySelector('[data-state=Stable].chip').click()")
        await shown(page, "needle")

        await page.evaluate("seen = document.getElementById('status').textContent")
        for _ in range(2):  # two more updates by itself
            await page.until("document.getElementById('status').textContent !== seen")
            await page.evaluate("seen = document.getElementById('status').textContent")
        longest = await page.evaluate("window.longest")
        print(f"\na key in the filter takes {took:.0f} ms, the longest task {longest:.0f} ms")  # noqa: T201
        assert took < 1_000
        assert longest < 3_000

    in_browser(story)
