"""Offsets and groups that go: deleted, expired, or left behind by a deleted topic.

First the tombstones are written and safe in the log, then memory forgets: whoever reads meanwhile still sees what
would come back after a crash. A group goes with its last offset if it is Empty; from the moment that its tombstone is
on the way nobody may use it.

What goes by itself goes bit by bit, with pauses in which the coordinator serves others. Between finding an offset and
writing its tombstone somebody may commit it again: whether it is still to go is asked when it is written.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

from kohort.clock import Clock
from kohort.errors import ErrorCode
from kohort.group.delayed import Turns
from kohort.group.group_metadata import GroupMetadata
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.group.metrics import GroupMetrics, Meter
from kohort.group.offsets_log import commit_error
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.state import Committed

logger = logging.getLogger(__name__)

TOMBSTONES_A_BATCH = 500
LOOKS_FOR_A_TOMBSTONE = 10
"""To write one costs about as much as to look at so many offsets."""

_KEY_BYTES_A_BATCH = 500_000

Wanted = Callable[[TopicPartition], bool]
"""Whether an offset is still to go when its turn comes."""

Done = Callable[[ErrorCode], None]


class Removals:
    """Takes offsets and groups out of the log and out of memory, in this order."""

    def __init__(self, manager: GroupMetadataManager, clock: Clock, turns: Turns, metrics: GroupMetrics) -> None:
        self._manager = manager
        self._clock = clock
        self._turns = turns
        self._metrics = metrics

    def delete_group(self, group: GroupMetadata, done: Done) -> None:
        """An Empty group with all that it has. Whoever asks for it from now on is told to come back later."""
        removal = self._removal(group, group.offsets.partitions(), done, None)
        group.removed_by = removal
        self._turns.soon(removal.step)

    def delete_offsets(self, group: GroupMetadata, partitions: Sequence[TopicPartition], done: Done) -> None:
        """Those of these that the group has, committed or pending. All at once: a commit that comes later must stay."""
        offsets = group.offsets
        known = [
            partition
            for partition in dict.fromkeys(partitions)
            if offsets.get(partition) is not None or offsets.has_pending_for(partition)
        ]
        batches = list(_batches(group, known)) or [[]]
        waiting, worst = len(batches), ErrorCode.NONE

        def batch_done(error: ErrorCode) -> None:
            nonlocal waiting, worst
            waiting, worst = waiting - 1, worst or error
            if waiting:
                return
            if len(batches) > 1 and worst is ErrorCode.NONE:
                self._removal(group, (), done, None).step()  # each batch still saw the offsets of the others
            else:
                done(worst)

        for batch in batches:
            self._removal(group, batch, batch_done, self._metrics.offset_deletions).step()

    def delete_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Their topic is gone, so whatever any group has committed for them by now goes too."""
        deleted = frozenset(partitions)
        for group in self._manager.current_groups:
            found = group.offsets.among(deleted)
            if found or (group.is_(GroupState.EMPTY) and not group.offsets.has_any):
                removal = self._removal(group, found, _note_leftovers, None, _as_found(group, found))
                self._turns.soon(removal.step)

    def expire(self, group: GroupMetadata, partitions: Sequence[TopicPartition], is_still_expired: Wanted) -> None:
        """What was found expired; and the group, if it is Empty then."""
        meter = self._metrics.offset_expirations
        self._turns.soon(self._removal(group, partitions, _note_unexpired, meter, is_still_expired).step)

    def _removal(
        self,
        group: GroupMetadata,
        partitions: Sequence[TopicPartition],
        done: Done,
        meter: Meter | None,
        is_wanted: Wanted | None = None,
    ) -> "_Removal":
        return _Removal(self._manager, self._clock, self._turns, group, partitions, done, meter, is_wanted)


