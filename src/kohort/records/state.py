"""The end of a replay: groups and offsets as a coordinator would hold them after loading."""

import contextlib
import gc
from collections.abc import Iterable, Iterator
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
        with _garbage_collector_paused():
            _Finish(piece, state).run()
    return state


@contextlib.contextmanager
def _garbage_collector_paused() -> Iterator[None]:
    """A state is many small objects that all stay: looking through them again and again took half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Finish:
    """One partition's share of the state."""

    def __init__(self, piece: Piece, state: State) -> None:
        self._piece = piece
        self._state = state
        self._modern = ModernGroups()
        self._group_gone: dict[str, int] = {}
        self._keys: dict[int, Key] = {}

    def run(self) -> None:
        piece, state = self._piece, self._state
        state.records += piece.records
        state.unreadable_keys += piece.unreadable_keys
        for number in piece.gone():
            self._gone(number)
        for number in piece.standing():
            self._standing(number)
        for producer_id, number, put in piece.pending():
            key = self._key(number)
            value = decode_value(key, put.value)
            if isinstance(key, OffsetKey) and isinstance(value, OffsetCommitValue):
                committed = Committed(put.position, value)
                state.pending.setdefault(producer_id, {})[_partition_of(key)] = committed
            elif isinstance(value, UnknownValue):
                state.unreadable.append((key, value))
        for group_id, group in self._modern.groups():
            state.groups.setdefault(group_id, group)
        self._groups_of_offsets()

    def _key(self, number: int) -> Key:
        """A key, decoded once however often it is asked for."""
        key = self._keys.get(number)
        if key is None:
            key = self._keys[number] = self._piece.keys.key(number)
        return key

    def _gone(self, number: int) -> None:
        key = self._key(number)
        if isinstance(key, GroupKey):
            self._state.removed_groups.add(key.group)
        if isinstance(key, GroupKey) or (isinstance(key, CoordinatorKey) and ModernGroups.is_group(key)):
            position = int(self._piece.removed[number])
            self._group_gone[key.group] = max(position, self._group_gone.get(key.group, -1))

    def _standing(self, number: int) -> None:
        key = self._key(number)
        value = decode_value(key, self._piece.values[number])
        if isinstance(key, OffsetKey) and isinstance(value, OffsetCommitValue):
            self._state.offsets[_partition_of(key)] = Committed(int(self._piece.best[number]), value)
        elif isinstance(key, GroupKey) and isinstance(value, GroupMetadataValue):
            self._state.groups[key.group] = classic_group(value)
        elif isinstance(key, CoordinatorKey) and isinstance(value, CoordinatorValue):
            self._modern.add(key, value)
        elif isinstance(value, UnknownValue):
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
            key = self._key(number)
            if isinstance(key, UnknownKey) or key.group in state.groups:
                continue
            later = int(self._piece.mentioned[number]) > self._group_gone.get(key.group, -1)
            if key.group in with_offsets or (later and self._piece.rule is Rule.POSITION):
                state.groups[key.group] = Group()


def _partition_of(key: OffsetKey) -> GroupTopicPartition:
    return GroupTopicPartition(key.group, key.topic, key.partition)
