"""Groups on their way into the log: what is written, and what a failed write means."""

import pytest

from kohort.errors import ErrorCode
from kohort.group.group_metadata import GroupMetadata
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import GroupId, MemberId
from kohort.group.states import GroupState
from kohort.records.offsets_topic import GroupKey, GroupMetadataValue, MemberValue
from tests.group.context import GROUP, Answer, Context

MEMBER = MemberId("memberId")


def new_group(c: Context) -> GroupMetadata:
    return c.manager.add_group(c.manager.new_group(GroupId(GROUP)))


def group_with_a_member(c: Context, **fields: str) -> GroupMetadata:
    told = {"client_id": "clientId", "client_host": "localhost"} | fields
    group = new_group(c)
    member = MemberMetadata(
        MEMBER, "instance", told["client_id"], told["client_host"], 60_000, 10_000, "type", (("protocol", b"meta"),)
    )
    group.add(member, lambda _: None)
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.init_next_generation()
    return group


def store(c: Context, group: GroupMetadata, assignment: dict[MemberId, bytes] | None = None) -> Answer[ErrorCode]:
    answer: Answer[ErrorCode] = Answer()
    c.manager.store_group(group, assignment or {}, answer)
    return answer


def test_a_group_without_members_is_one_record() -> None:
    """GMM testStoreEmptyGroup"""
    c = Context()
    group = new_group(c)
    group.restore(
        generation_id=27, protocol_type="consumer", protocol_name=None, leader_id=None, state_timestamp=None, members=()
    )
    assert store(c, group).result is ErrorCode.NONE
    assert c.records() == [(GroupKey(GROUP), GroupMetadataValue("consumer", 27, None, None))]
    read_back = c.restarted().group()
    assert (read_back.state, read_back.generation_id, read_back.protocol_type) == (GroupState.EMPTY, 27, "consumer")


def test_a_group_that_only_keeps_offsets_has_neither_generation_nor_type() -> None:
    """GMM testStoreEmptySimpleGroup"""
    c = Context()
    assert store(c, new_group(c)).result is ErrorCode.NONE
    ((key, told),) = c.records()
    assert key == GroupKey(GROUP)
    assert (told.generation, told.protocol_type, told.protocol, told.leader, told.members) == (0, "", None, None, ())
    c.commit({("foo", 0): 1})
    read_back = c.restarted().group()
    assert (read_back.state, read_back.generation_id, read_back.protocol_type) == (GroupState.EMPTY, 0, None)


def test_a_group_with_a_member_is_stored_with_its_assignment() -> None:
    """GMM testStoreNonEmptyGroup"""
    c = Context()
    group = group_with_a_member(c)
    assert store(c, group, {MEMBER: b"all"}).result is ErrorCode.NONE
    member = MemberValue("memberId", "clientId", "localhost", 10_000, b"meta", b"all", 60_000, "instance")
    value = GroupMetadataValue("type", 1, "protocol", "memberId", (member,), c.clock.now_ms())
    assert c.records() == [(GroupKey(GROUP), value)]
    (batch,) = c.topic.batches(c.partition())
    assert (batch.header.magic, batch.header.producer_id, batch.header.base_sequence) == (2, -1, -1)
    assert batch.records[0].timestamp == c.clock.now_ms()


def test_a_group_whose_partition_is_led_elsewhere_is_not_ours_to_store() -> None:
    """GMM testStoreNonEmptyGroupWhenCoordinatorHasMoved"""
    c = Context()
    group = group_with_a_member(c)
    c.topic.elsewhere.add(c.partition())
    assert store(c, group, {MEMBER: b""}).result is ErrorCode.NOT_COORDINATOR
    assert c.records() == []


@pytest.mark.parametrize(
    ("of_the_log", "told"),
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_errors_of_the_log_are_told_in_the_words_of_groups(of_the_log: ErrorCode, told: ErrorCode) -> None:
    """GMM testStoreGroupErrorMapping"""
    c = Context()
    c.topic.fail_next(of_the_log)
    assert store(c, new_group(c)).result is told


def test_a_write_that_takes_too_long_is_given_up_and_settled_all_the_same() -> None:
    c = Context(offsets_commit_timeout_ms=5_000)
    c.topic.hold()
    answer = store(c, group_with_a_member(c))
    c.sleep(5_000)
    assert not answer.is_done
    c.sleep(1)
    assert answer.result is ErrorCode.REBALANCE_IN_PROGRESS
    c.topic.release()
    assert len(c.records()) == 1


def test_a_group_that_does_not_fit_into_a_record_is_not_written() -> None:
    c = Context()
    group = group_with_a_member(c, client_id="x" * 40_000)
    assert store(c, group).result is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.records() == []


def test_an_assignment_larger_than_the_log_takes_is_an_error_of_the_group() -> None:
    c = Context()
    group = group_with_a_member(c)
    assert store(c, group, {MEMBER: bytes(2_000_000)}).result is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.records() == []


@pytest.mark.parametrize(
    ("inter_broker_version", "version"), [("0.9.0", 0), ("0.10.1", 1), ("2.0", 1), ("2.1", 2), ("2.3", 3), ("2.6", 3)]
)
def test_groups_are_written_in_the_version_that_all_brokers_understand(inter_broker_version: str, version: int) -> None:
    c = Context(inter_broker_protocol_version=inter_broker_version)
    store(c, group_with_a_member(c), {MEMBER: b"all"})
    ((_, told),) = c.records()
    assert told.version == version
    assert told.members[0].rebalance_timeout == (60_000 if version >= 1 else -1)
    assert told.current_state_timestamp == (c.clock.now_ms() if version >= 2 else -1)
    assert told.members[0].group_instance_id == ("instance" if version >= 3 else None)


def test_records_are_compressed_as_the_settings_ask() -> None:
    c = Context(offsets_topic_compression_codec=1)
    store(c, group_with_a_member(c))
    c.commit({("foo", 0): 1}, "foo")
    assert [batch.header.codec for batch in c.topic.batches(c.partition())] == [1, 1]
    assert c.restarted().offset("foo", 0, "foo") == 1
