"""Lines of the table that `make bench` prints."""

import sys
from typing import Any

from kohort.cli.output import table

Row = dict[str, Any]


def told(what: str, figure: str) -> Row:
    """A figure that has no bound."""
    return {"what": what, "figure": figure}


def bounded(what: str, figure: float, bound: float, *, at_most: bool = False, digits: int = 1) -> Row:
    """A figure that must be at least, or at most, so much."""
    return {
        "what": what,
        "figure": f"{figure:.{digits}f}",
        "ratio": figure,
        "must": f"{'≤' if at_most else '≥'} {bound:g}",
        "holds": figure <= bound if at_most else figure >= bound,
    }


def progress(what: str) -> None:
    """What is being measured now, for whoever waits."""
    print(what, file=sys.stderr)


def all_hold(rows: list[Row]) -> bool:
    return all(row.get("holds", True) for row in rows)


def show(rows: list[Row]) -> None:
    verdict = {True: "yes", False: "NO", None: ""}
    for line in table(
        ["MEASURED", "FIGURE", "MUST BE", "HOLDS"],
        [[row["what"], row["figure"], row.get("must", ""), verdict[row.get("holds")]] for row in rows],
    ):
        print(line)
