"""What nobody needs any more: offsets past their time (KIP-211), and Empty groups that have none left."""

from collections.abc import Iterator
from itertools import islice

from kohort.clock import Clock
from kohort.config import GroupConfig
from kohort.group.delayed import Timer, Timers, Turns
from kohort.group.group_metadata import GroupMetadata
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.group.removal import Removals, Wanted
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import NO_EXPIRE_TIMESTAMP

_LOOKS_A_STEP = 1_000


class Expiry:
    """Looks through all groups every `offsets.retention.check.interval.ms`."""

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        timers: Timers,
        turns: Turns,
        manager: GroupMetadataManager,
        removals: Removals,
    ) -> None:
        self._config = config
        self._clock = clock
        self._timers = timers
        self._turns = turns
        self._manager = manager
        self._removals = removals
        self._timer = Timer(self._on_interval)
        self._is_sweeping = False

    def start(self) -> None:
        self._timers.schedule(self._timer, self._config.offsets_retention_check_interval_ms)

    def stop(self) -> None:
        self._timer.cancel()

    def _on_interval(self) -> None:
        self.start()
        self.cleanup_group_metadata()

    def cleanup_group_metadata(self) -> None:
        """Remove all that has expired by now."""
        if self._is_sweeping:
            return
        self._is_sweeping = True
        steps = self._sweep()

        def step() -> int:
            work = next(steps, None)
            if work is None:
                self._is_sweeping = False
                return 0
            self._turns.soon(step)
            return work

        self._turns.soon(step)

    def _sweep(self) -> Iterator[int]:
        """One pass over all groups; tells how much work each step was."""
        for group in self._each_group():
            partitions = iter(list(group.offsets))
            while part := list(islice(partitions, _LOOKS_A_STEP)):
                has_expired = self._has_expired(group)
                if expired := [partition for partition in part if has_expired(partition)]:
                    self._removals.expire(group, expired, self._has_expired(group, ask_again=True))
                yield len(part)
            is_idle = group.is_(GroupState.EMPTY) and not group.offsets.has_any
            if is_idle and not group.is_being_removed:
                self._removals.expire(group, (), lambda _: True)
            yield 1

    def _each_group(self) -> Iterator[GroupMetadata]:
        """All that there are now. None is held longer than needed: to free many at once takes its time too."""
        groups = list(reversed(self._manager.current_groups))
        while groups:
            yield groups.pop()

    def _has_expired(self, group: GroupMetadata, *, ask_again: bool = False) -> Wanted:
        """The rule for the group as it is now, or as it is whenever it is asked."""

        def rule_now() -> Wanted:
            rule = expiry_rule(group, self._clock.now_ms(), self._config.offsets_retention_ms)
            return (lambda _: False) if rule is None or group.is_being_removed else rule

        return (lambda partition: rule_now()(partition)) if ask_again else rule_now()


def expiry_rule(group: GroupMetadata, now_ms: int, retention_ms: int) -> Wanted | None:
    """Whose committed offsets have expired; None if none can in this state.

    A group that lost its members keeps everything for the retention time, counted from when it became Empty. A simple
    consumer's offsets count from their commit, and so do those of a Stable group for topics that it no longer
    subscribes to: in the middle of a rebalance nobody knows what that is (KAFKA-13636). What has a commit pending
    stays: a tombstone would stand behind it in the log and end it.
    """
    since: int | None = None
    spared: frozenset[str] = frozenset()
    if group.is_(GroupState.DEAD):
        return None
    if group.protocol_type is not None:
        if group.is_(GroupState.EMPTY):
            since = group.current_state_timestamp
        elif group.is_consumer_group and group.is_(GroupState.STABLE) and group.subscribed_topics is not None:
            spared = group.subscribed_topics
        else:
            return None
    offsets = group.offsets

    def has_expired(partition: TopicPartition) -> bool:
        value = offsets.get(partition)
        if value is None:
            return False
        if value.expire_timestamp != NO_EXPIRE_TIMESTAMP:
            is_over = now_ms >= value.expire_timestamp
        else:
            is_over = now_ms - (value.commit_timestamp if since is None else since) >= retention_ms
        return is_over and partition.topic not in spared and not offsets.has_pending_for(partition)

    return has_expired
