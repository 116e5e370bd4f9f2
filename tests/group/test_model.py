"""The coordinator against the model, in random lives; and the model against coordinators that are broken on purpose.

`make model` lives other lives than usual for ten minutes.
"""

import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from kohort.config import GroupConfig
from kohort.errors import ErrorCode
from kohort.group import group_metadata_manager, loading
from kohort.group.coordinator import GroupCoordinator
from kohort.group.group_metadata import GroupMetadata
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.group.group_offsets import GroupOffsets
from kohort.group.rebalance import Rebalances
from kohort.group.removal import Removals
from kohort.group.requests import MemberId
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.state import Committed
from tests.group import model_world
from tests.group.machine import CoordinatorMachine
from tests.slow import slow

MODEL_SECONDS = float(os.environ.get("KOHORT_MODEL_SECONDS", "0"))

LIVES = settings(
    max_examples=10,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
"""Ten at a time, for after these Hypothesis mostly repeats lives with a small change."""


def live(number: int, lives: settings = LIVES) -> None:
    """Some lives; the number decides which."""
    run_state_machine_as_test(seed(number)(type("Machine", (CoordinatorMachine,), {})), settings=lives)


@pytest.mark.parametrize("ten", [*range(8), *(pytest.param(number, marks=slow) for number in range(8, 24))])
def test_whatever_happens_the_rules_of_the_model_hold(ten: int) -> None:
    live(ten)


@pytest.mark.skipif(not MODEL_SECONDS, reason="KOHORT_MODEL_SECONDS is not set")
def test_the_rules_hold_in_many_lives(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    deadline, lives = time.monotonic() + MODEL_SECONDS, 0
    while time.monotonic() < deadline:
        live(random.getrandbits(64))
        lives += LIVES.max_examples
    with capsys.disabled():
        request.config.pluginmanager.getplugin("terminalreporter").write_line(f" {lives} lives")


# Broken coordinators

Break = Callable[[pytest.MonkeyPatch], None]


def an_aborted_transaction_counts(patch: pytest.MonkeyPatch) -> None:
    complete = GroupOffsets.complete_txn

    def complete_txn(self: GroupOffsets, producer_id: int, *, is_commit: bool) -> None:  # noqa: ARG001
        complete(self, producer_id, is_commit=True)

    patch.setattr(GroupOffsets, "complete_txn", complete_txn)


def a_transaction_that_ends_later_wins(patch: pytest.MonkeyPatch) -> None:
    complete = GroupOffsets.complete_txn

    def complete_txn(self: GroupOffsets, producer_id: int, *, is_commit: bool) -> None:
        for partition in self.pending(producer_id) if is_commit else ():
            self._committed.pop(partition, None)
        complete(self, producer_id, is_commit=is_commit)

    patch.setattr(GroupOffsets, "complete_txn", complete_txn)


def an_open_transaction_is_forgotten_by_a_load(patch: pytest.MonkeyPatch) -> None:
    initialize = GroupOffsets.initialize
    patch.setattr(GroupOffsets, "initialize", lambda self, committed, _: initialize(self, committed, {}))


def a_commit_is_read_before_it_is_safe(patch: pytest.MonkeyPatch) -> None:
    prepare = GroupOffsets.prepare_commit

    def prepare_commit(self: GroupOffsets, offsets: Mapping[TopicPartition, Any]) -> None:
        prepare(self, offsets)
        self._committed.update({partition: Committed(0, value) for partition, value in offsets.items()})

    patch.setattr(GroupOffsets, "prepare_commit", prepare_commit)


def a_commit_that_failed_is_confirmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_metadata_manager, "commit_error", lambda _: ErrorCode.NONE)


def an_assignment_that_failed_is_given_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_metadata_manager, "group_error", lambda _: ErrorCode.NONE)


def stable_offsets_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupOffsets, "has_pending_for", lambda *_: False)


def any_generation_may_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupCoordinator, "_refusal", lambda *_: ErrorCode.NONE)


def offsets_are_deleted_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    def delete_offsets(_: Removals, group: GroupMetadata, partitions: Iterable[Any], done: Any) -> None:
        group.offsets.remove(partitions, 1 << 60)
        done(ErrorCode.NONE)

    patch.setattr(Removals, "delete_offsets", delete_offsets)


def offsets_expire_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupConfig, "offsets_retention_ms", property(lambda _: 0))


def a_static_member_that_left_stays_in_the_index(patch: pytest.MonkeyPatch) -> None:
    remove = GroupMetadata.remove

    def forgetful(self: GroupMetadata, member_id: MemberId) -> None:
        before = dict(self.static_members)
        remove(self, member_id)
        self.static_members.update(before)

    patch.setattr(GroupMetadata, "remove", forgetful)


