"""What a task is asked for. It travels with the plan, so it is made of plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a log: a table, some of its columns, and which rows will do.

    Times are milliseconds and included. Rows of other groups, topics and times may be left out, for whoever asks
    looks again; with `fail_fast`, damage is raised instead of being passed over. With `until`, each partition ends
    before an offset, and what became of its transactions is what was known there. A replay follows a rule, ends at a
    time, and takes from each partition what stands from an offset on. Tables that are written go to directories in
    `into`.
    """

    table: str
    columns: tuple[str, ...]
    fail_fast: bool = False
    starting: int | None = None
    ending: int | None = None
    groups: frozenset[str] | None = None
    topics: frozenset[str] | None = None
    rule: str = "position"
    as_of: int | None = None
    since: Mapping[int, int] = field(default_factory=dict)
    until: Mapping[int, int] | None = None
    into: str = ""
