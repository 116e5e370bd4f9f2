"""What becomes of a log when its partition is loaded: groups, members and offsets; transactions have their own file."""

import pytest

from kohort.config import LogConfig
from kohort.errors import ErrorCode
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from kohort.records.batch import RecordBatch
from tests.group.context import GROUP, OTHER_GROUP, Context, VirtualClock, subscription
from tests.group.log_builder import (
    OFFSETS,
    TIME,
    StoredTopic,
    batch,
    commits,
    group_record,
    group_tombstone,
    loaded,
    member,
    offset_tombstones,
    offsets_of,
    written,
)

MEMBER = "98098230493"


def assert_stable(c: Context, generation: int, member_id: str = MEMBER) -> None:
    group = c.group()
    assert group.group_id == GROUP
    assert group.state is GroupState.STABLE
    assert group.leader_id == member_id
    assert group.generation_id == generation
    assert (group.protocol_type, group.protocol_name) == ("consumer", "range")
    assert list(group.members) == [member_id]


def expire_timestamps(c: Context) -> list[int]:
    return [at.value.expire_timestamp for _, at in c.group().offsets.items()]


def test_offsets_alone_make_an_empty_group() -> None:
    """GMM testLoadOffsetsWithoutGroup"""
    c = loaded(batch(*commits(OFFSETS)))
    assert c.state() == "Empty"
    assert c.group().group_id == GROUP
    assert c.group().generation_id == 0
    assert c.group().protocol_type is None
    assert offsets_of(c) == OFFSETS


def test_a_group_without_members_is_loaded_with_its_offsets() -> None:
    """GMM testLoadEmptyGroupWithOffsets"""
    c = loaded(batch(*commits(OFFSETS), group_record(15)))
    group = c.group()
    assert group.state is GroupState.EMPTY
    assert (group.generation_id, group.protocol_type) == (15, "consumer")
    assert (group.leader_id, group.protocol_name) == (None, None)
    assert offsets_of(c) == OFFSETS


def test_a_group_with_a_member_is_loaded_as_stable() -> None:
    """GMM testLoadOffsetsAndGroup"""
    c = loaded(batch(*commits(OFFSETS), group_record(935, MEMBER)), epoch=2)
    assert_stable(c, 935)
    assert offsets_of(c) == OFFSETS
    assert expire_timestamps(c) == [-1, -1, -1]
    assert c.heartbeat(GROUP, MEMBER, 935) is ErrorCode.NONE


def test_a_tombstone_takes_an_offset_away() -> None:
    """GMM testLoadOffsetsWithTombstones"""
    c = loaded(batch(*commits(OFFSETS), *offset_tombstones(("foo", 1))))
    assert c.state() == "Empty"
    assert offsets_of(c) == {("foo", 0): 23, ("bar", 0): 8992}
    assert c.offset("foo", 1) == -1


def test_a_tombstone_takes_a_group_away() -> None:
    """GMM testLoadGroupWithTombstone"""
    c = loaded(batch(group_record(15, MEMBER), group_tombstone()))
    assert c.find() is None
    assert c.describe()[1].state == "Dead"


def test_offsets_behind_a_groups_tombstone_make_an_empty_group() -> None:
    """GMM testOffsetWriteAfterGroupRemoved"""
    c = loaded(batch(group_record(293, MEMBER), group_tombstone(), *commits(OFFSETS)))
    assert c.state() == "Empty"
    assert c.group().generation_id == 0
    assert not c.group().members
    assert offsets_of(c) == OFFSETS


def test_of_two_stretches_the_later_one_wins_and_both_count() -> None:
    """GMM testLoadGroupAndOffsetsFromDifferentSegments"""
    first = {("foo", 0): 23, ("foo", 1): 455, ("xxx", 0): 42}
    second = {("foo", 0): 33, ("bar", 0): 8992, ("xxx", 0): 10}
    c = written(batch(*commits(first), group_record(293, "a")), offsets_load_buffer_size=1)
    log = c.topic.log(c.partition())
    log.roll()
    c.topic.write(c.partition(), batch(*commits(second), group_record(293, "b")))
    assert len(log.segments) == 2
    c.elect(c.partition())
    assert_stable(c, 293, "b")
    assert offsets_of(c) == first | second
    assert len(c.group().offsets) == 4


def test_a_record_larger_than_the_load_buffer_is_read_whole() -> None:
    """GMM testLoadGroupWithLargeGroupMetadataRecord"""
    large = member(MEMBER, assignment=bytes(5_242_880 + 16))
    config = LogConfig(cleanup_policy=frozenset({"compact"}), max_message_bytes=6_000_000)
    c = loaded(batch(*commits(OFFSETS), group_record(15, large)), config=config)
    assert offsets_of(c) == OFFSETS
    assert_stable(c, 15)
    assert len(c.group().members[MEMBER].assignment) == 5_242_896