def a_leader_that_left_stays_leader(patch: pytest.MonkeyPatch) -> None:
    remove = GroupMetadata.remove

    def loyal(self: GroupMetadata, member_id: MemberId) -> None:
        before = self.leader_id
        remove(self, member_id)
        self.leader_id = before

    patch.setattr(GroupMetadata, "remove", loyal)


def a_rebalance_does_not_begin_a_generation(patch: pytest.MonkeyPatch) -> None:
    init = GroupMetadata.init_next_generation

    def init_next_generation(self: GroupMetadata) -> None:
        before = self.generation_id
        init(self)
        self.generation_id = max(before, 1)

    patch.setattr(GroupMetadata, "init_next_generation", init_next_generation)


def everybody_gets_the_assignment_of_the_first(patch: pytest.MonkeyPatch) -> None:
    invoke = GroupMetadata.invoke_sync_callback

    def invoke_sync_callback(self: GroupMetadata, member: Any, result: Any) -> bool:
        return invoke(self, member, result._replace(assignment=next(iter(self.members.values())).assignment))

    patch.setattr(GroupMetadata, "invoke_sync_callback", invoke_sync_callback)


def a_second_assignment_of_a_generation_is_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupMetadata, "is_storing_assignment", property(lambda _: False, lambda *_: None))


def an_outdated_join_is_never_answered(patch: pytest.MonkeyPatch) -> None:
    update = GroupMetadata.update_member

    def update_member(self: GroupMetadata, member: Any, *changed: Any) -> None:
        self.release_join_callback(member)
        update(self, member, *changed)

    patch.setattr(GroupMetadata, "update_member", update_member)


def silent_members_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rebalances, "schedule_next_heartbeat", lambda *_: None)


def whoever_waits_is_not_told_when_the_partition_moves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rebalances, "on_group_unloaded", lambda _, group, __: group.transition_to(GroupState.DEAD))


def resignations_of_the_past_count(patch: pytest.MonkeyPatch) -> None:
    unload = GroupMetadataManager.unload
    patch.setattr(GroupMetadataManager, "unload", lambda self, partition, _, told: unload(self, partition, None, told))


def an_append_that_hangs_is_waited_for_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model_world, "CONFIG", replace(model_world.CONFIG, offsets_commit_timeout_ms=1 << 60))


def an_empty_generation_is_not_written(patch: pytest.MonkeyPatch) -> None:
    _not_written_if(patch, lambda group: not group.members)


def the_new_id_of_a_static_member_is_not_written(patch: pytest.MonkeyPatch) -> None:
    _not_written_if(patch, lambda group: group.is_(GroupState.STABLE))


def _not_written_if(patch: pytest.MonkeyPatch, is_careless: Callable[[GroupMetadata], bool]) -> None:
    store = GroupMetadataManager.store_group

    def store_group(
        self: GroupMetadataManager, group: GroupMetadata, assignment: Any, respond: Any, *more: Any
    ) -> None:
        if is_careless(group):
            respond(ErrorCode.NONE)
        else:
            store(self, group, assignment, respond, *more)

    patch.setattr(GroupMetadataManager, "store_group", store_group)


def a_load_forgets_assignments(patch: pytest.MonkeyPatch) -> None:
    member = loading._member
    patch.setattr(loading, "_member", lambda group, loaded: member(group, replace(loaded, assignment=b"")))


@pytest.mark.parametrize(
    "break_it",
    [
        an_aborted_transaction_counts,
        a_transaction_that_ends_later_wins,
        an_open_transaction_is_forgotten_by_a_load,
        a_commit_is_read_before_it_is_safe,
        a_commit_that_failed_is_confirmed,
        an_assignment_that_failed_is_given_out,
        stable_offsets_do_not_wait,
        any_generation_may_commit,
        offsets_are_deleted_in_memory_only,
        offsets_expire_at_once,
        a_static_member_that_left_stays_in_the_index,
        a_leader_that_left_stays_leader,
        a_rebalance_does_not_begin_a_generation,
        everybody_gets_the_assignment_of_the_first,
        a_second_assignment_of_a_generation_is_written,
        an_outdated_join_is_never_answered,
        silent_members_stay,
        whoever_waits_is_not_told_when_the_partition_moves,
        resignations_of_the_past_count,
        an_append_that_hangs_is_waited_for_for_ever,
        an_empty_generation_is_not_written,
        the_new_id_of_a_static_member_is_not_written,
        a_load_forgets_assignments,
    ],
)
def test_a_broken_coordinator_is_found(break_it: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    until_found = settings(LIVES, phases=[Phase.generate], report_multiple_bugs=False, print_blob=False)
    with pytest.raises(AssertionError):
        many_lives(until_found)


def many_lives(lives: settings) -> None:
    for number in range(60):
        live(number, lives)
