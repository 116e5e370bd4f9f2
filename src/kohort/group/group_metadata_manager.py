"""The groups of this broker: which it owns, how they get into the log and back out of it.

A group lives in one partition of `__consumer_offsets`. Whoever leads that partition owns the group: it loads the
partition when elected, answers from memory, writes every change to the log before it tells anybody, and lets go of
everything when it resigns. A partition whose load failed is owned by nobody: no answer is better than a wrong one.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kohort.clock import Clock
from kohort.config import GroupConfig
from kohort.errors import ClientError, ErrorCode, KohortError
from kohort.group.answers import Answers
from kohort.group.delayed import Timer, Timers
from kohort.group.group_metadata import GroupMetadata
from kohort.group.loading import loaded_groups
from kohort.group.memory import GroupMemory
from kohort.group.metrics import GroupMetrics
from kohort.group.offsets_log import AppendCallback, OffsetsLog, commit_error, group_error
from kohort.group.placement import partition_for
from kohort.group.records import GroupRecords, is_writable
from kohort.group.requests import CommitCallback, GroupId, MemberId, Offsets, PartitionData, SameForAll
from kohort.group.states import GroupState
from kohort.group.waiting_commits import CommitTimeouts, WaitingCommits
from kohort.group.written_commits import WrittenCommits
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kohort.records.finished_batch import FinishedBatch
from kohort.records.garbage import garbage_collector_paused
from kohort.records.state import State

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Load:
    """A load under way, and the markers that were written meanwhile."""

    epoch: int
    began_ms: int
    completions: list[tuple[int, bool]] = field(default_factory=list)


class GroupMetadataManager:
    """Groups in memory and their way to the log and back."""

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        timers: Timers,
        answers: Answers,
        log: OffsetsLog,
        metrics: GroupMetrics,
    ) -> None:
        self.config = config
        self._clock = clock
        self._timers = timers
        self._answers = answers
        self._log = log
        self._metrics = metrics
        self.records = GroupRecords(config)
        self._groups: dict[GroupId, GroupMetadata] = {}
        self.memory = GroupMemory()
        """What all of them take."""
        self._owned: set[int] = set()
        self._loading: dict[int, _Load] = {}
        self._epochs: dict[int, int] = {}
        self.failed_loads: dict[int, KohortError] = {}
        """Partitions that should be here and are not, and why."""
        self._open_groups_for_producer: dict[int, dict[GroupId, None]] = {}
        self._waiting_commits = CommitTimeouts(clock, timers, config.offsets_commit_timeout_ms)

    # Groups

    @property
    def current_groups(self) -> Sequence[GroupMetadata]:
        return tuple(self._groups.values())

    def get_group(self, group_id: GroupId) -> GroupMetadata | None:
        return self._groups.get(group_id)

    def get_or_create_group(self, group_id: GroupId) -> GroupMetadata:
        group = self._groups.get(group_id)
        return self.add_group(self.new_group(group_id)) if group is None else group

    def new_group(self, group_id: GroupId) -> GroupMetadata:
        """A group that nobody knows yet."""
        return GroupMetadata(group_id, self._clock, partition=self.partition_for(group_id))

    def add_group(self, group: GroupMetadata) -> GroupMetadata:
        """Keep a group; if there is one with its id already, that one stays."""
        kept = self._groups.setdefault(group.group_id, group)
        kept.count_in(self.memory)
        return kept

    def forget_group(self, group: GroupMetadata) -> None:
        """The group is Dead; nothing of it stays in memory."""
        del self._groups[group.group_id]
        group.count_in(GroupMemory())
        for producer_id in group.offsets.producers:
            self._close_group_for_producer(producer_id, group.group_id)

    def remove_offsets(self, group: GroupMetadata, partitions: Iterable[TopicPartition], position: int) -> int:
        """Tombstones stand in the log at `position`; tells how many committed offsets are gone with them."""
        producers = list(group.offsets.producers)
        removed = group.offsets.remove(partitions, position)
        for producer_id in producers:
            if not group.offsets.has_pending_from(producer_id):
                self._close_group_for_producer(producer_id, group.group_id)
        return removed

    def group_not_exists(self, group_id: GroupId) -> bool:
        """Whether it is known that there is no such group: only the owner knows."""
        group = self._groups.get(group_id)
        return self.is_group_local(group_id) and (group is None or group.is_(GroupState.DEAD))

    # Partitions

    def partition_for(self, group_id: GroupId) -> int:
        return partition_for(group_id, self.config.offsets_topic_num_partitions)

    def is_group_local(self, group_id: GroupId) -> bool:
        return self.partition_for(group_id) in self._owned

    def is_group_loading(self, group_id: GroupId) -> bool:
        return self.partition_for(group_id) in self._loading

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    @property
    def partitions(self) -> Sequence[int]:
        """Owned or about to be."""
        return sorted(self._owned | self._loading.keys())

    def epoch_of(self, partition: int) -> int | None:
        """The newest leader epoch heard of."""
        return self._epochs.get(partition)

    def load(
        self,
        partition: int,
        epoch: int,
        on_group_loaded: Callable[[GroupMetadata], None],
        on_group_unloaded: Callable[[GroupMetadata], None],
    ) -> None:
        """This broker was elected: read the partition. What is older than what is known already is passed over."""
        known = self._epochs.get(partition, epoch)
        is_here = partition in self._owned or partition in self._loading
        if epoch < known or (epoch == known and is_here):
            logger.info("election for partition %d at epoch %d passed over: epoch is %d", partition, epoch, known)
            return
        if is_here:
            self.unload(partition, None, on_group_unloaded)
        self._epochs[partition] = epoch
        self.failed_loads.pop(partition, None)
        load = self._loading[partition] = _Load(epoch, self._clock.monotonic_ms())
        logger.info("loading partition %d at epoch %d", partition, epoch)

        def done(result: State | KohortError) -> None:
            with self._answers:
                self._on_loaded(partition, load, result, on_group_loaded)

        self._log.load(partition, done)

    def _on_loaded(
        self, partition: int, load: _Load, result: State | KohortError, on_group_loaded: Callable[[GroupMetadata], None]
    ) -> None:
        if self._loading.get(partition) is not load:
            logger.info("load of partition %d at epoch %d is outdated", partition, load.epoch)
            return
        if isinstance(result, KohortError):
            del self._loading[partition]
            self.failed_loads[partition] = result
            logger.error("partition %d could not be loaded and stays unavailable: %s", partition, result)
            return
        with garbage_collector_paused():
            groups = self._install(partition, result, on_group_loaded)
        del self._loading[partition]
        self._owned.add(partition)
        for producer_id, is_commit in load.completions:
            self.handle_txn_completion(producer_id, (partition,), is_commit=is_commit)
        duration = self._clock.monotonic_ms() - load.began_ms
        self._metrics.partition_loads.record(duration, result.records)
        unreadable = result.unreadable_keys + len(result.unreadable)
        self._metrics.unreadable_records += unreadable
        logger.info("loaded %d groups from partition %d in %d ms", groups, partition, duration)
        if unreadable:
            logger.warning("%d records of partition %d could not be read and were skipped", unreadable, partition)

    def _install(self, partition: int, state: State, on_group_loaded: Callable[[GroupMetadata], None]) -> int:
        number = 0
        for group in loaded_groups(state, self._clock, self.partition_for, partition):
            self.add_group(group)
            for producer_id in group.offsets.producers:
                self._open_groups_for_producer.setdefault(producer_id, {})[group.group_id] = None
            on_group_loaded(group)
            number += 1
        return number

    def unload(self, partition: int, epoch: int | None, on_group_unloaded: Callable[[GroupMetadata], None]) -> None:
        """Somebody else leads the partition now. Without an epoch it is given up for good reason anyway."""
        known = self._epochs.get(partition)
        if epoch is not None:
            if known is not None and epoch < known:
                logger.info(
                    "resignation from partition %d at epoch %d passed over: epoch is %d", partition, epoch, known
                )
                return
            self._epochs[partition] = epoch
        self._owned.discard(partition)
        self._loading.pop(partition, None)
        self.failed_loads.pop(partition, None)
        groups = [group for group in self._groups.values() if group.partition == partition]
        for group in groups:
            self.forget_group(group)
            on_group_unloaded(group)
        logger.info("unloaded %d groups of partition %d", len(groups), partition)

    # Writing

    def append(
        self,
        partition: int,
        records: bytes | FinishedBatch,
        settled: AppendCallback,
        timed_out: Callable[[], None],
    ) -> None:
        """Write a batch. `settled` hears what became of it, whenever that is known; if it takes longer than
        `offsets.commit.timeout.ms`, `timed_out` is called first, once."""
        timer: Timer | None = None
        is_settled = False

        def done(error: ErrorCode, position: int) -> None:
            nonlocal is_settled
            is_settled = True
            if timer is not None:
                timer.discard()
            with self._answers:
                settled(error, position)

        self._log.append(partition, records, done)
        if not is_settled:
            timer = self._timers.after(self.config.offsets_commit_timeout_ms, timed_out)

    def store_group(
        self,
        group: GroupMetadata,
        assignment: Mapping[MemberId, bytes],
        respond: Callable[[ErrorCode], None],
        settled: Callable[[ErrorCode], None] | None = None,
    ) -> None:
        """Write the group with this assignment.

        `respond` hears once how that went, or that it takes too long; `settled` how it went, however long it took.
        """
        answer = _Once(respond)
        generation_id = group.generation_id

        def done(error: ErrorCode, _: int) -> None:
            if error is not ErrorCode.NONE:
                logger.warning("group %r, generation %d was not written: %s", group.group_id, generation_id, error.name)
            answer(group_error(error))
            if settled is not None:
                settled(group_error(error))

        try:
            records = self.records.group_metadata(group, assignment, self._clock.now_ms())
        except ClientError as error:
            done(error.code, -1)
            return
        self.append(group.partition, records, done, lambda: answer(group_error(ErrorCode.REQUEST_TIMED_OUT)))

    def store_offsets(
        self,
        group: GroupMetadata,
        offsets: Offsets,
        respond: CommitCallback,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        """Write commits. Those with too much metadata are refused and leave nothing behind (KAFKA-16371)."""
        kept = offsets if isinstance(offsets, WrittenCommits) else self._with_short_metadata(offsets)
        if not kept:
            respond(SameForAll(offsets, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            return

        def answer_all(error: ErrorCode) -> None:
            if kept is offsets:
                respond(SameForAll(offsets, error))
            else:
                too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
                respond({partition: error if partition in kept else too_large for partition in offsets})

        answer = _Once(answer_all)

        def settled(error: ErrorCode, position: int) -> None:
            if not group.is_(GroupState.DEAD):
                self._settle_offsets(group, kept, producer_id, error, position)
            if error is ErrorCode.NONE:
                self._metrics.offset_commits.record(len(kept))
            answer(commit_error(error))

        try:
            records = self._commit_records(group.group_id, kept, producer_id, producer_epoch)
        except ClientError as error:
            answer(commit_error(error.code))
            return
        self._prepare_offsets(group, kept, producer_id)
        self.append(group.partition, records, settled, lambda: answer(ErrorCode.REQUEST_TIMED_OUT))

    def store_at_once(self, group: GroupMetadata, commits: WrittenCommits) -> bool:
        """The same for plain commits that nobody has to wait for; if they are not, nothing has happened."""
        if group.offsets.received_txn_commits:
            return False
        position = self._log.append_at_once(group.partition, commits.batch)
        if position is None:
            return False
        group.offsets.commit_at_once(commits, position)
        self._metrics.offset_commits.record(len(commits))
        return True

    def store_soon(self, group: GroupMetadata, commits: WrittenCommits, respond: Callable[[ErrorCode], None]) -> bool:
        """The same for those that may have to wait for the disk; `respond` hears of it unless nothing has happened."""
        if group.offsets.received_txn_commits:
            return False
        waiting = WaitingCommits(group, commits, self._metrics.offset_commits, self._answers, respond)
        group.offsets.prepare_commit(commits)
        if not self._log.append_soon(group.partition, waiting):
            group.offsets.fail_pending_commit(commits)
            return False
        if not waiting.is_answered:
            self._waiting_commits.add(waiting)
        return True

    def _commit_records(
        self, group_id: GroupId, offsets: Offsets, producer_id: int, producer_epoch: int
    ) -> bytes | FinishedBatch:
        if isinstance(offsets, WrittenCommits):
            return offsets.batch
        now_ms = self._clock.now_ms()
        return self.records.offset_commits(
            group_id, offsets, now_ms, producer_id=producer_id, producer_epoch=producer_epoch
        )

    def _prepare_offsets(self, group: GroupMetadata, offsets: Offsets, producer_id: int) -> None:
        were_consistent = group.offsets.are_consistent
        if producer_id == NO_PRODUCER_ID:
            group.offsets.prepare_commit(offsets)
        else:
            self._open_groups_for_producer.setdefault(producer_id, {})[group.group_id] = None
            group.offsets.prepare_txn_commit(producer_id, offsets)
        if were_consistent and not group.offsets.are_consistent:
            logger.warning(
                "group %r gets plain and transactional commits in one generation: the later in the log wins",
                group.group_id,
            )

    def _settle_offsets(
        self, group: GroupMetadata, offsets: Offsets, producer_id: int, error: ErrorCode, position: int
    ) -> None:
        if producer_id == NO_PRODUCER_ID:
            if error is ErrorCode.NONE:
                group.offsets.on_commit_append(offsets, position)
            else:
                group.offsets.fail_pending_commit(offsets)
        elif error is ErrorCode.NONE:
            group.offsets.on_txn_commit_append(producer_id, offsets, position)
        else:
            group.offsets.fail_pending_txn_commit(producer_id, offsets)
            if not group.offsets.has_pending_from(producer_id):
                self._close_group_for_producer(producer_id, group.group_id)

    def _with_short_metadata(self, offsets: Offsets) -> Offsets:
        if all(self._is_metadata_short(value.metadata) for value in offsets.values()):
            return offsets
        return {partition: value for partition, value in offsets.items() if self._is_metadata_short(value.metadata)}

    def _is_metadata_short(self, metadata: str) -> bool:
        """Counted in UTF-16 units, as Java counts; and it must fit into a record."""
        limit = self.config.offset_metadata_max_bytes
        if 2 * len(metadata) > limit and len(metadata) + sum(character > "\uffff" for character in metadata) > limit:
            return False
        return is_writable(metadata)

    # Reading

    def get_offsets(
        self, group_id: GroupId, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
    ) -> dict[TopicPartition, PartitionData]:
        """Committed offsets from memory, of some partitions or of all that have one."""
        group = self._groups.get(group_id)
        if group is None or group.is_(GroupState.DEAD):
            return dict.fromkeys(partitions or (), PartitionData())
        offsets = group.offsets
        answer = {}
        for partition in offsets if partitions is None else partitions:
            value = offsets.get(partition)
            if require_stable and offsets.has_pending_for(partition):
                answer[partition] = PartitionData(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
            elif value is None:
                answer[partition] = PartitionData()
            else:
                answer[partition] = PartitionData(value.offset, value.leader_epoch, value.metadata)
        return answer

    # Transactions

    def handle_txn_completion(self, producer_id: int, partitions: Iterable[int], *, is_commit: bool) -> None:
        """A marker was written to these partitions: what the producer committed there counts now, or never."""
        wanted = set(partitions)
        for partition in wanted & self._loading.keys():
            self._loading[partition].completions.append((producer_id, is_commit))
        for group_id in list(self._open_groups_for_producer.get(producer_id, ())):
            group = self._groups.get(group_id)
            if group is not None and group.partition in wanted:
                group.offsets.complete_txn(producer_id, is_commit=is_commit)
            if group is None or not group.offsets.has_pending_from(producer_id):
                self._close_group_for_producer(producer_id, group_id)

    def is_group_open_for_producer(self, producer_id: int, group_id: GroupId) -> bool:
        return group_id in self._open_groups_for_producer.get(producer_id, ())

    def _close_group_for_producer(self, producer_id: int, group_id: GroupId) -> None:
        groups = self._open_groups_for_producer.get(producer_id)
        if groups is not None:
            groups.pop(group_id, None)
            if not groups:
                del self._open_groups_for_producer[producer_id]


class _Once:
    """Gives an answer the first time it is called."""

    __slots__ = ("_respond",)

    def __init__(self, respond: Callable[[ErrorCode], None]) -> None:
        self._respond: Callable[[ErrorCode], None] | None = respond

    def __call__(self, error: ErrorCode) -> None:
        respond, self._respond = self._respond, None
        if respond is not None:
            respond(error)
