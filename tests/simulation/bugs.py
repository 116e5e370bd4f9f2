"""Bugs that brokers have had, to be put back: what a simulation does not find, it would not find in earnest either."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from kohort.broker.coordinator_logs import CoordinatorLog
from kohort.broker.topics import OFFSETS_TOPIC
from kohort.errors import ErrorCode, KohortError
from kohort.group.coordinator import GroupCoordinator
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.log.flusher import Flusher
from kohort.log.journal import Journal
from kohort.log.partition import Log
from kohort.log.recorded_files import RecordingFile, RecordingFiles
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
    def wrong(_: GroupMetadataManager, group: Any, assignment: Any, respond: Callable[[ErrorCode], None]) -> None:  # noqa: ARG001
        respond(ErrorCode.NONE)

    return patch.object(GroupMetadataManager, "store_group", wrong)


def _loads_what_it_can() -> AbstractContextManager[Any]:
    right = CoordinatorLog.load

    def wrong(self: CoordinatorLog[Any], partition: int, done: Callable[[Any], None]) -> None:
        is_of_groups = self._topic == OFFSETS_TOPIC
        right(
            self, partition, lambda found: done(State() if is_of_groups and isinstance(found, KohortError) else found)
        )

    return patch.object(CoordinatorLog, "load", wrong)


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
}
