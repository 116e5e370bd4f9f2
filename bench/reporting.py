"""The report of a large log: 5,000 groups, a hundred million commits, every step as a command of its own."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from tests.broker.chromium import CHROMIUM, new_page

from bench.logs import write_log
from bench.rows import Row, bounded, progress, told

GROUPS = 5_000
RECORDS = 100_000_000
QUICK_RECORDS = 2_000_000
_KOHORT = Path(sys.executable).parent / "kohort"


def measure(work: Path, quick: bool) -> list[Row]:
    """What the pipeline and the report take, how large the page is, and how fast a browser opens it."""
    log, tables, page = work / "log", work / "tables", work / "report.html"
    progress("report: writing the log")
    records = write_log(log, QUICK_RECORDS if quick else RECORDS, groups=GROUPS)
    progress(f"report: the pipeline on {records / 1e6:.0f} M records")
    piped = _seconds("pipeline", str(log), "--out", str(tables))
    progress("report: the report")
    reported = _seconds("report", str(tables), "--out", str(page))
    rows = [
        told(f"kohort pipeline on {records / 1e6:.0f} M records of {GROUPS:,} groups", f"{piped:.0f} s"),
        told("kohort report on its tables", f"{reported:.0f} s"),
        bounded("... size of the page, MB", page.stat().st_size / 1e6, 15, at_most=True),
    ]
    if CHROMIUM is None:
        return [*rows, told("... open in a browser", "not measured: no Chromium here")]
    return [*rows, bounded("... open in a browser, seconds", asyncio.run(_opened(page)), 3, at_most=True)]


def _seconds(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run([_KOHORT, *command], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


async def _opened(path: Path) -> float:
    """Until everything that is seen first has been drawn."""
    async with new_page() as page:
        await page.open(path.as_uri())
        await page.until("document.documentElement.dataset.ready === 'yes'")
        return float(await page.evaluate("performance.now()")) / 1000
