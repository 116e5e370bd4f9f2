"""Draws `docs/states.svg`: the states of a group and every transition that the table of `kohort.group.states` allows.

The boxes are placed by hand. Which arrows there are comes from the table alone, and how they run from where the boxes
stand: straight between neighbours, over the tops of what stands between, down to another row, or round to itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from kohort.group.states import VALID_PREVIOUS_STATES, GroupState

Point = tuple[int, int]
Table = Mapping[GroupState, frozenset[GroupState]]

WIDTH, HEIGHT = 1124, 412
ROUNDING = 10
LANE = 9
"""How far an arrow keeps from the middle line when another runs the opposite way."""
TIP = 3
"""The air between the point of an arrow and the box."""

STYLE = """
    text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; text-anchor: middle; }
    .page { fill: #ffffff; }
    .box { fill: #eef4fb; stroke: #3b6ea5; stroke-width: 1.5; }
    .state { fill: #14263a; font-size: 15.5px; font-weight: 600; }
    .meaning { fill: #4a5b6d; font-size: 12.5px; }
    .caption { fill: #4a5b6d; font-size: 12.5px; font-style: italic; }
    .arrow { fill: none; stroke: #3b6ea5; stroke-width: 1.75; }
    .head { fill: #3b6ea5; }
    .last .box { fill: #f3f3f3; stroke: #8b929a; }
    .arrow.to-last { stroke: #a3aab2; stroke-width: 1.4; stroke-dasharray: 5 4; }
    .head.to-last { fill: #a3aab2; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; }
      .box { fill: #16263a; stroke: #6ea8e0; }
      .state { fill: #e6edf3; }
      .meaning, .caption { fill: #a9b4c0; }
      .arrow { stroke: #6ea8e0; }
      .head { fill: #6ea8e0; }
      .last .box { fill: #1c2128; stroke: #7d8590; }
      .arrow.to-last { stroke: #666e78; }
      .head.to-last { fill: #666e78; }
    }
  """


@dataclass(frozen=True, slots=True)
class Box:
    """Where a state stands, by its middle, and what it means in a few words."""

    x: int
    y: int
    width: int
    meaning: str
    height: int = 60

    @property
    def left(self) -> int:
        return self.x - self.width // 2

    @property
    def right(self) -> int:
        return self.x + self.width // 2

    @property
    def top(self) -> int:
        return self.y - self.height // 2

    @property
    def bottom(self) -> int:
        return self.y + self.height // 2


@dataclass(frozen=True, slots=True)
class Route:
    """How an arrow runs: `d` of its path, and the middle of its caption's last line or, `below` it, of its first."""

    d: str
    caption: Point
    below: bool = False


PLACES = {
    GroupState.EMPTY: Box(84, 146, 120, "no members"),
    GroupState.PREPARING_REBALANCE: Box(380, 146, 216, "members join"),
    GroupState.COMPLETING_REBALANCE: Box(728, 146, 216, "waits for the assignment"),
    GroupState.STABLE: Box(1034, 146, 132, "everybody works"),
    GroupState.DEAD: Box(554, 332, 216, "deleted, expired or moved"),
}
CAPTIONS = {
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE): ("the first", "member joins"),
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY): ("nobody", "is left"),
    (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE): ("all have joined", "or time is up"),
    (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE): ("a member", "comes or goes"),
    (GroupState.COMPLETING_REBALANCE, GroupState.STABLE): ("the leader", "has assigned"),
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE): ("a member comes, goes or changes its mind",),
}


def place(state: GroupState) -> Box:
    if state not in PLACES:
        raise LookupError(f"{state} has no place in the drawing: give it one in PLACES")
    return PLACES[state]


def transitions(table: Table) -> list[tuple[GroupState, GroupState]]:
    """Every pair of the table, in the order in which the states are declared."""
    return [(old, new) for old in GroupState for new in GroupState if old in table.get(new, frozenset())]


def route(old: GroupState, new: GroupState, table: Table) -> Route:
    """Opposite arrows keep to their right, so that each has a lane of its own."""
    start, end = place(old), place(new)
    lane = LANE if new in table.get(old, frozenset()) else 0
    if old == new:
        return loop(start)
    if start.y != end.y:
        return between_rows(start, end, lane)
    row = sorted(box.x for box in PLACES.values() if box.y == start.y)
    if abs(row.index(start.x) - row.index(end.x)) == 1:
        return straight(start, end, lane)
    return over_the_top(start, end, lane)


def straight(start: Box, end: Box, lane: int) -> Route:
    """Between neighbours; the caption of the way back stands below."""
    if start.x < end.x:
        y, x1, x2 = start.y - lane, start.right, end.left - TIP
    else:
        y, x1, x2 = start.y + lane, start.left, end.right + TIP
    below = start.x > end.x
    return Route(f"M {x1} {y} H {x2}", ((x1 + x2) // 2, y + 20 if below else y - 11), below)


def over_the_top(start: Box, end: Box, lane: int) -> Route:
    """Above the boxes in between; the way back runs higher."""
    height = 84 if start.x > end.x else 116
    peak = start.top - height
    x1, x2 = start.x + lane, end.x - lane
    bend = (x2 - x1) // 8
    d = f"M {x1} {start.top} C {x1 + bend} {peak}, {x2 - bend} {peak}, {x2} {end.top - TIP}"
    return Route(d, ((x1 + x2) // 2, start.top - height * 3 // 4 - 10))


def between_rows(start: Box, end: Box, lane: int) -> Route:
    """Down to the near side of the lower box, or to its top if that is closer; upwards the same way, one lane aside."""
    down = start.y < end.y
    upper, lower = (start, end) if down else (end, start)
    aside = lane if down else -lane
    x, gap = upper.x + aside, lower.top - upper.bottom
    air_above, air_below = (0, TIP) if down else (TIP, 0)
    begin = (x, upper.bottom + air_above)
    if lower.left - 80 < upper.x < lower.right + 80:
        landing = lower.x + (upper.x - lower.x) // 4 + aside
        middle = upper.bottom + gap // 2
        points = [begin, (x, middle), (landing, middle), (landing, lower.top - air_below)]
    else:
        side = lower.left - air_below if upper.x < lower.x else lower.right + air_below
        points = [begin, (x, lower.y - gap // 5), ((x + side) // 2, lower.y), (side, lower.y + aside)]
    return Route(curve(points if down else points[::-1]), (x, (upper.bottom + lower.top) // 2))


def loop(box: Box) -> Route:
    """From the underside back to it."""
    x, y = box.x, box.bottom
    return Route(curve([(x - 16, y), (x - 34, y + 48), (x + 34, y + 48), (x + 16, y + TIP)]), (x, y + 52), below=True)


def curve(points: list[Point]) -> str:
    begin, *rest = (f"{x} {y}" for x, y in points)
    return f"M {begin} C {', '.join(rest)}"


def draw_arrow(old: GroupState, new: GroupState, table: Table) -> Iterator[str]:
    way = route(old, new, table)
    to_last = " to-last" if new is GroupState.DEAD else ""
    head = "faint-head" if to_last else "head"
    yield f'<path id="{old}-{new}" class="arrow{to_last}" d="{way.d}" marker-end="url(#{head})"/>'
    lines = CAPTIONS.get((old, new), ())
    x, y = way.caption
    first = y if way.below else y - 15 * (len(lines) - 1)
    for number, line in enumerate(lines):
        yield f'<text class="caption" x="{x}" y="{first + 15 * number}">{escape(line)}</text>'


def draw_box(state: GroupState) -> Iterator[str]:
    box = place(state)
    yield f'<g id="{state}"' + (' class="last">' if state is GroupState.DEAD else ">")
    size = f'width="{box.width}" height="{box.height}" rx="{ROUNDING}"'
    yield f'  <rect class="box" x="{box.left}" y="{box.top}" {size}/>'
    yield f'  <text class="state" x="{box.x}" y="{box.y - 3}">{state}</text>'
    yield f'  <text class="meaning" x="{box.x}" y="{box.y + 17}">{escape(box.meaning)}</text>'
    yield "</g>"


def head(name: str, kind: str) -> str:
    shape = f'<path class="{kind}" d="M 0 0 L 10 5 L 0 10 z"/>'
    size = 'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse"'
    return f'<marker id="{name}" {size} orient="auto">{shape}</marker>'


def draw(table: Table = VALID_PREVIOUS_STATES) -> str:
    """The whole picture; the same table gives the same bytes."""
    pairs = transitions(table)
    told = "; ".join(f"{old} to {new}" for old, new in pairs)
    body = [line for state in GroupState for line in draw_box(state)]
    body += [line for old, new in pairs for line in draw_arrow(old, new, table)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-labelledby="title desc">',
        '  <title id="title">The life of a consumer group</title>',
        f'  <desc id="desc">The states of a group and the ways between them: {told}.</desc>',
        f"  <style>{STYLE}</style>",
        f"  <defs>{head('head', 'head')}{head('faint-head', 'head to-last')}</defs>",
        f'  <rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="{ROUNDING}"/>',
        *(f"  {line}" for line in body),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
