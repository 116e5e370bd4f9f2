"""The end of a replay: groups and offsets as a coordinator would hold them after loading."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kohort.records.groups import Group, classic_group
from kohort.records.modern_groups import ModernGroups
from kohort.records.offsets_topic import (
    CoordinatorKey,
    CoordinatorValue,
    GroupKey,
    GroupMetadataValue,
    Key,
    OffsetCommitValue,
    OffsetKey,
    UnknownKey,
    UnknownValue,
    decode_value,
)
from kohort.records.replay import Piece, Rule


class GroupTopicPartition(NamedTuple):
    """What an offset is committed for."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit and its place in the log."""

    position: int
    value: OffsetCommitValue


@dataclass(slots=True)
class State:
    """Everything that a log tells about its groups."""

    groups: dict[str, Group] = field(default_factory=dict)
    offsets: dict[GroupTopicPartition, Committed] = field(default_factory=dict)
    pending: dict[int, dict[GroupTopicPartition, Committed]] = field(default_factory=dict)
    removed_groups: set[str] = field(default_factory=set)
    unreadable: list[tuple[Key, UnknownValue]] = field(default_factory=list)
    unreadable_keys: int = 0
    records: int = 0


def finish(pieces: Iterable[Piece]) -> State:
    """The state at the end of whole partitions, one piece each."""
    state = State()
    for piece in pieces:
        _Finish(piece, state).run()
    return state


class _Finish:
    """One partition's share of the state."""

    def __init__(self, piece: Piece, state: State) -> None:
        self._piece = piece
        self._state = state
        self._modern = ModernGroups()
        self._group_gone: dict[str, int] = {}

    def run(self) -> None:
        piece, state = self._piece, self._state
        state.records += piece.records
        state.unreadable_keys += piece.unreadable_keys
        for number in piece.gone():
            self._gone(number)
        for number in piece.standing():
            self._standing(number)
        for producer_id, number, put in piece.pending():
            key = piece.keys.key(number)
            value = decode_value(key, put.value)
            if isinstance(key, OffsetKey) and isinstance(value, OffsetCommitValue):
                committed = Committed(put.position, value)
                state.pending.setdefault(producer_id, {})[_partition_of(key)] = committed
            elif isinstance(value, UnknownValue):
                state.unreadable.append((key, value))
        for group_id, group in self._modern.groups():
            state.groups.setdefault(group_id, group)
        self._groups_of_offsets()

    def _gone(self, number: int) -> None:
        key = self._piece.keys.key(number)
        if isinstance(key, GroupKey):
            self._state.removed_groups.add(key.group)
        if isinstance(key, GroupKey) or (isinstance(key, CoordinatorKey) and ModernGroups.is_group(key)):
            position = int(self._piece.removed[number])
            self._group_gone[key.group] = max(position, self._group_gone.get(key.group, -1))

    def _standing(self, number: int) -> None:
        key = self._piece.keys.key(number)
        value = decode_value(key, self._piece.values[number])
        match key, value:
            case OffsetKey(), OffsetCommitValue():
                self._state.offsets[_partition_of(key)] = Committed(int(self._piece.best[number]), value)
            case GroupKey(), GroupMetadataValue():
                self._state.groups[key.group] = classic_group(value)
            case CoordinatorKey(), CoordinatorValue():
                self._modern.add(key, value)
            case ((OffsetKey() | GroupKey() | CoordinatorKey()), UnknownValue()):
                self._state.unreadable.append((key, value))

    def _groups_of_offsets(self) -> None:
        """Groups that no group record tells of: they have offsets, or (on 4.x) had some once.

        A 4.x broker makes such a group at the first commit that it reads, be it aborted or deleted later, and forgets
        it at the group's own tombstone. Older ones, when they load, keep only those that have an offset in the end.
        """
        state = self._state
        with_offsets = {key.group for key in state.offsets} | {
            key.group for offsets in state.pending.values() for key in offsets
        }
        for number in self._piece.mentioned_offsets():
            key = self._piece.keys.key(number)
            if isinstance(key, UnknownKey) or key.group in state.groups:
                continue
            later = int(self._piece.mentioned[number]) > self._group_gone.get(key.group, -1)
            if key.group in with_offsets or (later and self._piece.rule is Rule.POSITION):
                state.groups[key.group] = Group()


def _partition_of(key: OffsetKey) -> GroupTopicPartition:
    return GroupTopicPartition(key.group, key.topic, key.partition)
