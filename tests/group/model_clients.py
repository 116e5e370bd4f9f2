"""What the clients of a coordinator know: what they asked, what they were told, and what follows from that."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kohort.errors import ErrorCode
from kohort.group.requests import JoinGroupResult, SyncGroupResult
from kohort.group.states import GroupState
from kohort.records.offsets_topic import GroupMetadataValue
from tests.group.model_log import endings, fold, generation_has_not_fallen


@dataclass(eq=False)
class Request:
    """A request whose answer may have to wait. One that `must_fail` names a member or a generation of the past."""

    kind: str
    groups: tuple[str, ...]
    answer: Any
    made_ms: int
    member: str = ""
    instance: str | None = None
    generation: int = -1
    protocols: str = ""
    offset: int | None = None
    """What it commits, a number that no other commits."""
    must_fail: bool = False


class Seat(NamedTuple):
    """A place in a generation, as its member was told of it; the leader knows the others."""

    group: str
    member: str
    instance: str | None
    generation: int
    others: tuple[str, ...]
    protocols: str


def seat_of(request: Request, joined: JoinGroupResult) -> Seat:
    others = tuple(other.member_id for other in joined.members)
    return Seat(request.groups[0], joined.member_id, request.instance, joined.generation_id, others, request.protocols)


@dataclass(eq=False)
class View:
    """One life of a group in one coordinator: from when it was made or loaded until it is gone."""

    group: Any
    known_from_log: frozenset[str] = frozenset()
    joined: dict[str, int] = field(default_factory=dict)
    """Members, with the newest generation that they were told."""
    member_of: dict[str, str] = field(default_factory=dict)
    """Instances, with the id that they were told last."""
    replaced: set[str] = field(default_factory=set)
    """Ids of instances that were told another one since."""
    state: GroupState | None = None
    generation: int = -1
    empty_since: int = -1

    @classmethod
    def of(cls, group: Any, record: GroupMetadataValue | None) -> "View":
        """A group that was not there before; if there is a record of it, it was loaded."""
        if record is None:
            return cls(group)
        members = frozenset(member.member_id for member in record.members)
        state = GroupState.STABLE if members else GroupState.EMPTY
        since = record.current_state_timestamp
        return cls(group, members, state=state, generation=record.generation, empty_since=since)

    def look(self, now_ms: int) -> None:
        group = self.group
        if self.state is not None:
            generation_has_not_fallen(group.group_id, self.generation, group.generation_id)
        has_changed = (self.state, self.generation) != (group.state, group.generation_id)
        if group.state is GroupState.EMPTY and has_changed:
            self.empty_since = now_ms
        self.state, self.generation = group.state, group.generation_id

    def is_past(self, member: str, generation: int) -> bool:
        """Whether a later generation, or a later id of the same instance, was given out."""
        return generation >= 0 and (member in self.replaced or generation < max(self.joined.values(), default=0))


class Book:
    """Who asked what, who was told what."""

    def __init__(self) -> None:
        self.waiting: list[Request] = []
        self.views: dict[str, View] = {}
        self.handed_out: dict[str, set[str]] = {}
        """Ids that newcomers were given to come again with, by group."""
        self.seats: list[Seat] = []
        self.owners: dict[tuple[str, int, int], dict[int, str]] = {}
        self.confirmed: set[int] = set()

    def hear(self, world: Any) -> None:
        """Note what became of the groups, and the answers that have come."""
        there = {group.group_id: group for group in world.c.manager.current_groups}
        self.views = {name: view for name, view in self.views.items() if there.get(name) is view.group}
        for name, group in there.items():
            if name not in self.views:
                self.views[name] = View.of(group, fold(world.log(group.partition)).groups.get(name))
            self.views[name].look(world.c.clock.now_ms())
        answered = [request for request in self.waiting if request.answer.is_done]
        self.waiting = [request for request in self.waiting if not request.answer.is_done]
        for request in answered:
            match request.answer.result:
                case JoinGroupResult() as joined:
                    self._joined(request, joined)
                case SyncGroupResult() as synced:
                    log = world.log(world.c.partition(request.groups[0]))
                    self._synced(request, synced, endings(log, request.groups[0]))
                case errors if request.offset is not None:
                    self._committed(request, errors)

    def _joined(self, request: Request, joined: JoinGroupResult) -> None:
        group, member = request.groups[0], joined.member_id
        if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.handed_out.setdefault(group, set()).add(member)
        if joined.error is not ErrorCode.NONE:
            return
        assert not request.must_fail, f"a member that was replaced has joined: {joined}"
        self.seats.append(seat_of(request, joined))
        if (view := self.views.get(group)) is not None:
            view.joined[member] = joined.generation_id
            if request.instance is not None:
                view.replaced |= {view.member_of.get(request.instance, member)} - {member}
                view.member_of[request.instance] = member

    def _synced(self, request: Request, synced: SyncGroupResult, life: int) -> None:
        """A partition has one owner in a generation. A static member under a new id is still the same owner."""
        if synced.error is not ErrorCode.NONE:
            return
        assert not request.must_fail, f"a generation that is over was given an assignment: {synced}"
        owner = request.instance or request.member
        owners = self.owners.setdefault((request.groups[0], life, request.generation), {})
        for partition in synced.assignment:
            other = owners.setdefault(partition, owner)
            assert other == owner, f"{owner} was given partition {partition} of {other}, in one generation: {request}"

    def _committed(self, request: Request, errors: Mapping[Any, ErrorCode]) -> None:
        if ErrorCode.NONE in errors.values() and request.offset is not None:
            assert not request.must_fail, f"a generation that is over has committed: {request}"
            self.confirmed.add(request.offset)
