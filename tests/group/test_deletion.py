"""What is deleted on request: groups, offsets, and what was committed for a topic that is gone."""

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import GroupId, PartitionData
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import GroupKey, OffsetKey
from tests.group.context import GROUP, OTHER_GROUP, Context, only, subscription

FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
PRODUCER = 1000


def offsets_of(c: Context, group: str = GROUP) -> dict[TopicPartition, int]:
    """What a client can read."""
    error, found = c.fetch_all(group)
    assert error is ErrorCode.NONE
    return {partition: told.offset for partition, told in found.items()}


def stable_group_with_offsets(**asked: object) -> tuple[Context, str]:
    """One member, which has committed 37 for foo and bar."""
    c = Context()
    joined = c.dynamic_join(**asked)
    c.sync(GROUP, joined.generation_id, joined.member_id, protocol_type=None)
    committed = c.commit({FOO: 37, BAR: 37}, member=joined.member_id, generation=joined.generation_id)
    assert only(committed.result) is ErrorCode.NONE
    assert c.state() == "Stable"
    return c, joined.member_id


def empty_group_with_offsets(**asked: object) -> Context:
    """Its member has left; 37 is committed for foo and bar."""
    c, member = stable_group_with_offsets(**asked)
    c.leave(GROUP, member)
    assert c.state() == "Empty"
    return c


# Groups


def test_a_group_with_members_cannot_be_deleted() -> None:
    """GC testDeleteNonEmptyGroup"""
    c = Context()
    c.dynamic_join()
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NON_EMPTY_GROUP}
    assert c.state() == "CompletingRebalance"


def test_a_group_must_be_named_to_be_deleted() -> None:
    """GC testDeleteGroupWithInvalidGroupId"""
    assert Context().delete(None).result == {None: ErrorCode.INVALID_GROUP_ID}


def test_a_group_that_lost_its_members_can_be_deleted() -> None:
    """GC testDeleteEmptyGroup"""
    c = Context()
    joined = c.dynamic_join()
    c.leave(GROUP, joined.member_id)
    start = c.end_offset()
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NONE}
    assert c.find() is None
    assert c.records(start=start) == [(GroupKey(GROUP), None)]


def test_a_deleted_group_takes_its_offsets_along() -> None:
    """GC testDeleteEmptyGroupWithStoredOffsets"""
    c = Context()
    joined = c.stable_group()
    committed = c.commit({FOO: 0}, member=joined.member_id, generation=joined.generation_id)
    assert only(committed.result) is ErrorCode.NONE
    summary = c.describe()[1]
    assert (summary.state, [member.member_id for member in summary.members]) == ("Stable", [joined.member_id])
    c.leave(GROUP, joined.member_id)
    start = c.end_offset()
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NONE}
    assert c.describe()[1].state == "Dead"
    assert c.records(start=start) == [(OffsetKey(GROUP, *FOO), None), (GroupKey(GROUP), None)]
    assert c.restarted().find() is None


def test_a_group_that_is_not_there_or_dead_is_not_found() -> None:
    c = Context()
    assert c.delete(GROUP).result == {GROUP: ErrorCode.GROUP_ID_NOT_FOUND}
    c.manager.add_group(c.manager.new_group(GroupId(GROUP))).transition_to(GroupState.DEAD)
    assert c.delete(GROUP).result == {GROUP: ErrorCode.GROUP_ID_NOT_FOUND}


def test_a_simple_consumers_group_leaves_no_tombstone_of_its_own() -> None:
    c = Context()
    c.commit({FOO: 1})
    start = c.end_offset()
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NONE}
    assert c.records(start=start) == [(OffsetKey(GROUP, *FOO), None)]
    assert c.restarted().find() is None


def test_several_groups_are_deleted_each_for_itself() -> None:
    c = Context()
    c.commit({FOO: 1})
    c.dynamic_join("foo")
    assert c.partition("foo") == c.partition("missing") == c.partition()
    assert c.delete(GROUP, "foo", OTHER_GROUP, "missing", None, GROUP).result == {
        GROUP: ErrorCode.NONE,
        "foo": ErrorCode.NON_EMPTY_GROUP,
        OTHER_GROUP: ErrorCode.NOT_COORDINATOR,
        "missing": ErrorCode.GROUP_ID_NOT_FOUND,
        None: ErrorCode.INVALID_GROUP_ID,
    }
    assert c.delete().result == {}


def test_a_deleted_group_ends_its_pending_transactional_commits() -> None:
    c = Context()
    c.txn_commit(PRODUCER, {FOO: 1})
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NONE}
    assert c.restarted().find() is None
    c.end_txn(PRODUCER, c.partition(), is_commit=True)
    assert c.find() is None
    assert not c.manager.is_group_open_for_producer(PRODUCER, GroupId(GROUP))
    assert c.restarted().find() is None


