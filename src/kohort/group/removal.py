"""Offsets and groups that go: deleted, expired, or left behind by a deleted topic.

First the tombstones are written and safe in the log, then memory forgets: whoever reads meanwhile still sees what
would come back after a crash. A group goes with its last offset if it is Empty; from the moment that its tombstone is
on the way nobody may use it.

However much goes, it goes in small steps with pauses between them, in which the coordinator serves others.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from kohort.clock import Clock
from kohort.errors import ErrorCode
from kohort.group.delayed import Timer, Timers, Turns
from kohort.group.group_metadata import GroupMetadata
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.group.metrics import GroupMetrics
from kohort.group.offsets_log import commit_error
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition

logger = logging.getLogger(__name__)

_TOMBSTONES_A_BATCH = 500
_KEY_BYTES_A_BATCH = 500_000
_LOOKS_A_STEP = 1_000
_LOOKS_FOR_A_TOMBSTONE = 10
"""To write one costs about as much as to look at so many offsets."""

Wanted = Callable[[TopicPartition], bool]
"""Whether an offset is still to go when its turn comes."""

RemovalCallback = Callable[[ErrorCode, int], None]
"""Told how it went and how many offsets are gone."""


class Removals:
    """Takes offsets and groups out of the log and out of memory, in this order."""

    def __init__(self, manager: GroupMetadataManager, clock: Clock, timers: Timers, metrics: GroupMetrics) -> None:
        self._manager = manager
        self._clock = clock
        self._timers = timers
        self._metrics = metrics
        self._turns = Turns(clock, timers, work_a_turn=_TOMBSTONES_A_BATCH * _LOOKS_FOR_A_TOMBSTONE)
        self._sweep_timer = Timer(self._begin_sweep)
        self._is_sweeping = False

    # Asked for

    def delete_group(self, group: GroupMetadata, done: RemovalCallback) -> None:
        """An Empty group with all that it has. Whoever asks for it from now on is told to come back later."""
        group.is_being_removed = True
        removal = self._removal(group, group.offsets.partitions(), done, is_whole_group=True)
        self._turns.soon(removal.step)

    def delete_offsets(self, group: GroupMetadata, partitions: Sequence[TopicPartition], done: RemovalCallback) -> None:
        """Those of these that the group has, committed or pending. All at once: a commit that comes later must stay."""
        offsets = group.offsets
        known = [
            partition
            for partition in dict.fromkeys(partitions)
            if offsets.get(partition) is not None or offsets.has_pending_for(partition)
        ]
        batches = list(_batches(group, known)) or [[]]
        waiting, worst, gone = len(batches), ErrorCode.NONE, 0

        def batch_done(error: ErrorCode, removed: int) -> None:
            nonlocal waiting, worst, gone
            waiting, worst, gone = waiting - 1, worst or error, gone + removed
            if not waiting:
                done(worst, gone)

        for batch in batches:
            self._removal(group, batch, batch_done).step()

    def delete_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Their topic is gone, so whatever any group has committed for them by now goes too."""
        deleted = frozenset(partitions)
        for group in self._manager.current_groups:
            found = {partition: group.offsets.traces(partition) for partition in group.offsets.among(deleted)}
            if found or (group.is_(GroupState.EMPTY) and not group.offsets.has_any):
                self._turns.soon(self._removal(group, list(found), _note_leftovers, _unchanged(group, found)).step)

    # Expired

    def start(self) -> None:
        """Look for expired offsets every `offsets.retention.check.interval.ms`."""
        self._timers.schedule(self._sweep_timer, self._manager.config.offsets_retention_check_interval_ms)

    def stop(self) -> None:
        self._sweep_timer.cancel()

    def _begin_sweep(self) -> None:
        self.start()
        self.cleanup_group_metadata()

    def cleanup_group_metadata(self) -> None:
        """Remove all that has expired by now: offsets, and Empty groups that have none left."""
        if not self._is_sweeping:
            self._is_sweeping = True
            self._work_through(self._sweep())

    def _sweep(self) -> Iterator[int]:
        """One pass over all groups."""
        now_ms, retention_ms = self._clock.now_ms(), self._manager.config.offsets_retention_ms
        for group in self._each_group():
            partitions = iter(list(group.offsets))
            while part := list(islice(partitions, _LOOKS_A_STEP)):
                rule = group.expiry_rule(now_ms, retention_ms)
                if rule is None or not self._is_here(group):
                    break
                if expired := [partition for partition in part if rule(partition)]:
                    removal = self._removal(group, expired, self._on_expired, self._still_expired(group))
                    self._turns.soon(removal.step)
                yield len(part)
            if self._is_here(group) and group.is_(GroupState.EMPTY) and not group.offsets.has_any:
                self._turns.soon(self._removal(group, (), self._on_expired).step)
            yield 1
        self._is_sweeping = False

    def _each_group(self) -> Iterator[GroupMetadata]:
        """All that there are now. None is held longer than needed: to free many at once takes its time too."""
        groups = list(reversed(self._manager.current_groups))
        while groups:
            yield groups.pop()

    def _work_through(self, steps: Iterator[int]) -> None:
        """Take all the steps, each of which tells how much work it was, and let others have their turn between them."""

        def step() -> int:
            work = next(steps, None)
            if work is None:
                return 0
            self._turns.soon(step)
            return work

        self._turns.soon(step)

    def _still_expired(self, group: GroupMetadata) -> Wanted:
        """Asked when the tombstones are written: what was committed since it was found must stay."""

        def has_expired(partition: TopicPartition) -> bool:
            rule = group.expiry_rule(self._clock.now_ms(), self._manager.config.offsets_retention_ms)
            return rule is not None and rule(partition)

        return has_expired

    def _removal(
        self,
        group: GroupMetadata,
        partitions: Sequence[TopicPartition],
        done: RemovalCallback,
        is_wanted: Wanted | None = None,
        *,
        is_whole_group: bool = False,
    ) -> "_Removal":
        return _Removal(self._manager, self._clock, self._turns, group, partitions, done, is_wanted, is_whole_group)

    def _is_here(self, group: GroupMetadata) -> bool:
        return self._manager.get_group(group.group_id) is group and not group.is_being_removed

    def _on_expired(self, error: ErrorCode, removed: int) -> None:
        if error is not ErrorCode.NONE:
            logger.warning("expired offsets stay until the next time: %s", error.name)
        self._metrics.offset_expirations.record(removed)


