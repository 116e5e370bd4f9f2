"""Whether a broker that keeps its promises could have said what clients have heard.

Nothing here knows how the broker works. `check` looks at the whole history: at offsets with the rules of
`offset_rules.py`, at members and producers with those of `member_rules.py`.
"""

from tests.simulation import member_rules, offset_rules
from tests.simulation.history import History, Key, Outcome, Read, Violation, Write

__all__ = ["Key", "Ledger", "Outcome", "Read", "Violation", "Write"]


class Ledger(History):
    """The history of one run, and its judge."""

    def check(self) -> None:
        """`Violation` if a promise was broken."""
        offset_rules.check(self)
        member_rules.check(self)