class _Removal:
    """The way out of one group's offsets, batch by batch."""

    def __init__(
        self,
        manager: GroupMetadataManager,
        clock: Clock,
        turns: Turns,
        group: GroupMetadata,
        partitions: Sequence[TopicPartition],
        done: Done,
        meter: Meter | None,
        is_wanted: Wanted | None,
    ) -> None:
        self._manager = manager
        self._clock = clock
        self._turns = turns
        self._group = group
        self._batches = _batches(group, partitions)
        self._next = next(self._batches, [])
        self._done: Done | None = done
        self._meter = meter
        self._is_wanted = is_wanted

    def step(self) -> int:
        """Write the next batch of tombstones, the last one with that of the group if the group goes too."""
        group = self._group
        if group.is_(GroupState.DEAD):
            self._answer(ErrorCode.NOT_COORDINATOR)
            return 0
        batch, following = self._next, next(self._batches, None)
        self._next = following or []
        if self._is_wanted is not None:
            batch = [partition for partition in batch if self._is_wanted(partition)]
        if following is None and self._takes_the_last(batch):
            group.removed_by = self
        ends_group = following is None and group.removed_by is self
        writes_group = ends_group and group.generation_id > 0
        if not batch and not writes_group:
            self._settled(batch, ErrorCode.NONE, 0, ends_group=ends_group)
            return LOOKS_FOR_A_TOMBSTONE
        self._manager.append(
            group.partition,
            self._manager.records.tombstones(group.group_id, batch, self._clock.now_ms(), of_group=writes_group),
            lambda error, position: self._settled(batch, error, position, ends_group=ends_group),
            self._timed_out,
        )
        return (len(batch) + 1) * LOOKS_FOR_A_TOMBSTONE

    def _takes_the_last(self, batch: list[TopicPartition]) -> bool:
        """Whether an Empty group would have nothing left, and nobody else is about to end it."""
        group = self._group
        is_free = group.is_(GroupState.EMPTY) and group.removed_by is None
        return is_free and group.offsets.has_only(frozenset(batch))

    def _settled(self, batch: list[TopicPartition], error: ErrorCode, position: int, *, ends_group: bool) -> None:
        group = self._group
        if group.is_(GroupState.DEAD):
            self._answer(ErrorCode.NOT_COORDINATOR)
            return
        if error is not ErrorCode.NONE:
            logger.warning("%d tombstones of group %r were not written: %s", len(batch), group.group_id, error.name)
            if group.removed_by is self:
                group.removed_by = None
            self._answer(commit_error(error))
            return
        removed = self._manager.remove_offsets(group, batch, position)
        if self._meter is not None:
            self._meter.record(removed)
        if ends_group:
            group.transition_to(GroupState.DEAD)
            self._manager.forget_group(group)
            logger.info("group %r is gone in generation %d", group.group_id, group.generation_id)
        if self._next:
            self._turns.soon(self.step)
        else:
            self._answer(ErrorCode.NONE)

    def _timed_out(self) -> None:
        self._answer(ErrorCode.REQUEST_TIMED_OUT)

    def _answer(self, error: ErrorCode) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(error)


def _batches(group: GroupMetadata, partitions: Sequence[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """As many as fit: a batch must not be larger than a log takes."""
    batch: list[TopicPartition] = []
    size = 0
    for partition in partitions:
        batch.append(partition)
        size += 3 * (len(group.group_id) + len(partition.topic)) + 20
        if len(batch) == TOMBSTONES_A_BATCH or size >= _KEY_BYTES_A_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _as_found(group: GroupMetadata, partitions: Sequence[TopicPartition]) -> Wanted:
    """What is committed from now on must stay. If the group does commit, what is pending now may stay with it."""
    offsets = group.offsets
    commits = offsets.prepared
    found: dict[TopicPartition, Committed | None] = {
        partition: offsets.committed(partition) for partition in partitions
    }

    def is_wanted(partition: TopicPartition) -> bool:
        is_same = offsets.committed(partition) is found[partition] and not offsets.has_pending_for(partition)
        return offsets.prepared == commits or is_same

    return is_wanted


def _note_leftovers(error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        logger.warning("offsets of deleted partitions stay until they expire: %s", error.name)


def _note_unexpired(error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        logger.warning("expired offsets stay until the next time: %s", error.name)