def test_a_control_batch_without_records_is_passed_over() -> None:
    """GMM testLoadOffsetsWithEmptyControlBatch"""
    clock = VirtualClock(TIME)
    empty = RecordBatch.build(
        [],
        transactional=True,
        control=True,
        producer_id=1000,
        producer_epoch=2,
        base_offset=15,
        partition_leader_epoch=0,
    )
    data = bytearray(batch(*commits(OFFSETS), group_record(15)))
    data[0:8] = (16).to_bytes(8, "big")
    segment = (15, empty.encode() + bytes(data))
    c = Context(own=False, clock=clock, topic=StoredTopic(clock, {0: [segment], 1: [segment]}))
    c.elect(c.partition())
    assert c.topic.log(c.partition()).log_start_offset == 15
    group = c.group()
    assert group.state is GroupState.EMPTY
    assert (group.generation_id, group.protocol_type) == (15, "consumer")
    assert (group.leader_id, group.protocol_name) == (None, None)
    assert offsets_of(c) == OFFSETS


def test_offsets_of_older_brokers_carry_the_time_of_their_expiry() -> None:
    """GMM testLoadOffsetFromOldCommit"""
    old = batch(*commits(OFFSETS, version=1, expire=TIME + 100), group_record(935, MEMBER, version=1))
    c = loaded(old)
    assert_stable(c, 935)
    assert offsets_of(c) == OFFSETS
    assert expire_timestamps(c) == [TIME + 100] * 3
    assert c.group().current_state_timestamp is None


def test_offsets_with_an_explicit_retention_carry_the_time_of_their_expiry() -> None:
    """GMM testLoadOffsetWithExplicitRetention"""
    c = loaded(batch(*commits(OFFSETS, version=1, expire=TIME + 100), group_record(935, MEMBER)))
    assert_stable(c, 935)
    assert offsets_of(c) == OFFSETS
    assert expire_timestamps(c) == [TIME + 100] * 3
    assert c.group().current_state_timestamp == TIME


def test_a_static_member_is_known_by_its_instance_id_again() -> None:
    """GMM testloadGroupWithStaticMember

    Python: loaded through the log, where a group with members is Stable and not Empty
    """
    static = member("staticMemberId", group_instance_id="instance")
    c = loaded(batch(group_record(27, static, "dynamicMemberId")))
    group = c.group()
    assert (group.generation_id, group.protocol_type) == (27, "consumer")
    assert list(group.members) == ["staticMemberId", "dynamicMemberId"]
    assert group.has_static_member("instance")
    assert group.static_members == {"instance": "staticMemberId"}
    assert c.heartbeat(GROUP, "other", 27, instance="instance") is ErrorCode.FENCED_INSTANCE_ID
    assert c.heartbeat(GROUP, "staticMemberId", 27, instance="instance") is ErrorCode.NONE


def test_the_topics_of_a_loaded_group_are_read_from_its_members() -> None:
    """GMM testLoadConsumerGroup"""
    c = loaded(batch(group_record(27, member("member1", subscription=subscription("foo")), protocol="protocol")))
    group = c.group()
    assert group.state is GroupState.STABLE
    assert (group.generation_id, group.protocol_type, group.protocol_name) == (27, "consumer", "protocol")
    assert group.subscribed_topics == {"foo"}
    assert "member1" in group.members


def test_a_loaded_group_without_members_subscribes_to_nothing() -> None:
    """GMM testLoadEmptyConsumerGroup"""
    group = loaded(batch(group_record(27))).group()
    assert group.state is GroupState.EMPTY
    assert (group.generation_id, group.protocol_type, group.protocol_name) == (27, "consumer", None)
    assert group.subscribed_topics == frozenset()


def test_a_subscription_that_cannot_be_read_leaves_the_topics_unknown() -> None:
    """GMM testLoadConsumerGroupWithFaultyConsumerProtocol"""
    group = loaded(batch(group_record(27, member("member1", subscription=b""), protocol="protocol"))).group()
    assert group.state is GroupState.STABLE
    assert (group.generation_id, group.protocol_type, group.protocol_name) == (27, "consumer", "protocol")
    assert group.subscribed_topics is None
    assert "member1" in group.members


def test_records_of_unknown_types_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """GMM testLoadGroupsAndOffsetsWillIgnoreUnknownMessage

    Repaired: KIP-915, an unknown record key is skipped, counted and reported
    """
    unknown = [b"\x7f\xff\x00\x00", b"\x00\x03\x00\x00"]
    odd = [(raw, raw) for raw in unknown]
    c = loaded(batch(*commits(OFFSETS), *odd, group_record(935, MEMBER)))
    assert_stable(c, 935)
    assert offsets_of(c) == OFFSETS
    assert expire_timestamps(c) == [-1, -1, -1]
    assert c.coordinator.snapshot()["unreadable-records"] == 2
    assert f"2 records of partition {c.partition()} could not be read and were skipped" in caplog.text


