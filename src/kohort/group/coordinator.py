"""The group coordinator: every request about groups and their offsets comes through here.

It checks whether the request may be answered at all (is the coordinator running, does it own the group, has it loaded
it), finds the group and leaves the rest to those who know: `rebalance.py` for membership, `group_metadata_manager.py`
for what is written and read, `removal.py` for what goes.

One task calls it, with one request at a time. An answer is given when all that belongs to it is done, so whoever gets
it may ask again at once.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from kohort.clock import Clock
from kohort.config import GroupConfig
from kohort.errors import ErrorCode, IllegalState
from kohort.group.answers import Answers
from kohort.group.delayed import Timers, Turns
from kohort.group.expiry import Expiry
from kohort.group.group_metadata import GroupMetadata
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.group.metrics import GroupMetrics
from kohort.group.offsets_log import OffsetsLog
from kohort.group.rebalance import Rebalances
from kohort.group.records import is_writable
from kohort.group.removal import LOOKS_FOR_A_TOMBSTONE, TOMBSTONES_A_BATCH, Removals
from kohort.group.requests import (
    UNKNOWN_MEMBER_ID,
    CommitCallback,
    Committer,
    GroupId,
    GroupOverview,
    GroupSummary,
    HeartbeatRequest,
    JoinCallback,
    JoinGroupRequest,
    JoinGroupResult,
    LeaveGroupRequest,
    LeaveGroupResult,
    LeaveMemberResult,
    OffsetCommitRequest,
    PartitionData,
    SameForAll,
    SyncCallback,
    SyncGroupRequest,
    SyncGroupResult,
    TxnOffsetCommitRequest,
)
from kohort.group.states import GroupState
from kohort.group.written_commits import WrittenCommits
from kohort.log.names import TopicPartition

logger = logging.getLogger(__name__)

DeleteGroupsCallback = Callable[[Mapping[GroupId | None, ErrorCode]], None]
DeleteOffsetsCallback = Callable[[ErrorCode, Mapping[TopicPartition, ErrorCode]], None]


class GroupCoordinator:
    """Kafka 2.6's GroupCoordinator."""

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        log: OffsetsLog,
        *,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._config = config
        self._answers = Answers()
        self.timers = Timers(clock, self._answers)
        self.metrics = GroupMetrics(clock)
        self.manager = GroupMetadataManager(config, clock, self.timers, self._answers, log, self.metrics)
        self._rebalances = Rebalances(config, self.timers, self.manager, self.metrics, new_uuid)
        self._turns = Turns(clock, self.timers, work_a_turn=TOMBSTONES_A_BATCH * LOOKS_FOR_A_TOMBSTONE)
        self._removals = Removals(self.manager, clock, self._turns, self.metrics)
        self._expiry = Expiry(config, clock, self.timers, self._turns, self.manager, self._removals)
        self._is_active = False

    # Life

    def startup(self, *, enable_metadata_expiration: bool = True) -> None:
        if enable_metadata_expiration:
            self._expiry.start()
        self._is_active = True

    def shutdown(self) -> None:
        """Whoever is parked gets an answer now, all who come later are turned away; what is being written is answered
        by the log."""
        self._is_active = False
        self._expiry.stop()
        with self._answers:
            for partition in self.manager.partitions:
                self.manager.unload(partition, None, self._unloaded_with(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            self._turns.finish()

    def on_election(self, partition: int, epoch: int) -> None:
        """This broker leads a partition of the offsets topic now: load it, and serve its groups then."""
        on_unloaded = self._unloaded_with(ErrorCode.NOT_COORDINATOR)
        with self._answers:
            self.manager.load(partition, epoch, self._rebalances.on_group_loaded, on_unloaded)

    def on_resignation(self, partition: int, epoch: int | None) -> None:
        """This broker does not lead it any more: let go of its groups."""
        with self._answers:
            self.manager.unload(partition, epoch, self._unloaded_with(ErrorCode.NOT_COORDINATOR))

    def _unloaded_with(self, error: ErrorCode) -> Callable[[GroupMetadata], None]:
        return lambda group: self._rebalances.on_group_unloaded(group, error)

    def partition_for(self, group_id: GroupId) -> int:
        return self.manager.partition_for(group_id)

    def cleanup_group_metadata(self) -> None:
        """Remove what has expired; otherwise done every `offsets.retention.check.interval.ms`."""
        with self._answers:
            self._expiry.cleanup_group_metadata()

    def snapshot(self) -> dict[str, float]:
        """Every metric, by its Kafka name."""
        return self.metrics.snapshot(self.manager.current_groups)

    # Membership

    def handle_join_group(self, request: JoinGroupRequest, respond: JoinCallback) -> None:
        error = self._status(request.group_id, may_be_empty=False)
        if error is not ErrorCode.NONE:
            respond(JoinGroupResult(error, request.member_id))
            return
        config = self._config
        if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
            respond(JoinGroupResult(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
            return
        if request.member_id == UNKNOWN_MEMBER_ID:
            if self.manager.get_group(request.group_id) is None and not self._has_room_for_new_group():
                respond(JoinGroupResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
                return
            group: GroupMetadata | None = self.manager.get_or_create_group(request.group_id)
        else:
            group = self.manager.get_group(request.group_id)
        if group is None:
            respond(JoinGroupResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        elif group.is_being_removed:
            respond(JoinGroupResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
        else:
            respond = self._answers.when_done(respond)
            with self._answers:
                try:
                    self._rebalances.join(group, request, respond)
                except IllegalState as wrong:
                    logger.error("a join of group %r that cannot be: %s", group.group_id, wrong)
                    respond(JoinGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR, request.member_id))

    def _has_room_for_new_group(self) -> bool:
        return self.manager.memory.held < self._config.group_coordinator_max_bytes

    def handle_sync_group(self, request: SyncGroupRequest, respond: SyncCallback) -> None:
        error = self._status(request.group_id, may_be_empty=False)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance that this belongs to is lost; older clients do not expect to hear of loading here.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not ErrorCode.NONE:
            respond(SyncGroupResult(error))
            return
        group = self.manager.get_group(request.group_id)
        if group is None:
            respond(SyncGroupResult(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            with self._answers:
                self._rebalances.sync(group, request, self._answers.when_done(respond))

    def handle_heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        error = self._status(request.group_id, may_be_empty=False)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE  # nobody knows yet; the member is given the benefit of the doubt
        if error is not ErrorCode.NONE:
            return error
        group = self.manager.get_group(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.is_(GroupState.DEAD):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.is_static_member_fenced(request.member_id, request.group_instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        member = group.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if group.is_(GroupState.EMPTY):
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._rebalances.schedule_next_heartbeat(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.is_(GroupState.PREPARING_REBALANCE) else ErrorCode.NONE

    def handle_leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResult:
        error = self._status(request.group_id, may_be_empty=False)
        if error is not ErrorCode.NONE:
            return LeaveGroupResult(error)
        group = self.manager.get_group(request.group_id)
        if group is not None and group.is_(GroupState.DEAD):
            return LeaveGroupResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        results = []
        with self._answers:
            try:
                for leaving in request.members:
                    error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else self._rebalances.leave(group, leaving)
                    results.append(LeaveMemberResult(leaving.member_id, leaving.group_instance_id, error))
            except IllegalState as wrong:
                logger.error("a leave from group %r that cannot be: %s", request.group_id, wrong)
                return LeaveGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR)
        return LeaveGroupResult(ErrorCode.NONE, tuple(results))

    # Offsets

    def handle_commit_offsets(self, request: OffsetCommitRequest, respond: CommitCallback) -> None:
        offsets = request.offsets
        error = self._status(request.group_id, may_be_empty=True)
        group = self.manager.get_group(request.group_id)
        if error is ErrorCode.NONE:
            error = self._refusal(group, request)
        if error is not ErrorCode.NONE:
            respond(SameForAll(offsets, error))
            return
        if group is None:
            group = self.manager.get_or_create_group(request.group_id)
        member = group.members.get(request.member_id)
        if member is not None:
            self._rebalances.schedule_next_heartbeat(group, member)
        with self._answers:
            self.manager.store_offsets(group, offsets, self._answers.when_done(respond))

    def commit_at_once(self, who: Committer, commits: WrittenCommits) -> bool:
        """The same where a known group commits, nothing is wrong and nobody has to wait for the disk; otherwise nothing
        has happened."""
        group = self._committing_group(who)
        return group is not None and self.manager.store_at_once(group, commits)

    def commit_soon(self, who: Committer, commits: WrittenCommits, respond: Callable[[ErrorCode], None]) -> bool:
        """The same where it may be that somebody has to wait; `respond` hears of it unless nothing has happened."""
        group = self._committing_group(who)
        return group is not None and self.manager.store_soon(group, commits, respond)

    def _committing_group(self, who: Committer) -> GroupMetadata | None:
        """The group, if there is one and it may commit now, which is a sign of life of who does it."""
        group = self.manager.get_group(who.group_id)
        if group is None or not self._is_active or self._answers.are_kept:
            return None
        if self._refusal(group, who) is not ErrorCode.NONE:
            return None
        member = group.members.get(who.member_id)
        if member is not None:
            self._rebalances.schedule_next_heartbeat(group, member)
        return group

    def _refusal(self, group: GroupMetadata | None, request: OffsetCommitRequest | Committer) -> ErrorCode:
        """Why a commit is not taken. A group that only keeps its offsets here has no members and no generation."""
        if group is None:
            return ErrorCode.ILLEGAL_GENERATION if request.generation_id >= 0 else ErrorCode.NONE
        state, member_id = group.state, request.member_id
        if state is GroupState.DEAD or group.removed_by is not None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.is_static_member_fenced(member_id, request.group_instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        if request.generation_id < 0 and state is GroupState.EMPTY:
            return ErrorCode.NONE
        if member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def handle_txn_commit_offsets(self, request: TxnOffsetCommitRequest, respond: CommitCallback) -> None:
        error = self._status(request.group_id, may_be_empty=False)
        if error is ErrorCode.NONE:
            error = self._txn_refusal(self.manager.get_or_create_group(request.group_id), request)
        if error is not ErrorCode.NONE:
            respond(SameForAll(request.offsets, error))
            return
        with self._answers:
            self.manager.store_offsets(
                self.manager.get_or_create_group(request.group_id),
                request.offsets,
                self._answers.when_done(respond),
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
            )

    def _txn_refusal(self, group: GroupMetadata, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Member and generation are checked only if they are given (KIP-447)."""
        if group.is_(GroupState.DEAD) or group.is_being_removed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.is_static_member_fenced(request.member_id, request.group_instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        if request.member_id != UNKNOWN_MEMBER_ID and request.member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation_id >= 0 and request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    def handle_txn_completion(self, producer_id: int, partitions: Iterable[int], *, is_commit: bool) -> None:
        """A transaction's marker was written to these partitions of the offsets topic."""
        self.manager.handle_txn_completion(producer_id, partitions, is_commit=is_commit)

    def handle_fetch_offsets(
        self, group_id: GroupId, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> tuple[ErrorCode, Mapping[TopicPartition, PartitionData]]:
        """Of some partitions, or of all that have an offset, whatever state the group is in."""
        error = self._status(group_id, may_be_empty=True)
        if error is not ErrorCode.NONE:
            return error, {}
        return ErrorCode.NONE, self.manager.get_offsets(group_id, partitions, require_stable=require_stable)

    # Administration

    def handle_list_groups(self, states: Collection[str] = ()) -> tuple[ErrorCode, Sequence[GroupOverview]]:
        """All groups, or those in one of these states (KIP-518); incomplete while something is loading."""
        if not self._is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, ()
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.manager.is_loading else ErrorCode.NONE
        groups = [group for group in self.manager.current_groups if not states or group.state.value in states]
        return error, [group.overview() for group in groups]

    def handle_describe_group(self, group_id: GroupId) -> tuple[ErrorCode, GroupSummary]:
        error = self._status(group_id, may_be_empty=True)
        if error is not ErrorCode.NONE:
            return error, GroupSummary("")
        group = self.manager.get_group(group_id)
        return ErrorCode.NONE, GroupSummary(GroupState.DEAD.value) if group is None else group.summary()

    def handle_delete_groups(self, group_ids: Iterable[GroupId | None], respond: DeleteGroupsCallback) -> None:
        """Groups without members go, with all their offsets."""
        errors: dict[GroupId | None, ErrorCode] = {}
        going: list[GroupMetadata] = []
        for group_id in dict.fromkeys(group_ids):
            errors[group_id], group = self._deletable(group_id)
            if group is not None:
                going.append(group)
        waiting = len(going)

        def deleted(group: GroupMetadata, error: ErrorCode) -> None:
            nonlocal waiting
            errors[group.group_id] = error
            waiting -= 1
            if not waiting:
                respond(errors)

        if not going:
            respond(errors)
            return
        respond = self._answers.when_done(respond)
        with self._answers:
            for group in going:
                self._removals.delete_group(group, partial(deleted, group))

    def _deletable(self, group_id: GroupId | None) -> tuple[ErrorCode, GroupMetadata | None]:
        error = self._status(group_id, may_be_empty=True)
        if error is not ErrorCode.NONE or group_id is None:
            return error, None
        group = self.manager.get_group(group_id)
        if group is None or group.is_(GroupState.DEAD):
            return ErrorCode.GROUP_ID_NOT_FOUND, None
        if group.is_being_removed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
        if not group.is_(GroupState.EMPTY):
            return ErrorCode.NON_EMPTY_GROUP, None
        return ErrorCode.NONE, group

    def handle_delete_offsets(
        self, group_id: GroupId, partitions: Sequence[TopicPartition], respond: DeleteOffsetsCallback
    ) -> None:
        """Offsets go, unless a member subscribes to their topic (KIP-496)."""
        error = self._status(group_id, may_be_empty=False)
        group = None
        if error is ErrorCode.NONE:
            group = self.manager.get_group(group_id)
            if group is None or group.is_(GroupState.DEAD):
                error = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.is_being_removed:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            elif not group.is_(GroupState.EMPTY) and not group.is_consumer_group:
                error = ErrorCode.NON_EMPTY_GROUP
        if group is None or error is not ErrorCode.NONE:
            respond(error, {})
            return
        in_use: set[TopicPartition] = set()
        if not group.is_(GroupState.EMPTY):
            in_use = {partition for partition in partitions if group.is_subscribed_to_topic(partition.topic)}

        give = self._answers.when_done(partial(respond, ErrorCode.NONE))

        def deleted(error: ErrorCode) -> None:
            refused = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            give({partition: refused if partition in in_use else error for partition in partitions})

        with self._answers:
            if going := [partition for partition in partitions if partition not in in_use]:
                self._removals.delete_offsets(group, going, deleted)
            else:
                deleted(ErrorCode.NONE)

    def handle_deleted_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Their topic was deleted: so are the offsets of all groups for them."""
        with self._answers:
            self._removals.delete_partitions(partitions)

    def _status(self, group_id: GroupId | None, *, may_be_empty: bool) -> ErrorCode:
        """Whether the group may be asked for here and now. Only what stores offsets or looks at them takes "" as id."""
        if group_id is None or (not group_id and not may_be_empty) or not is_writable(group_id):
            return ErrorCode.INVALID_GROUP_ID
        if not self._is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if self.manager.get_group(group_id) is not None:
            return ErrorCode.NONE  # whoever has a group in memory owns and has loaded it
        if self.manager.is_group_loading(group_id):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if not self.manager.is_group_local(group_id):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE
