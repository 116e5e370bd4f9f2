"""Draws `docs/architecture.svg`: the way of the data, from a client to the report."""

from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1000, 452
BOX_WIDTH, BOX_HEIGHT = 208, 74
ROUNDING = 10

STYLE = """
    text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; text-anchor: middle; }
    .page { fill: #ffffff; }
    .box { fill: #eef4fb; stroke: #3b6ea5; stroke-width: 1.5; }
    .shared .box { fill: #fdf3e1; stroke: #b0761b; }
    .name { fill: #14263a; font-size: 16px; font-weight: 600; }
    .what { fill: #4a5b6d; font-size: 12.5px; }
    .row { fill: #4a5b6d; font-size: 12.5px; font-style: italic; text-anchor: start; }
    .arrow { fill: none; stroke: #3b6ea5; stroke-width: 1.75; }
    .head { fill: #3b6ea5; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; }
      .box { fill: #16263a; stroke: #6ea8e0; }
      .shared .box { fill: #33270f; stroke: #d9a441; }
      .name { fill: #e6edf3; }
      .what, .row { fill: #a9b4c0; }
      .arrow { stroke: #6ea8e0; }
      .head { fill: #6ea8e0; }
    }
  """


class Box(NamedTuple):
    """A stop on the way: where it is, by column and row, what it is called and what happens there."""

    column: int
    row: int
    name: str
    lines: tuple[str, str]
    is_shared: bool = False

    @property
    def x(self) -> int:
        return 32 + self.column * 242

    @property
    def y(self) -> int:
        return 52 + self.row * 142


BOXES = (
    Box(0, 0, "client", ("librdkafka, Java, Go, …", "unmodified")),
    Box(1, 0, "connection", ("broker: frames in,", "answers in order out")),
    Box(2, 0, "API", ("broker/api: one module", "a request, all versions")),
    Box(3, 0, "coordinator", ("group, transaction:", "no I/O, no clock of its own")),
    Box(3, 1, "log", ("log: segments, journal,", "recovery, cleaner"), is_shared=True),
    Box(2, 1, "replay, columns", ("records: bytes to values,", "pieces that merge"), is_shared=True),
    Box(1, 1, "any Kafka's log", ("a dead disk, or", "kafka://host:port")),
    Box(2, 2, "Spark tables", ("spark: commits, lag,", "rebalances, expiry, …")),
    Box(1, 2, "report", ("report: one HTML file,", "no network")),
    Box(0, 2, "restored offsets", ("a plan, or set in", "a cluster")),
)
ROWS = ((0, "the broker"), (1, "what both halves share"), (2, "the pipeline"))
"""What the rows are about, told above them."""


def draw() -> str:
    """The whole picture."""
    body = [f'<text class="row" x="32" y="{38 + row * 142}">{text}</text>' for row, text in ROWS]
    body += [line for box in BOXES for line in _box(box)]
    body += list(_arrows({box.name: box for box in BOXES}))
    size = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-labelledby="title desc">',
        '  <title id="title">The way of the data</title>',
        '  <desc id="desc">Client, connection, API, coordinator, log; the log, or that of any Kafka, through replay '
        "and columns into Spark tables, the report and restored offsets.</desc>",
        f"  <style>{STYLE}</style>",
        f'  <defs><marker id="head" {size} orient="auto-start-reverse">'
        '<path class="head" d="M 0 0 L 10 5 L 0 10 z"/></marker></defs>',
        f'  <rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="{ROUNDING}"/>',
        *(f"  {line}" for line in body),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _box(box: Box) -> Iterator[str]:
    middle = box.x + BOX_WIDTH // 2
    yield '<g class="shared">' if box.is_shared else "<g>"
    size = f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="{ROUNDING}"'
    yield f'  <rect class="box" x="{box.x}" y="{box.y}" {size}/>'
    yield f'  <text class="name" x="{middle}" y="{box.y + 24}">{escape(box.name)}</text>'
    for number, line in enumerate(box.lines):
        yield f'  <text class="what" x="{middle}" y="{box.y + 44 + 16 * number}">{escape(line)}</text>'
    yield "</g>"


def _arrows(boxes: dict[str, Box]) -> Iterator[str]:
    both = 'marker-start="url(#head)" marker-end="url(#head)"'
    one = 'marker-end="url(#head)"'
    for left, right, ends in (
        ("client", "connection", both),
        ("connection", "API", both),
        ("API", "coordinator", both),
        ("any Kafka's log", "replay, columns", one),
    ):
        y = boxes[left].y + BOX_HEIGHT // 2
        yield f'<path class="arrow" d="M {boxes[left].x + BOX_WIDTH + 3} {y} H {boxes[right].x - 3}" {ends}/>'
    for right, left in (("log", "replay, columns"), ("Spark tables", "report")):
        y = boxes[right].y + BOX_HEIGHT // 2
        yield f'<path class="arrow" d="M {boxes[right].x - 3} {y} H {boxes[left].x + BOX_WIDTH + 3}" {one}/>'
    for upper, lower, ends in (("coordinator", "log", both), ("replay, columns", "Spark tables", one)):
        x = boxes[upper].x + BOX_WIDTH // 2
        yield f'<path class="arrow" d="M {x} {boxes[upper].y + BOX_HEIGHT + 3} V {boxes[lower].y - 3}" {ends}/>'
    tables, restored = boxes["Spark tables"], boxes["restored offsets"]
    below = tables.y + BOX_HEIGHT + 22
    start, end = tables.x + BOX_WIDTH // 2, restored.x + BOX_WIDTH // 2
    bottom = tables.y + BOX_HEIGHT + 3
    yield f'<path class="arrow" d="M {start} {bottom} V {below} H {end} V {bottom}" {one}/>'
