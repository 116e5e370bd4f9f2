"""A partition is given up: its groups are let go of, whoever waits is told, and elections are kept in order."""

from collections.abc import Callable, Mapping
from functools import partial

from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.group.offsets_log import LoadCallback
from kohort.group.requests import GroupId, JoinGroupRequest, JoinGroupResult, MemberId, SyncGroupResult
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import OffsetKey
from tests.group.context import GROUP, OTHER_GROUP, PROTOCOLS, Answer, Context, only
from tests.group.log_builder import OFFSETS, batch, commits, group_record, loaded, offsets_of, written
from tests.group.offsets_topic import OffsetsTopic

MEMBER = "98098230493"
NOT_OURS, NOT_AVAILABLE = ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE
A_DAY = 86_400_000
FELLOW = "foo"
"""A group of the same partition."""


def loaded_at_epoch_2() -> Context:
    c = loaded(batch(*commits(OFFSETS), group_record(935, MEMBER)), epoch=2)
    assert c.manager.epoch_of(c.partition()) == 2
    return c


def what_is_told(c: Context) -> tuple[object, ...]:
    group = c.group()
    members = tuple(group.members)
    return (group.state, group.leader_id, group.generation_id, group.protocol_type, group.protocol_name, members)


STABLE = (GroupState.STABLE, MEMBER, 935, "consumer", "range", (MEMBER,))


def test_an_unloaded_partition_has_no_groups() -> None:
    """GMM testUnloadOffsetsAndGroup"""
    c = loaded_at_epoch_2()
    c.resign(c.partition(), 2)
    assert c.manager.epoch_of(c.partition()) == 2
    assert c.find() is None
    assert c.describe()[0] is NOT_OURS


def test_an_outdated_resignation_is_passed_over() -> None:
    """GMM testUnloadOffsetsAndGroupIgnored

    Repaired: elections and resignations have leader epochs, as from 3.0 on, and outdated ones are passed over
    """
    c = loaded_at_epoch_2()
    before = c.group()
    c.resign(c.partition(), 1)
    assert c.manager.epoch_of(c.partition()) == 2
    assert c.group() is before
    assert what_is_told(c) == STABLE
    assert offsets_of(c) == OFFSETS
    assert [at.value.expire_timestamp for _, at in c.group().offsets.items()] == [-1] * 3


def test_a_partition_given_up_without_an_epoch_can_be_loaded_at_the_next() -> None:
    """GMM testUnloadOffsetsAndGroupIgnoredAfterStopReplica"""
    c = loaded_at_epoch_2()
    c.resign(c.partition(), None)
    assert c.find() is None
    assert c.manager.epoch_of(c.partition()) == 2
    c.elect(c.partition(), 3)
    assert c.manager.epoch_of(c.partition()) == 3
    assert what_is_told(c) == STABLE
    assert offsets_of(c) == OFFSETS
    assert [at.value.expire_timestamp for _, at in c.group().offsets.items()] == [-1] * 3


def test_an_outdated_election_is_passed_over() -> None:
    """GMM testLoadOffsetsAndGroupIgnored"""
    c = loaded_at_epoch_2()
    c.resign(c.partition(), 2)
    assert c.find() is None
    assert c.manager.epoch_of(c.partition()) == 2
    c.elect(c.partition(), 1)
    assert c.find() is None
    assert not c.manager.is_loading
    assert c.manager.epoch_of(c.partition()) == 2
    assert c.describe()[0] is NOT_OURS


def test_a_resignation_at_a_newer_epoch_outdates_the_elections_before_it() -> None:
    c = loaded_at_epoch_2()
    c.resign(c.partition(), 5)
    c.elect(c.partition(), 4)
    assert c.describe()[0] is NOT_OURS
    c.elect(c.partition(), 6)
    assert what_is_told(c) == STABLE


# Elections


def test_an_election_that_was_heard_already_disturbs_nobody() -> None:
    c = loaded_at_epoch_2()
    parked = c.join(protocols=(("range", b""),))
    c.elect(c.partition(), 2)
    assert not parked.is_done
    assert c.state() == "PreparingRebalance"


