"""What is written down of one run: what clients asked and heard, and when.

Every commit has an offset of its own, so an offset that is read tells which commit it comes from. A commit that is
answered well is in effect from then on at the latest; one that is refused never is; of one that got no answer nobody
knows.
"""

from dataclasses import dataclass, field
from enum import Enum

Key = tuple[str, int]
"""A group and the partition of the one topic that it commits for."""

NEVER = float("inf")


class Violation(AssertionError):
    """The broker has broken a promise."""


class Outcome(Enum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(slots=True, eq=False)
class Write:
    """A commit of one or more offsets at once: from when on and up to when it may take effect."""

    offsets: dict[Key, int]
    began: float
    ended: float = NEVER
    outcome: Outcome = Outcome.UNKNOWN
    seen: float = NEVER
    """When somebody had read it at the latest."""
    visible_from: float = 0.0
    """Before that nobody may read it: when the end of its transaction was asked for."""
    decided: float = NEVER
    """When the producer had heard that its transaction is committed: sooner or later it is in effect."""
    pending: tuple[float, float] | None = None
    """From when to when it certainly stood in a transaction that had not ended."""

    @property
    def in_effect_by(self) -> float:
        return min(self.ended if self.outcome is Outcome.OK else NEVER, self.seen)

    def end(self, at: float, outcome: Outcome) -> None:
        self.outcome = outcome
        self.ended = at if outcome is Outcome.OK else NEVER


@dataclass(slots=True)
class Read:
    key: Key
    offset: int | None
    began: float
    ended: float
    answer: int = -1
    """Reads of one answer have the same number."""
    is_stable: bool = False
    """It was asked for offsets that no transaction can change any more (KIP-447)."""


@dataclass(slots=True)
class Removal:
    """The offsets of a key may go from then on: somebody deletes them, or they may expire."""

    key: Key
    began: float
    ended: float = NEVER
    """From then on they are gone: it was answered well."""


@dataclass(slots=True)
class Expired:
    """The clock was set so far ahead that all that was committed before may go, unless its group has members."""

    group: str
    at: float


@dataclass(slots=True)
class Synced:
    """A member of a generation has got its share. Members are told apart by their instance where they have one: who
    takes the place of a static member takes its share too."""

    group: str
    generation: int
    member: str
    share: frozenset[int]
    began: float
    ended: float


@dataclass(slots=True)
class Joined:
    group: str
    generation: int
    member: str
    began: float
    ended: float
    instance: str | None = None


@dataclass(slots=True)
class Fenced:
    """A commit or a heartbeat of a member that was answered well."""

    group: str
    generation: int
    began: float
    ended: float
    member: str = ""
    instance: str | None = None


@dataclass(slots=True)
class Epoch:
    """A producer was given this epoch."""

    name: str
    producer: tuple[int, int]
    ended: float


@dataclass(slots=True)
class Transacted:
    """The request of a producer within its transaction that was answered well."""

    name: str
    producer: tuple[int, int]
    began: float


@dataclass(slots=True)
class Away:
    """From then to then somebody else coordinated a group."""

    group: str
    began: float
    ended: float


@dataclass(slots=True)
class History:
    """Everything of one run."""

    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    expiries: list[Expired] = field(default_factory=list)
    cleanups: list[float] = field(default_factory=list)
    """When groups went that had neither members nor offsets."""
    joins: list[Joined] = field(default_factory=list)
    syncs: list[Synced] = field(default_factory=list)
    commits: list[Fenced] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    transacted: list[Transacted] = field(default_factory=list)
    away: list[Away] = field(default_factory=list)

    def write(self, offsets: dict[Key, int], at: float) -> Write:
        written = Write(offsets, at)
        self.writes.append(written)
        return written

    def settle(self, at: float) -> None:
        """By now every transaction that was committed is in effect."""
        for write in self.writes:
            if write.decided < NEVER:
                write.end(at, Outcome.OK)
