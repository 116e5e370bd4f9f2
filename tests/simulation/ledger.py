"""What clients asked and heard, and whether a broker that keeps its promises could have said so.

Nothing here knows how the broker works. Every commit has an offset of its own, so an offset that is read tells which
commit it comes from. A commit that is answered well is in effect from then on at the latest; one that is refused never
is; of one that got no answer nobody knows. `check` looks at everything that was heard, key by key and group by group.
"""

from collections import defaultdict
from collections.abc import Iterable
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
    """A commit of one or more offsets at once, or their removal: from when on and up to when it may take effect."""

    offsets: dict[Key, int]
    began: float
    ended: float = NEVER
    outcome: Outcome = Outcome.UNKNOWN
    seen: float = NEVER
    """When somebody had read it at the latest."""

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


@dataclass(slots=True)
class Removal:
    """The offsets of a key may go from then on: somebody deletes them, or they may expire."""

    key: Key
    began: float
    ended: float = NEVER


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


@dataclass(slots=True)
class Fenced:
    """A commit of a member that was answered well."""

    group: str
    generation: int
    began: float
    ended: float


@dataclass(slots=True)
class Ledger:
    """The history of one run."""

    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    joins: list[Joined] = field(default_factory=list)
    syncs: list[Synced] = field(default_factory=list)
    commits: list[Fenced] = field(default_factory=list)

    def write(self, offsets: dict[Key, int], at: float) -> Write:
        written = Write(offsets, at)
        self.writes.append(written)
        return written

    def check(self) -> None:
        writes_of: dict[Key, dict[int, Write]] = defaultdict(dict)
        for write in self.writes:
            for key, offset in write.offsets.items():
                if offset in writes_of[key]:
                    raise ValueError(f"offset {offset} of {key} was committed twice: nobody could tell them apart")
                writes_of[key][offset] = write
        for read in self.reads:
            if read.offset is not None:
                self._check_origin(read, writes_of[read.key].get(read.offset))
        for read in self.reads:
            if read.offset is None:
                self._check_absence(read, writes_of[read.key].values())
            else:
                self._check_fresh(read, writes_of[read.key])
        self._check_generations()

    @staticmethod
    def _check_origin(read: Read, write: Write | None) -> None:
        if write is None:
            raise Violation(f"{read}: nobody ever committed that")
        if write.outcome is Outcome.FAILED:
            raise Violation(f"{read}: its commit was refused or aborted: {write}")
        if write.began > read.ended:
            raise Violation(f"{read}: it was committed later: {write}")
        write.seen = min(write.seen, read.ended)

    @staticmethod
    def _check_fresh(read: Read, writes: dict[int, Write]) -> None:
        assert read.offset is not None
        found = writes[read.offset]
        for newer in writes.values():
            if found.in_effect_by < newer.began and newer.in_effect_by < read.began:
                raise Violation(f"{read}: is {found}, but {newer} came after it and was in effect")

    def _check_absence(self, read: Read, writes: Iterable[Write]) -> None:
        for write in writes:
            if write.in_effect_by >= read.began:
                continue
            if not any(
                removal.key == read.key and removal.ended > write.began and removal.began < read.ended
                for removal in self.removals
            ):
                raise Violation(f"{read}: there is no offset, but {write} was in effect and nobody removed it")

    def _check_generations(self) -> None:
        by_generation: dict[tuple[str, int], dict[str, Synced]] = defaultdict(dict)
        for sync in self.syncs:
            others = by_generation[(sync.group, sync.generation)]
            for other in others.values():
                if other.member != sync.member and other.share & sync.share:
                    raise Violation(f"{sync} and {other}: two members of one generation own the same partition")
                if other.member == sync.member and other.share != sync.share:
                    raise Violation(f"{sync} and {other}: one member of one generation got two shares")
            others[sync.member] = sync
        for sync in self.syncs:
            for join in self.joins:
                if join.group == sync.group and join.began > sync.ended and join.generation < sync.generation:
                    raise Violation(f"{join} after {sync}: the generation has gone back")
            for commit in self.commits:
                if commit.group == sync.group and commit.generation < sync.generation and commit.began > sync.ended:
                    raise Violation(f"{commit}: a commit of an old generation was taken after {sync}")