def test_an_election_at_a_newer_epoch_loads_the_partition_again() -> None:
    c = loaded_at_epoch_2()
    before, parked = c.group(), c.join(protocols=(("range", b""),))
    c.elect(c.partition(), 3)
    assert parked.result.error is NOT_OURS
    assert before.state is GroupState.DEAD
    assert c.group() is not before
    assert what_is_told(c) == STABLE


def test_whoever_resigns_during_a_load_does_not_own_the_partition_after_it() -> None:
    c = written(batch(*commits(OFFSETS)))
    c.topic.hold_loads()
    c.elect(c.partition(), 1)
    assert c.describe()[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    c.resign(c.partition(), 1)
    assert c.describe()[0] is NOT_OURS
    c.topic.finish_loads()
    assert c.describe()[0] is NOT_OURS
    assert not c.manager.current_groups


class PatientTopic(OffsetsTopic):
    """Reads a partition when it is told to."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.loads: list[Callable[[], None]] = []

    def load(self, partition: int, done: LoadCallback) -> None:
        self.loads.append(partial(super().load, partition, done))


def test_whoever_is_elected_again_during_a_load_believes_the_second_load_only() -> None:
    clock = VirtualClock()
    topic = PatientTopic(clock)
    c = Context(topic=topic, clock=clock, own=False)
    topic.write(c.partition(), batch(*commits(OFFSETS)))
    c.elect(c.partition(), 1)
    c.resign(c.partition(), 1)
    c.elect(c.partition(), 3)
    first, second = topic.loads
    first()
    assert c.describe()[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    topic.write(c.partition(), batch(*commits({("foo", 0): 24})))
    second()
    assert offsets_of(c) == OFFSETS | {("foo", 0): 24}
    group = c.group()
    first()
    assert c.group() is group


# Whoever waits


def parked_requests(c: Context) -> tuple[list[Answer[JoinGroupResult]], Answer[SyncGroupResult]]:
    """Joins parked in a first rebalance and in a later one, and a sync that waits for its leader."""
    joins = [c.join(FELLOW, client_id=f"new-{n}") for n in range(2)]
    leader, follower = c.join(client_id="leader"), c.join(client_id="follower")
    c.sleep(51)
    c.sleep(51)
    generation = follower.result.generation_id
    sync = c.sync(GROUP, generation, follower.result.member_id)
    assert leader.result.leader_id != follower.result.member_id
    for answer in joins:
        joined = answer.result
        c.sync(FELLOW, joined.generation_id, joined.member_id, {joined.member_id: b""})
    again = [c.join(FELLOW, joins[0].result.member_id), c.join(FELLOW, client_id="another")]
    assert not any(answer.is_done for answer in (*again, sync))
    return again, sync


def test_everybody_who_waits_is_told_to_look_elsewhere() -> None:
    c = Context()
    joins, sync = parked_requests(c)
    groups = [c.group(), c.group(FELLOW)]
    c.resign(c.partition(), 0)
    for answer in joins:
        assert answer.result.error is NOT_OURS
        assert (answer.result.generation_id, answer.result.members, answer.result.protocol_type) == (-1, (), None)
        assert answer.result.member_id
    assert sync.result == SyncGroupResult(NOT_OURS)
    assert [group.state for group in groups] == [GroupState.DEAD, GroupState.DEAD]


def test_nothing_happens_to_a_group_that_was_let_go_of() -> None:
    c = Context()
    parked_requests(c)
    c.join(require_known_id=True)
    c.resign(c.partition(), 0)
    end = c.end_offset()
    c.sleep(A_DAY)
    c.settle(A_DAY)
    assert c.end_offset() == end
    assert not c.manager.current_groups


def join_and_then(c: Context, group: str, then: Callable[[JoinGroupResult], None]) -> None:
    request = JoinGroupRequest(GroupId(group), MemberId(""), None, "client", "host", 500, 500, "consumer", PROTOCOLS)
    c.coordinator.handle_join_group(request, then)


def test_whoever_asks_again_at_once_is_turned_away() -> None:
    c = Context()
    again: list[Answer[JoinGroupResult]] = []
    join_and_then(c, GROUP, lambda _: again.append(c.join()))
    c.resign(c.partition(), 0)
    assert [answer.result.error for answer in again] == [NOT_OURS]
    assert not c.manager.current_groups


def test_whoever_is_told_cannot_use_another_group_of_the_same_partition() -> None:
    c = Context()
    answers: list[Answer[Mapping[TopicPartition, ErrorCode]]] = []
    join_and_then(c, GROUP, lambda _: answers.append(c.commit({("foo", 0): 2}, FELLOW)))
    c.commit({("foo", 0): 1}, FELLOW)
    end = c.end_offset()
    c.resign(c.partition(), 0)
    assert [only(answer.result) for answer in answers] == [NOT_OURS]
    assert c.end_offset() == end


def test_resigning_from_one_partition_leaves_the_groups_of_another_alone() -> None:
    c = Context()
    c.elect(c.partition(OTHER_GROUP))
    c.commit({("foo", 0): 1}, OTHER_GROUP)
    parked = c.join(OTHER_GROUP)
    c.resign(c.partition(), 0)
    assert c.offset("foo", 0, OTHER_GROUP) == 1
    c.sleep(51)
    assert parked.result.error is ErrorCode.NONE


# What is on its way to the log


def test_a_commit_on_its_way_is_answered_and_found_by_the_next_load() -> None:
    c = Context()
    c.topic.hold()
    commit, txn = c.commit({("foo", 0): 1}), c.txn_commit(1000, {("foo", 1): 2})
    c.resign(c.partition(), 0)
    assert not commit.is_done
    c.elect(c.partition(), 1)
    assert c.offset("foo", 0) == 1
    c.topic.release()
    assert only(commit.result) is only(txn.result) is ErrorCode.NONE
    assert offsets_of(c) == {("foo", 0): 1}
    assert c.group().offsets.has_pending_from(1000)
    c.end_txn(1000, c.partition(), is_commit=True)
    assert offsets_of(c) == {("foo", 0): 1, ("foo", 1): 2}


def test_a_commit_that_never_reached_the_log_is_answered_too() -> None:
    c = Context()
    c.commit({("foo", 0): 1})
    c.topic.hold()
    commit, txn = c.commit({("foo", 0): 2}), c.txn_commit(1000, {("foo", 1): 2})
    c.resign(c.partition(), 0)
    c.topic.fail_held(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert only(commit.result) is only(txn.result) is NOT_OURS
    c.elect(c.partition(), 1)
    assert offsets_of(c) == {("foo", 0): 1}
    assert not c.group().offsets.producers


def test_an_assignment_on_its_way_changes_nothing_in_the_group_that_is_loaded_then() -> None:
    c = Context()
    joined = c.dynamic_join()
    c.topic.hold()
    sync = c.sync(GROUP, 1, joined.member_id, {joined.member_id: b"all"})
    c.resign(c.partition(), 0)
    assert sync.result.error is NOT_OURS
    c.elect(c.partition(), 1)
    end = c.end_offset()
    c.topic.release()
    assert c.state() == "Stable"
    assert c.group().members[joined.member_id].assignment == b"all"
    assert c.end_offset() == end


def test_a_deletion_on_its_way_is_answered_and_the_next_load_decides() -> None:
    c = Context()
    c.commit({("foo", 0): 1})
    c.commit({("foo", 0): 1}, FELLOW)
    c.topic.hold()
    deleted = c.delete(GROUP)
    c.resign(c.partition(), 0)
    c.elect(c.partition(), 1)
    c.topic.release()
    assert deleted.result == {GROUP: NOT_OURS}
    assert c.find() is None
    assert c.offset("foo", 0, FELLOW) == 1


def test_a_removal_of_many_offsets_ends_when_the_partition_is_let_go_of() -> None:
    """What is loaded then is another group, and nobody asked to remove anything of it."""
    c = Context()
    for first in range(0, 5_000, 500):
        c.commit({("foo", n): 1 for n in range(first, first + 500)})
    deleted = c.delete(GROUP)
    assert not deleted.is_done
    c.resign(c.partition(), 0)
    c.elect(c.partition(), 1)
    c.commit({("foo", 4_999): 2})
    c.settle()
    assert deleted.result == {GROUP: NOT_OURS}
    assert c.offset("foo", 4_999) == 2
    assert offsets_of(c) == offsets_of(c.restarted())
    kept = {("foo", n) for n in range(5_000)} - {
        (key.topic, key.partition) for key, told in c.records() if told is None and isinstance(key, OffsetKey)
    }
    assert offsets_of(c).keys() == kept
    assert len(kept) >= 4_000


def test_a_removal_does_not_go_on_in_a_group_that_bears_the_old_ones_name() -> None:
    c = Context(offsets_retention_minutes=1)
    for first in range(0, 5_000, 500):
        c.commit({("foo", n): 1 for n in range(first, first + 500)})
    c.clock.advance(60_000)
    c.coordinator.cleanup_group_metadata()
    old = c.group()
    assert 0 < len(old.offsets) < 5_000
    deleted = c.delete(GROUP)
    while not deleted.is_done:
        c.sleep(1)
    assert deleted.result == {GROUP: ErrorCode.NONE}
    c.commit({("foo", n): 3 for n in range(500)})
    c.settle()
    assert old.state is GroupState.DEAD
    assert offsets_of(c) == offsets_of(c.restarted()) == {("foo", n): 3 for n in range(500)}


# The end


def test_shutdown_answers_every_parked_join_and_sync() -> None:
    c = Context()
    c.elect(c.partition(OTHER_GROUP))
    joins, sync = parked_requests(c)
    elsewhere = c.join(OTHER_GROUP)
    c.coordinator.shutdown()
    assert {answer.result.error for answer in (*joins, elsewhere)} == {NOT_AVAILABLE}
    assert sync.result == SyncGroupResult(NOT_AVAILABLE)
    assert not c.manager.current_groups
    assert c.manager.partitions == []


def test_after_shutdown_everybody_is_turned_away() -> None:
    c = loaded_at_epoch_2()
    c.coordinator.shutdown()
    assert c.join().result.error is NOT_AVAILABLE
    assert c.sync(GROUP, 935, MEMBER).result.error is NOT_AVAILABLE
    assert c.heartbeat(GROUP, MEMBER, 935) is NOT_AVAILABLE
    assert c.leave(GROUP, MEMBER).error is NOT_AVAILABLE
    assert only(c.commit({("foo", 0): 1}).result) is NOT_AVAILABLE
    assert only(c.txn_commit(1, {("foo", 0): 1}).result) is NOT_AVAILABLE
    assert c.fetch_all() == (NOT_AVAILABLE, {})
    assert c.describe()[0] is NOT_AVAILABLE
    assert c.coordinator.handle_list_groups() == (NOT_AVAILABLE, ())
    assert c.delete(GROUP).result == {GROUP: NOT_AVAILABLE}
    assert c.delete_offsets([("foo", 0)]).result == (NOT_AVAILABLE, {})


def test_shutdown_ends_loads_sweeps_and_timers() -> None:
    c = Context(offsets_retention_minutes=1)
    c.coordinator.startup()
    for first in range(0, 3_000, 500):
        c.commit({("foo", n): 1 for n in range(first, first + 500)})
    c.clock.advance(60_000)
    c.coordinator.cleanup_group_metadata()
    c.topic.hold_loads()
    c.elect(c.partition(OTHER_GROUP))
    c.coordinator.shutdown()
    end = c.end_offset()
    c.topic.finish_loads()
    c.settle(A_DAY)
    assert c.end_offset() == end
    assert not c.manager.current_groups
    assert c.manager.partitions == []


def test_what_is_on_its_way_at_the_shutdown_is_answered_when_it_is_known() -> None:
    c = Context()
    c.commit({("foo", 0): 1}, FELLOW)
    c.topic.hold()
    commit, deleted = c.commit({("foo", 0): 1}), c.delete(FELLOW)
    c.coordinator.shutdown()
    c.topic.release()
    assert only(commit.result) is ErrorCode.NONE
    assert deleted.is_done