def test_a_deleted_group_can_begin_anew() -> None:
    c = empty_group_with_offsets()
    c.delete(GROUP)
    assert only(c.commit({FOO: 1}).result) is ErrorCode.NONE
    assert offsets_of(c) == offsets_of(c.restarted()) == {FOO: 1}
    assert c.dynamic_join().generation_id == 1


def test_a_member_id_that_was_handed_out_does_not_survive_its_group() -> None:
    c = Context()
    first = c.join(require_known_id=True).result
    assert c.delete(GROUP).result == {GROUP: ErrorCode.NONE}
    assert c.join(member=first.member_id).result.error is ErrorCode.UNKNOWN_MEMBER_ID
    c.sleep(1_000)
    assert c.find() is None


# Offsets


def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted() -> None:
    """GC testDeleteOffsetOfNonExistingGroup"""
    assert Context().delete_offsets([FOO]).result == (ErrorCode.GROUP_ID_NOT_FOUND, {})


def test_offsets_of_a_dead_group_cannot_be_deleted() -> None:
    """GC testDeleteOffsetOfDeadConsumerGroup"""
    c = Context()
    group = c.manager.add_group(c.manager.new_group(GroupId(GROUP)))
    group.protocol_type = "consumer"
    group.transition_to(GroupState.DEAD)
    assert c.delete_offsets([FOO]).result == (ErrorCode.GROUP_ID_NOT_FOUND, {})


def test_offsets_of_a_group_that_is_no_consumers_cannot_be_deleted_while_it_has_members() -> None:
    """GC testDeleteOffsetOfNonEmptyNonConsumerGroup"""
    c = Context()
    c.dynamic_join(protocol_type="My Protocol")
    assert c.delete_offsets([FOO]).result == (ErrorCode.NON_EMPTY_GROUP, {})


def test_offsets_of_an_empty_group_that_is_no_consumers_can_be_deleted() -> None:
    """GC testDeleteOffsetOfEmptyNonConsumerGroup"""
    c = empty_group_with_offsets(protocol_type="My Protocol")
    assert c.delete_offsets([FOO]).result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert (c.offset(*FOO), c.offset(*BAR)) == (-1, 37)
    assert offsets_of(c.restarted()) == {BAR: 37}


def test_offsets_of_an_empty_consumer_group_can_be_deleted() -> None:
    """GC testDeleteOffsetOfEmptyConsumerGroup"""
    c = empty_group_with_offsets()
    start = c.end_offset()
    assert c.delete_offsets([FOO]).result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert (c.offset(*FOO), c.offset(*BAR)) == (-1, 37)
    assert c.records(start=start) == [(OffsetKey(GROUP, *FOO), None)]
    assert c.state() == "Empty"
    assert c.coordinator.snapshot()["offset-deletion-count"] == 1


def test_offsets_of_subscribed_topics_cannot_be_deleted() -> None:
    """GC testDeleteOffsetOfStableConsumerGroup"""
    c, _ = stable_group_with_offsets(protocols=(("protocol", subscription("bar")),))
    answer = c.delete_offsets([FOO, BAR])
    assert answer.result == (ErrorCode.NONE, {FOO: ErrorCode.NONE, BAR: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})
    assert (c.offset(*FOO), c.offset(*BAR)) == (-1, 37)
    assert c.state() == "Stable"


def test_if_nobody_knows_the_subscription_every_topic_counts_as_subscribed() -> None:
    """GC testDeleteOffsetOfConsumerGroupWithUnparsableProtocol"""
    c, _ = stable_group_with_offsets()
    assert c.delete_offsets([FOO]).result == (ErrorCode.NONE, {FOO: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})
    assert c.offset(*FOO) == 37


def test_offsets_that_are_not_there_are_deleted_without_a_word() -> None:
    c = empty_group_with_offsets()
    end = c.end_offset()
    missing = TopicPartition("missing", 0)
    assert c.delete_offsets([missing]).result == (ErrorCode.NONE, {missing: ErrorCode.NONE})
    assert c.end_offset() == end
    assert offsets_of(c) == {FOO: 37, BAR: 37}


def test_an_empty_group_goes_with_its_last_offset() -> None:
    c = empty_group_with_offsets()
    start = c.end_offset()
    assert only(c.delete_offsets([FOO, BAR, FOO]).result[1]) is ErrorCode.NONE
    assert c.describe()[1].state == "Dead"
    gone = [(OffsetKey(GROUP, *FOO), None), (OffsetKey(GROUP, *BAR), None), (GroupKey(GROUP), None)]
    assert c.records(start=start) == gone
    assert c.restarted().find() is None


