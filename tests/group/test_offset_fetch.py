"""Offset fetches: of some partitions or of all, and what they tell of commits that are still on their way."""

from kohort.errors import ErrorCode
from kohort.group.requests import PartitionData
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from tests.group.context import GROUP, Context, only, value

TOPIC_0, TOPIC_1, OTHER_0 = TopicPartition("topic", 0), TopicPartition("topic", 1), TopicPartition("other-topic", 0)


def test_a_commit_is_read_as_it_was_made() -> None:
    """GC testFetchOffsets"""
    c = Context()
    committed = value(97, "some metadata", leader_epoch=15, time=c.clock.now_ms())
    assert only(c.commit({TOPIC_0: committed}).result) is ErrorCode.NONE
    expected = (ErrorCode.NONE, {TOPIC_0: PartitionData(97, 15, "some metadata", ErrorCode.NONE)})
    assert c.fetch(TOPIC_0) == expected
    assert c.fetch(TOPIC_0, require_stable=True) == expected
    assert c.restarted().fetch(TOPIC_0) == expected


def test_a_partition_without_a_commit_has_no_offset() -> None:
    """GC testFetchOffsetForUnknownPartition"""
    c = Context()
    assert c.fetch(TOPIC_0) == (ErrorCode.NONE, {TOPIC_0: PartitionData(-1, -1, "", ErrorCode.NONE)})
    assert c.find() is None
    c.commit({TOPIC_1: 1})
    assert c.fetch(TOPIC_0) == (ErrorCode.NONE, {TOPIC_0: PartitionData(-1, -1, "", ErrorCode.NONE)})


def test_without_partitions_all_that_have_an_offset_are_told() -> None:
    """GC testFetchAllOffsets"""
    c = Context()
    assert c.fetch_all() == (ErrorCode.NONE, {})
    assert only(c.commit({TOPIC_0: 15, TOPIC_1: 16, OTHER_0: 17}).result) is ErrorCode.NONE
    expected = {TOPIC_0: PartitionData(15), TOPIC_1: PartitionData(16), OTHER_0: PartitionData(17)}
    assert {told.error for told in expected.values()} == {ErrorCode.NONE}
    assert c.fetch_all() == (ErrorCode.NONE, expected)
    assert c.fetch_all(require_stable=True) == (ErrorCode.NONE, expected)


def test_the_group_without_a_name_keeps_offsets() -> None:
    """GC testCommitAndFetchOffsetsWithEmptyGroup"""
    c = Context()
    assert c.commit({TOPIC_0: 0}, "").result == {TOPIC_0: ErrorCode.NONE}
    assert c.fetch(TOPIC_0, group="") == (ErrorCode.NONE, {TOPIC_0: PartitionData(0)})
    error, summary = c.describe("")
    assert (error, summary.state) == (ErrorCode.NONE, "Empty")
    assert c.delete("").result == {"": ErrorCode.NONE}
    assert c.fetch(TOPIC_0, group="") == (ErrorCode.NONE, {TOPIC_0: PartitionData(-1)})


def test_the_group_without_a_name_is_good_for_nothing_else() -> None:
    c = Context()
    c.commit({TOPIC_0: 0}, "")
    invalid = ErrorCode.INVALID_GROUP_ID
    assert c.join("").result.error is invalid
    assert c.sync("", 1, "member").result.error is invalid
    assert c.heartbeat("", "member", 1) is invalid
    assert c.leave("", "member").error is invalid
    assert only(c.txn_commit(1000, {TOPIC_0: 1}, "").result) is invalid
    assert c.delete_offsets([TOPIC_0], "").result == (invalid, {})
    assert c.offset(*TOPIC_0, group="") == 0


def test_partitions_are_told_in_the_order_they_were_asked_for() -> None:
    c = Context()
    c.commit({TOPIC_0: 15, TOPIC_1: 16, OTHER_0: 17})
    asked = [OTHER_0, TopicPartition("topic", 2), TOPIC_1, TOPIC_0]
    assert list(c.fetch(*asked)[1]) == asked


def test_a_group_with_members_tells_its_offsets_in_every_state() -> None:
    c = Context()
    joined = c.stable_group()
    c.commit({TOPIC_0: 15}, member=joined.member_id, generation=joined.generation_id)
    c.join()
    assert c.state() == "PreparingRebalance"
    assert c.offset(*TOPIC_0) == 15
    c.sleep(501)
    assert c.state() == "CompletingRebalance"
    assert c.offset(*TOPIC_0) == 15


def test_a_dead_group_has_no_offsets() -> None:
    c = Context()
    c.commit({TOPIC_0: 15})
    c.group().transition_to(GroupState.DEAD)
    assert c.fetch(TOPIC_0) == (ErrorCode.NONE, {TOPIC_0: PartitionData()})
    assert c.fetch_all() == (ErrorCode.NONE, {})


def test_a_commit_on_its_way_makes_its_partition_unstable() -> None:
    c = Context()
    c.commit({TOPIC_0: 15, TOPIC_1: 16})
    c.topic.hold()
    c.commit({TOPIC_0: 25, OTHER_0: 17})
    unstable = PartitionData(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    stable = {TOPIC_0: PartitionData(15), TOPIC_1: PartitionData(16)}
    assert c.fetch_all() == (ErrorCode.NONE, stable)
    assert c.fetch_all(require_stable=True) == (ErrorCode.NONE, {TOPIC_0: unstable, TOPIC_1: PartitionData(16)})
    assert c.fetch(OTHER_0, require_stable=True) == (ErrorCode.NONE, {OTHER_0: unstable})
    c.topic.release()
    assert c.fetch(TOPIC_0, OTHER_0, require_stable=True)[1] == {
        TOPIC_0: PartitionData(25),
        OTHER_0: PartitionData(17),
    }


def test_what_others_own_is_not_told() -> None:
    c = Context()
    c.commit({TOPIC_0: 15})
    c.resign(c.partition(GROUP))
    assert c.fetch(TOPIC_0) == (ErrorCode.NOT_COORDINATOR, {})
