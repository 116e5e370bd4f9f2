"""Bugs that brokers have had, to be put back: what a simulation does not find, it would not find in earnest either."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest.mock import patch

from kohort.broker.coordinator_logs import CoordinatorLog
from kohort.broker.topics import OFFSETS_TOPIC
from kohort.errors import ErrorCode, KohortError, StorageFailed
from kohort.group.coordinator import GroupCoordinator
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.group.group_offsets import GroupOffsets
from kohort.group.removal import _Removal
from kohort.group.states import GroupState
from kohort.log.compaction import Compaction, OffsetMap
from kohort.log.files import DISK_FULL
from kohort.log.flusher import Flusher
from kohort.log.journal import Journal
from kohort.log.partition import Log
from kohort.log.recorded_files import RecordingFile, RecordingFiles
from kohort.log.recovery import _Opening
from kohort.records.state import State

Bug = Callable[[], AbstractContextManager[Any]]


def _nothing(*_: object, **__: object) -> None:
    """What was to be done is not done."""


def _commits_every_transaction() -> AbstractContextManager[Any]:
    right = GroupMetadataManager.handle_txn_completion

    def wrong(self: GroupMetadataManager, producer_id: int, partitions: Any, *, is_commit: bool) -> None:  # noqa: ARG001
        right(self, producer_id, partitions, is_commit=True)

    return patch.object(GroupMetadataManager, "handle_txn_completion", wrong)


def _takes_old_generations() -> AbstractContextManager[Any]:
    right = GroupCoordinator._refusal

    def wrong(self: GroupCoordinator, group: Any, request: Any) -> ErrorCode:
        error = right(self, group, request)
        return ErrorCode.NONE if error is ErrorCode.ILLEGAL_GENERATION and group is not None else error

    return patch.object(GroupCoordinator, "_refusal", wrong)


def _keeps_generations_to_itself() -> AbstractContextManager[Any]:
    def wrong(_: GroupMetadataManager, group: Any, assignment: Any, respond: Any, settled: Any = None) -> None:  # noqa: ARG001
        respond(ErrorCode.NONE)
        if settled is not None:
            settled(ErrorCode.NONE)

    return patch.object(GroupMetadataManager, "store_group", wrong)


def _loads_what_it_can() -> AbstractContextManager[Any]:
    right = CoordinatorLog.load

    def wrong(self: CoordinatorLog[Any], partition: int, done: Callable[[Any], None]) -> None:
        is_of_groups = self._topic == OFFSETS_TOPIC
        right(
            self, partition, lambda found: done(State() if is_of_groups and isinstance(found, KohortError) else found)
        )

    return patch.object(CoordinatorLog, "load", wrong)


def _applies_ends_first() -> AbstractContextManager[Any]:
    right = CoordinatorLog.append

    def wrong(self: CoordinatorLog[Any], partition: int, records: Any, done: Callable[[ErrorCode, int], None]) -> None:
        if self._topic == OFFSETS_TOPIC:
            right(self, partition, records, done)
        else:
            right(self, partition, records, _nothing)
            done(ErrorCode.NONE, 0)

    return patch.object(CoordinatorLog, "append", wrong)


def _commits_transactions_at_once() -> AbstractContextManager[Any]:
    right = GroupOffsets.on_txn_commit_append

    def wrong(self: GroupOffsets, producer_id: int, offsets: Any, position: int) -> None:
        right(self, producer_id, offsets, position)
        self.complete_txn(producer_id, is_commit=True)

    return patch.object(GroupOffsets, "on_txn_commit_append", wrong)


def _forgets_what_is_pending() -> AbstractContextManager[Any]:
    right = GroupOffsets.initialize

    def wrong(self: GroupOffsets, committed: Any, pending: Any) -> None:  # noqa: ARG001
        right(self, committed, {})

    return patch.object(GroupOffsets, "initialize", wrong)


def _tells_unstable_offsets() -> AbstractContextManager[Any]:
    return patch.object(GroupOffsets, "has_pending_for", lambda *_: False)


def _ends_groups_that_have_offsets() -> AbstractContextManager[Any]:
    def wrong(self: _Removal, batch: Any) -> bool:  # noqa: ARG001
        return self._group.is_(GroupState.EMPTY) and self._group.removed_by is None

    return patch.object(_Removal, "_takes_the_last", wrong)


def _expires_offsets_of_members() -> AbstractContextManager[Any]:
    def wrong(group: Any, now_ms: int, retention_ms: int) -> Callable[[Any], bool]:
        def has_expired(partition: Any) -> bool:
            value = group.offsets.get(partition)
            return value is not None and now_ms - value.commit_timestamp >= retention_ms

        return has_expired

    return patch("kohort.group.expiry.expiry_rule", wrong)


def _hears_in_spite_of(error: ErrorCode) -> AbstractContextManager[Any]:
    right = GroupCoordinator.handle_heartbeat

    def wrong(self: GroupCoordinator, request: Any) -> ErrorCode:
        told = right(self, request)
        return ErrorCode.NONE if told is error else told

    return patch.object(GroupCoordinator, "handle_heartbeat", wrong)


def _goes_on_after_a_failed_sync() -> AbstractContextManager[Any]:
    right = Flusher._fail

    def wrong(self: Flusher, failure: Any, waiting: Any) -> None:
        if self._failure is not None:
            right(self, failure, waiting)
        self.tell([told for _, told in waiting], None)

    return patch.object(Flusher, "_fail", wrong)


def _leaves_short_writes() -> AbstractContextManager[Any]:
    def wrong(self: Log, segment: Any, error: OSError) -> None:
        failure = StorageFailed(f"{segment.path}: {error}")
        if error.errno not in DISK_FULL:
            self._failure = failure
        raise failure from error

    return patch.object(Log, "_cut_back", wrong)


def _drops_tombstones_early() -> AbstractContextManager[Any]:
    right = OffsetMap._put

    def wrong(self: OffsetMap, record: Any) -> bool:
        return record.value is None or right(self, record)

    return _Together(
        patch.object(OffsetMap, "_put", wrong),
        patch.object(Compaction, "_retains", _retains_no_tombstones(Compaction._retains)),
    )


def _retains_no_tombstones(right: Callable[..., bool]) -> Callable[..., bool]:
    return lambda self, header, record: record.value is not None and right(self, header, record)


def _forgets_epochs() -> AbstractContextManager[Any]:
    def wrong(metadata: Any, producer_id: int, producer_epoch: int) -> ErrorCode:  # noqa: ARG001
        return ErrorCode.NONE

    return patch("kohort.transaction.coordinator._stranger", wrong)


def _answers_from_memory() -> AbstractContextManager[Any]:
    return patch.object(GroupMetadataManager, "unload", _nothing)


def _cuts_sound_batches() -> AbstractContextManager[Any]:
    right = _Opening._judge

    def wrong(self: _Opening, segment: Any, successor: Any, damage: Any) -> None:
        if successor is None and not self._clean:
            damage.position = 0
            segment._next_offset = segment.base_offset
        right(self, segment, successor, damage)

    return patch.object(_Opening, "_judge", wrong)


class _Together(ExitStack):
    """Several patches as one."""

    def __init__(self, *patches: AbstractContextManager[Any]) -> None:
        super().__init__()
        self._patches = patches

    def __enter__(self) -> "_Together":
        for one in self._patches:
            self.enter_context(one)
        return self


BUGS: dict[str, Bug] = {
    "acknowledged before it is synced": lambda: patch.object(Flusher, "_must_wait", lambda *_: False),
    "the spare of a journal outlives its broker": lambda: patch.object(Journal, "_remove_spare", _nothing),
    "the journal is not read at the start": lambda: patch.object(Log, "restore", _nothing),
    "an aborted transaction is applied": _commits_every_transaction,
    "commits of old generations are taken": _takes_old_generations,
    "generations are not written down": _keeps_generations_to_itself,
    "files are not synced": lambda: patch.object(RecordingFile, "sync", _nothing),
    "directories are not synced": lambda: patch.object(RecordingFiles, "sync_dir", _nothing),
    "a partition that cannot be read is empty": _loads_what_it_can,
    "the end of a transaction is applied before it is written": _applies_ends_first,
    "a transaction is visible before its end": _commits_transactions_at_once,
    "pending commits are lost by a load": _forgets_what_is_pending,
    "unstable offsets are told as stable": _tells_unstable_offsets,
    "a group ends although it has offsets": _ends_groups_that_have_offsets,
    "offsets of members expire": _expires_offsets_of_members,
    "heartbeats of old generations are heard": lambda: _hears_in_spite_of(ErrorCode.ILLEGAL_GENERATION),
    "a static member is not fenced": lambda: _hears_in_spite_of(ErrorCode.FENCED_INSTANCE_ID),
    "a failed sync is passed over": _goes_on_after_a_failed_sync,
    "what was not synced for certain is not written again": lambda: patch.object(_Opening, "_write_again", _nothing),
    "a short write stays": _leaves_short_writes,
    "a tombstone goes before what it removes": _drops_tombstones_early,
    "epochs of producers are not looked at": _forgets_epochs,
    "answers come from memory after a move": _answers_from_memory,
    "recovery cuts sound batches": _cuts_sound_batches,
}