class _Removal:
    """The way out of one group's offsets, batch by batch."""

    def __init__(
        self,
        manager: GroupMetadataManager,
        clock: Clock,
        turns: Turns,
        group: GroupMetadata,
        partitions: Sequence[TopicPartition],
        done: RemovalCallback,
        is_wanted: Wanted | None,
        is_whole_group: bool,
    ) -> None:
        self._manager = manager
        self._clock = clock
        self._turns = turns
        self._group = group
        self._batches = _batches(group, partitions)
        self._next = next(self._batches, [])
        self._is_wanted = is_wanted
        self._done: RemovalCallback | None = done
        self._is_whole_group = is_whole_group
        self._claims_group = is_whole_group
        self._removed = 0

    def step(self) -> int:
        """Write the next batch of tombstones, the last one with that of the group if the group goes too."""
        group, batch, following = self._group, self._next, next(self._batches, None)
        if self._is_wanted is not None:
            batch = [partition for partition in batch if self._is_wanted(partition)]
        if group.is_(GroupState.DEAD):
            self._answer(ErrorCode.NOT_COORDINATOR)
            return 0
        ends_group = following is None and (self._is_whole_group or self._takes_the_last(batch))
        self._next = following or []
        if ends_group:
            self._claims_group = group.is_being_removed = True
        writes_group = ends_group and group.generation_id > 0
        if not batch and not writes_group:
            self._settled(batch, ErrorCode.NONE, 0, ends_group=ends_group)
            return _LOOKS_FOR_A_TOMBSTONE
        records = self._manager.records.tombstones(group.group_id, batch, self._clock.now_ms(), of_group=writes_group)
        self._manager.append(
            group.partition,
            records,
            lambda error, position: self._settled(batch, error, position, ends_group=ends_group),
            lambda: self._answer(ErrorCode.REQUEST_TIMED_OUT),
        )
        return (len(batch) + 1) * _LOOKS_FOR_A_TOMBSTONE

    def _takes_the_last(self, batch: list[TopicPartition]) -> bool:
        """Whether an Empty group would have nothing left, and nobody else is about to end it."""
        group = self._group
        is_free = group.is_(GroupState.EMPTY) and not group.is_being_removed
        return is_free and group.offsets.has_only(frozenset(batch))

    def _settled(self, batch: list[TopicPartition], error: ErrorCode, position: int, *, ends_group: bool) -> None:
        group = self._group
        if group.is_(GroupState.DEAD):
            self._answer(ErrorCode.NOT_COORDINATOR)
            return
        if error is not ErrorCode.NONE:
            logger.warning("%d tombstones of group %s were not written: %s", len(batch), group.group_id, error.name)
            if self._claims_group:
                group.is_being_removed = False
            self._answer(commit_error(error))
            return
        self._removed += group.offsets.remove(batch, position)
        if ends_group:
            group.transition_to(GroupState.DEAD)
            self._manager.forget_group(group)
            logger.info("group %s is gone in generation %d", group.group_id, group.generation_id)
        if self._next:
            self._turns.soon(self.step)
        else:
            self._answer(ErrorCode.NONE)

    def _answer(self, error: ErrorCode) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(error, self._removed)


def _note_leftovers(error: ErrorCode, _: int) -> None:
    if error is not ErrorCode.NONE:
        logger.warning("offsets of deleted partitions stay until they expire: %s", error.name)


def _batches(group: GroupMetadata, partitions: Sequence[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """As many as fit: a batch must not be larger than a log takes."""
    batch: list[TopicPartition] = []
    size = 0
    for partition in partitions:
        batch.append(partition)
        size += 3 * (len(group.group_id) + len(partition.topic)) + 20
        if len(batch) == _TOMBSTONES_A_BATCH or size >= _KEY_BYTES_A_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _unchanged(group: GroupMetadata, found: Mapping[TopicPartition, object]) -> Wanted:
    """What was committed since it was found must stay."""
    return lambda partition: group.offsets.traces(partition) == found[partition]