def test_what_cannot_be_read_of_one_group_does_not_hurt_another() -> None:
    other = "foo"  # of the same partition
    key, data = group_record(3, "someone", group=other)
    assert data is not None
    c = loaded(batch(*commits(OFFSETS), (key, data[:-3]), (b"", b""), (b"\0", None), (b"\0\1", b"x")))
    assert offsets_of(c) == OFFSETS
    assert c.find(other) is None
    assert c.coordinator.snapshot()["unreadable-records"] == 4


def test_groups_of_other_partitions_in_the_log_are_passed_over() -> None:
    stray = batch(*commits({("foo", 0): 1}, OTHER_GROUP), group_record(3, "someone", group=OTHER_GROUP))
    c = loaded(batch(*commits(OFFSETS)), stray)
    c.elect(c.partition(OTHER_GROUP))
    assert c.find(OTHER_GROUP) is None
    assert c.fetch_all(OTHER_GROUP) == (ErrorCode.NONE, {})
    assert [group.group_id for group in c.manager.current_groups] == [GROUP]


def test_a_loaded_group_can_be_used_as_if_nothing_had_happened() -> None:
    c = Context()
    joined = c.stable_group(protocols=(("range", subscription("foo")),))
    c.commit({("foo", 0): 5}, member=joined.member_id, generation=1)
    before = c.describe()
    c = c.restarted()
    assert c.describe() == before
    assert c.heartbeat(GROUP, joined.member_id, 1) is ErrorCode.NONE
    assert c.offset("foo", 0) == 5
    assert c.sync(GROUP, 1, joined.member_id).result.error is ErrorCode.NONE
    assert c.leave(GROUP, joined.member_id).members[0].error is ErrorCode.NONE
    assert (c.state(), c.group().generation_id) == ("Empty", 2)


def test_loaded_members_that_do_not_come_are_out_when_their_sessions_end() -> None:
    patient, hasty = member("patient", session_timeout=20_000), member("hasty", session_timeout=10_000)
    c = loaded(batch(group_record(7, patient, hasty)))
    c.sleep(10_000)
    assert (c.state(), list(c.group().members)) == ("Stable", ["patient", "hasty"])
    c.sleep(1)
    assert (c.state(), list(c.group().members)) == ("PreparingRebalance", ["patient"])
    assert c.heartbeat(GROUP, "hasty", 7) is ErrorCode.UNKNOWN_MEMBER_ID
    c.sleep(10_000)
    assert (c.state(), c.group().generation_id) == ("Empty", 8)


def test_a_group_loaded_with_too_many_members_rebalances() -> None:
    names = [f"m{n}" for n in range(6)]
    c = loaded(batch(group_record(7, *(member(name, session_timeout=60_000) for name in names))))
    assert c.state() == "PreparingRebalance"
    assert c.heartbeat(GROUP, "m0", 7) is ErrorCode.REBALANCE_IN_PROGRESS
    assert c.commit({("foo", 0): 1}, member="m5", generation=7).result == {TopicPartition("foo", 0): ErrorCode.NONE}
    rejoined = [c.join(GROUP, name, protocols=(("range", b""),)) for name in names]
    errors = [answer.result.error for answer in rejoined]
    assert errors == [ErrorCode.NONE] * 4 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
    assert (c.state(), c.group().generation_id, list(c.group().members)) == ("CompletingRebalance", 8, names[:4])


def test_an_older_records_member_waits_as_long_for_others_as_others_for_it() -> None:
    """Version 0 has no rebalance timeout: the session's is taken."""
    c = loaded(batch(group_record(7, member(MEMBER, session_timeout=12_345), version=0)))
    assert c.group().members[MEMBER].rebalance_timeout_ms == 12_345
    assert c.group().rebalance_timeout_ms == 12_345


@pytest.mark.parametrize(
    "record",
    [
        group_record(1, member("twin", group_instance_id="i"), member("twin", group_instance_id="i")),
        group_record(1, member("one", group_instance_id="i"), member("two", group_instance_id="i")),
        group_record(1, "a", leader="nobody"),
        group_record(1, "a", leader=None, protocol=None),
        group_record(1, "a", "b", protocol_type=""),
        group_record(1, member("a", session_timeout=-5, rebalance_timeout=-5)),
        group_record(-7, "a", protocol="", current_state_timestamp=-99),
        group_record(0x7FFF_FFFF, ""),
    ],
)
def test_an_odd_group_is_loaded_and_can_be_lived_with(record: tuple[bytes, bytes]) -> None:
    """What no coordinator writes, but a log may hold."""
    c = loaded(batch(record), group_max_session_timeout_ms=1_800_000)
    error, summary = c.describe()
    assert (error, summary.state) == (ErrorCode.NONE, "Stable")
    assert c.heartbeat(GROUP, "nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    protocols = (("range", b""), ("", b""))
    joined = c.join(protocols=protocols, protocol_type=summary.protocol_type or "consumer", session=1_800_000)
    c.sleep(30_001)
    c.settle()
    assert joined.is_done
    assert c.restarted().describe()[0] is ErrorCode.NONE
    c.sleep(1_800_001)
    c.settle(30_000)
    assert c.state() == "Empty"
    assert not c.group().static_members
