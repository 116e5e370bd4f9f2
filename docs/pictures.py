"""Takes the pictures of the README again, from real runs, in a Chromium without a window.

python -m docs.pictures DEMO

DEMO is what `kohort demo` has left. The live page is that of a broker with three groups; the terminal shows a log of
the tests.
"""

import argparse
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from confluent_kafka import Consumer, Producer
from rich.console import Console
from rich.text import Text
from tests.broker.chromium import CHROMIUM

from kohort.testing import Broker

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
LOG = ROOT / "tests" / "golden" / "kafka-2.6.3-ibp-2.6"
GROUPS = {"billing": 3, "checkout": 2, "search-index": 1}


def take(url: str, name: str, width: int, height: int) -> None:
    """A picture of a page."""
    if CHROMIUM is None:
        raise LookupError("there is no Chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000"]
        size = [f"--window-size={width},{height}", f"--user-data-dir={profile}"]
        command = [CHROMIUM, *options, *size, f"--screenshot={PICTURES / name}", url]
        subprocess.run(command, check=True, capture_output=True)


def take_live_page() -> None:
    with Broker(http=True) as broker:
        broker.create_topic("orders", partitions=6)
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        producer = Producer(servers)
        for number in range(600):
            producer.produce("orders", b"an order", partition=number % 6)
        producer.flush(30)
        members = []
        for group, count in GROUPS.items():
            for number in range(count):
                named = {"group.id": group, "client.id": f"{group}-{number}", "auto.offset.reset": "earliest"}
                member = Consumer(servers | named)
                member.subscribe(["orders"])
                members.append(member)
        while not _is_settled(broker):
            for member in members:
                member.poll(0.05)
        for member in members:
            if member.consume(20, 5):
                member.commit(asynchronous=False)
        take(broker.http_url, "live.png", 1200, 420)
        for member in members:
            member.close()


def _is_settled(broker: Broker) -> bool:
    stable = {name: len(group.members) for name, group in broker.groups().items() if group.state == "Stable"}
    return stable == GROUPS


def draw_terminal() -> None:
    command = [Path(sys.executable).parent / "kohort", "state", LOG]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[:14]
    console = Console(record=True, width=88, file=StringIO())
    console.print(
        Text("\n".join(["$ kohort state /var/lib/kafka/data", *told, "…"]), overflow="ellipsis", no_wrap=True)
    )
    (PICTURES / "terminal.svg").write_text(_without_fetches(console.export_svg(title="kohort state")), encoding="utf-8")


def _without_fetches(svg: str) -> str:
    """rich names fonts on another host; whatever is there does as well."""
    while "@font-face" in svg:
        start = svg.index("@font-face")
        svg = svg[:start] + svg[svg.index("}", start) + 1 :]
    return svg.replace("Fira Code", "ui-monospace")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m docs.pictures", description="Take the pictures of the README again."
    )
    parser.add_argument("demo", type=Path, help="what kohort demo has left")
    demo = parser.parse_args().demo
    PICTURES.mkdir(exist_ok=True)
    take((demo / "report.html").resolve().as_uri(), "report.png", 1000, 900)
    take_live_page()
    draw_terminal()
    return 0


if __name__ == "__main__":
    sys.exit(main())