def test_a_group_with_members_stays_when_its_last_offset_goes() -> None:
    c, _ = stable_group_with_offsets(protocols=(("range", subscription("other")),))
    assert only(c.delete_offsets([FOO, BAR]).result[1]) is ErrorCode.NONE
    assert (c.state(), offsets_of(c)) == ("Stable", {})
    assert (c.restarted().state(), offsets_of(c.restarted())) == ("Stable", {})


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_commit", [False, True])
def test_to_delete_an_offset_ends_the_pending_commits_for_it(is_restarted: bool, is_commit: bool) -> None:
    c = Context()
    c.commit({FOO: 1, BAR: 1})
    c.txn_commit(PRODUCER, {FOO: 2, BAR: 2})
    assert c.delete_offsets([FOO]).result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert c.fetch(FOO, require_stable=True)[1] == {FOO: PartitionData()}
    assert c.fetch(BAR, require_stable=True)[1][BAR].error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    if is_restarted:
        c = c.restarted()
        assert c.fetch(FOO, require_stable=True)[1] == {FOO: PartitionData()}
    c.end_txn(PRODUCER, c.partition(), is_commit=is_commit)
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 2 if is_commit else 1}


def test_an_empty_group_goes_with_its_last_pending_commit() -> None:
    c = Context()
    c.txn_commit(PRODUCER, {FOO: 2})
    assert c.delete_offsets([FOO]).result == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert c.find() is None
    c.end_txn(PRODUCER, c.partition(), is_commit=True)
    assert c.find() is None
    assert c.restarted().find() is None


# Partitions whose topic is gone


def test_what_was_committed_for_a_deleted_topic_goes_from_all_groups() -> None:
    c = Context()
    c.elect(c.partition(OTHER_GROUP))
    c.commit({FOO: 1, BAR: 2})
    c.commit({FOO: 3}, OTHER_GROUP)
    c.commit({BAR: 4}, "foo")
    c.coordinator.handle_deleted_partitions([FOO, TopicPartition("foo", 1)])
    c.settle()
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 2}
    assert offsets_of(c, "foo") == {BAR: 4}
    assert c.find(OTHER_GROUP) is None
    assert c.restarted().find(OTHER_GROUP) is None


def test_of_groups_that_had_nothing_of_a_deleted_topic_only_those_that_have_nothing_at_all_are_looked_at() -> None:
    c = Context()
    c.leave(GROUP, c.stable_group().member_id)
    c.commit({BAR: 4}, "foo")
    written = len(c.records())
    c.coordinator.handle_deleted_partitions([FOO])
    c.settle()
    assert c.find() is None
    assert offsets_of(c, "foo") == {BAR: 4}
    assert len(c.records()) == written + 1


def test_offsets_of_a_deleted_topic_go_even_if_it_is_subscribed() -> None:
    c, _ = stable_group_with_offsets(protocols=(("range", subscription("foo")),))
    c.coordinator.handle_deleted_partitions([FOO])
    c.settle()
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 37}
    assert c.state() == "Stable"


@pytest.mark.parametrize("is_commit", [False, True])
def test_offsets_of_a_deleted_topic_go_even_if_a_transactional_commit_is_pending(is_commit: bool) -> None:
    c = Context()
    c.commit({FOO: 1, BAR: 1})
    c.txn_commit(PRODUCER, {FOO: 2, BAR: 2})
    c.coordinator.handle_deleted_partitions([FOO])
    c.settle()
    assert c.offset(*FOO) == -1
    c.end_txn(PRODUCER, c.partition(), is_commit=is_commit)
    assert offsets_of(c) == offsets_of(c.restarted()) == {BAR: 2 if is_commit else 1}


def test_offsets_of_a_deleted_topic_stay_readable_if_the_log_does_not_take_their_tombstones() -> None:
    c = Context()
    c.commit({FOO: 1, BAR: 2})
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.coordinator.handle_deleted_partitions([FOO])
    c.settle()
    assert offsets_of(c) == offsets_of(c.restarted()) == {FOO: 1, BAR: 2}
    assert only(c.commit({BAR: 3}).result) is ErrorCode.NONE


def test_many_groups_lose_a_deleted_topic_in_steps() -> None:
    c = Context(offsets_topic_num_partitions=1)
    groups = [f"group-{number}" for number in range(2_000)]
    for group in groups:
        c.commit({FOO: 1, BAR: 2}, group)
    c.coordinator.handle_deleted_partitions([FOO])
    left = [group for group in groups if FOO in offsets_of(c, group)]
    assert 0 < len(left) < 2_000
    assert only(c.commit({FOO: 3}, left[-1]).result) is ErrorCode.NONE  # there is a new topic of that name already
    c.settle()
    expected = {group: {BAR: 2} for group in groups} | {left[-1]: {FOO: 3, BAR: 2}}
    assert {group: offsets_of(c, group) for group in groups} == expected
    successor = c.restarted(offsets_topic_num_partitions=1)
    assert {group: offsets_of(successor, group) for group in groups} == expected
