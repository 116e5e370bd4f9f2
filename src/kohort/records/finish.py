"""The end of a replay: pieces of log become the state that a coordinator would hold after loading them."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kohort.records.garbage import garbage_collector_paused
from kohort.records.groups import Group, classic_group
from kohort.records.kernels import Longs
from kohort.records.modern_groups import ModernGroups
from kohort.records.offsets_topic import (
    CoordinatorKey,
    CoordinatorValue,
    GroupKey,
    GroupMetadataValue,
    OffsetCommitValue,
    OffsetKey,
    UnknownValue,
    decode_value,
)
from kohort.records.replay import Piece, Put, Rule
from kohort.records.state import Committed, GroupTopicPartition, State


def finish(pieces: Iterable[Piece]) -> State:
    """The state at the end of whole partitions, one piece each."""
    state = State()
    for piece in pieces:
        with garbage_collector_paused():
            _Finish(piece, state).run()
    return state


class _Finish:
    """One partition's share of the state."""

    def __init__(self, piece: Piece, state: State) -> None:
        self._piece = piece
        self._state = state
        self._modern = ModernGroups()
        self._group_gone: dict[str, int] = {}
        self._groups_with_offsets: dict[str, None] = {}

    def run(self) -> None:
        piece, state = self._piece, self._state
        state.records += piece.records
        state.unreadable_keys += piece.unreadable_keys
        for number in piece.gone():
            self._gone(number)
        standing = piece.standing()
        read = self._plain_offsets(standing)
        for number, position, raw in piece.positions_and_values(standing[~read]):
            self._standing(number, position, raw)
        for producer_id, number, put in piece.pending():
            self._pending(producer_id, number, put)
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

    def _plain_offsets(self, standing: Longs) -> NDArray[np.bool_]:
        """Read in bulk the committed offsets that are plain, nearly all there are; returns which keys these were."""
        piece = self._piece
        plain_keys = piece.keys.is_plain_offset(standing)
        candidates = standing[plain_keys]
        values = piece.values.offset_values(candidates)
        keys = candidates[values.plain]
        partitions = list(map(GroupTopicPartition._make, piece.keys.plain_offsets(keys)))
        committed = map(Committed._make, zip(piece.best[keys].tolist(), values.decoded(values.plain), strict=True))
        self._state.offsets.update(zip(partitions, committed, strict=True))
        self._groups_with_offsets.update(dict.fromkeys(partition.group for partition in partitions))
        plain_keys[plain_keys] = values.plain
        return plain_keys

    def _standing(self, number: int, position: int, raw: bytes) -> None:
        key = self._piece.keys.key(number)
        value = decode_value(key, raw)
        if isinstance(key, OffsetKey) and isinstance(value, OffsetCommitValue):
            self._state.offsets[_partition_of(key)] = Committed(position, value)
            self._groups_with_offsets[key.group] = None
        elif isinstance(key, GroupKey) and isinstance(value, GroupMetadataValue):
            self._state.groups[key.group] = classic_group(value)
        elif isinstance(key, CoordinatorKey) and isinstance(value, CoordinatorValue):
            self._modern.add(key, value)
        elif isinstance(value, UnknownValue):
            self._state.unreadable.append((key, value))

    def _pending(self, producer_id: int, number: int, put: Put) -> None:
        key = self._piece.keys.key(number)
        value = decode_value(key, put.value)
        if isinstance(key, OffsetKey) and isinstance(value, OffsetCommitValue):
            committed = Committed(put.position, value)
            self._state.pending.setdefault(producer_id, {})[_partition_of(key)] = committed
            self._groups_with_offsets[key.group] = None
        elif isinstance(value, UnknownValue):
            self._state.unreadable.append((key, value))

    def _groups_of_offsets(self) -> None:
        """Groups that no group record tells of: they have offsets, or (on 4.x) had some once.

        A 4.x broker makes such a group at the first commit that it reads, be it aborted or deleted later, and forgets
        it at the group's own tombstone. Older ones, when they load, keep only those that have an offset in the end.
        """
        groups = self._state.groups
        for group in self._groups_with_offsets:
            groups.setdefault(group, Group())
        if self._piece.rule is not Rule.POSITION:
            return
        for number, position in self._piece.mentioned_only():
            key = self._piece.keys.key(number)
            if (
                isinstance(key, OffsetKey)
                and key.group not in groups
                and position > self._group_gone.get(key.group, -1)
            ):
                groups[key.group] = Group()


def _partition_of(key: OffsetKey) -> GroupTopicPartition:
    return GroupTopicPartition(key.group, key.topic, key.partition)
