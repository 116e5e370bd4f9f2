"""What nobody needs any more goes: expired offsets, and groups that have nothing left."""

import pytest

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.errors import ErrorCode
from kohort.group.offsets_log import AppendCallback
from kohort.group.requests import GroupId
from kohort.group.states import GroupState
from kohort.records.batch import RecordBatch, read_batches
from kohort.records.offsets_topic import GroupKey, OffsetKey
from tests.group.context import GROUP, Context, only, subscription, value
from tests.group.offsets_topic import OffsetsTopic

RETENTION = 60_000
SHORT = {"offsets_retention_minutes": 1}
FOO_0, FOO_1, FOO_2, BAR_0, BAR_1 = ("foo", 0), ("foo", 1), ("foo", 2), ("bar", 0), ("bar", 1)
GROUP_KEY = GroupKey(GROUP)


def key(partition: tuple[str, int]) -> OffsetKey:
    return OffsetKey(GROUP, *partition)


def cleanup_after(c: Context, ms: int) -> None:
    """Time passes, but no timer fires."""
    c.clock.advance(ms)
    c.coordinator.cleanup_group_metadata()


def commit_expiring(c: Context, *expiries: int | None, member: str = "", generation: int = -1) -> None:
    """Offset 37 for foo-0, foo-1, …, each with an expiry so many ms from now, or without one."""
    now = c.clock.now_ms()
    offsets = {("foo", n): value(37, time=now, expire=-1 if ms is None else now + ms) for n, ms in enumerate(expiries)}
    assert only(c.commit(offsets, member=member, generation=generation).result) is ErrorCode.NONE


def offsets(c: Context, *partitions: tuple[str, int]) -> list[int]:
    return [c.offset(*partition) for partition in partitions]


def test_an_explicit_expiry_is_kept_to_the_millisecond() -> None:
    """GMM testExpireOffset"""
    c = Context()
    commit_expiring(c, 1, 3)
    end = c.end_offset()
    cleanup_after(c, 2)
    assert c.state() == "Empty"
    assert offsets(c, FOO_0, FOO_1) == [-1, 37]
    assert c.records(start=end) == [(key(FOO_0), None)]
    assert c.coordinator.snapshot()["offset-expiration-count"] == 1
    cleanup_after(c, 1)
    assert offsets(c, FOO_0, FOO_1) == [-1, -1]


def group_of_generation_5(c: Context) -> None:
    c.manager.add_group(c.manager.new_group(GroupId(GROUP))).generation_id = 5


def assert_is_the_groups_tombstone(c: Context, batch: RecordBatch) -> None:
    assert (batch.header.magic, batch.header.is_log_append_time) == (2, False)
    (record,) = batch.records
    assert record.value is None
    assert record.timestamp == c.clock.now_ms() > 0
    assert c.records() == [(GROUP_KEY, None)]
    assert c.find() is None
    assert offsets(c, FOO_0, FOO_1) == [-1, -1]


def test_an_empty_group_without_offsets_gets_a_tombstone() -> None:
    """GMM testGroupMetadataRemoval"""
    c = Context()
    group_of_generation_5(c)
    c.coordinator.cleanup_group_metadata()
    (batch,) = c.topic.batches(c.partition())
    assert_is_the_groups_tombstone(c, batch)


class WatchedTopic(OffsetsTopic):
    """Keeps what it was given to append."""

    def append(self, partition: int, records: bytes, done: AppendCallback) -> None:
        self.given = records
        super().append(partition, records, done)


def test_a_tombstone_bears_the_time_of_its_making_whatever_the_log_makes_of_it() -> None:
    """GMM testGroupMetadataRemovalWithLogAppendTime"""
    clock = VirtualClock()
    config = LogConfig(cleanup_policy=frozenset({"compact"}), message_timestamp_type="LogAppendTime")
    c = Context(topic=WatchedTopic(clock, config=config), clock=clock)
    group_of_generation_5(c)
    c.coordinator.cleanup_group_metadata()
    (given,) = read_batches(c.topic.given)
    assert_is_the_groups_tombstone(c, given)
    (stored,) = c.topic.batches(c.partition())
    assert stored.header.is_log_append_time


def test_a_group_that_only_kept_offsets_goes_with_them_and_without_a_tombstone_of_its_own() -> None:
    """GMM testExpireGroupWithOffsetsOnly"""
    c = Context()
    commit_expiring(c, 1, 3)
    group, end = c.group(), c.end_offset()
    cleanup_after(c, 4)
    assert c.records(start=end) == [(key(FOO_0), None), (key(FOO_1), None)]
    assert c.find() is None
    assert group.state is GroupState.DEAD
    assert offsets(c, FOO_0, FOO_1) == [-1, -1]


def test_offsets_of_a_group_of_another_type_expire_when_it_has_been_empty_for_long_enough() -> None:
    """GMM testOffsetExpirationSemantics"""
    c = Context(**SHORT)
    joined = c.dynamic_join(protocol_type="protocolType", session=600_000)
    c.sync(GROUP, 1, joined.member_id, {joined.member_id: b""}, protocol_type="protocolType")
    assert c.state() == "Stable"
    commit_expiring(c, 1, 3, None, member=joined.member_id, generation=1)
    group, end = c.group(), c.end_offset()

    cleanup_after(c, 2)
    assert offsets(c, FOO_0, FOO_1, FOO_2) == [37, 37, 37]
    assert c.end_offset() == end

    c.leave(GROUP, joined.member_id)
    assert group.state is GroupState.EMPTY
    became_empty = c.clock.now_ms()
    assert group.current_state_timestamp == became_empty
    cleanup_after(c, 0)
    assert c.group() is group
    assert offsets(c, FOO_0, FOO_1, FOO_2) == [-1, 37, 37]

    cleanup_after(c, 2)
    assert c.group() is group
    assert offsets(c, FOO_0, FOO_1, FOO_2) == [-1, -1, 37]

    cleanup_after(c, became_empty + RETENTION - c.clock.now_ms() - 1)
    assert c.group() is group
    assert offsets(c, FOO_0, FOO_1, FOO_2) == [-1, -1, 37]

    cleanup_after(c, 2)
    assert c.find() is None
    assert group.state is GroupState.DEAD
    assert offsets(c, FOO_0, FOO_1, FOO_2) == [-1, -1, -1]
    assert c.records()[-2:] == [(key(FOO_2), None), (GROUP_KEY, None)]
    assert c.restarted().find() is None


def test_offsets_of_a_simple_consumer_expire_by_the_time_of_their_commit() -> None:
    """GMM testOffsetExpirationOfSimpleConsumer"""
    c = Context(**SHORT)
    commit_expiring(c, None)
    group = c.group()
    cleanup_after(c, RETENTION - 1)
    assert c.group() is group
    assert offsets(c, FOO_0) == [37]
    cleanup_after(c, 2)
    assert c.find() is None
    assert group.state is GroupState.DEAD
    assert offsets(c, FOO_0) == [-1]


def test_an_active_group_loses_only_the_offsets_of_topics_that_it_gave_up() -> None:
    """GMM testOffsetExpirationOfActiveGroupSemantics"""
    c = Context(**SHORT)
    both, foo_only = (("range", subscription("foo", "bar")),), (("range", subscription("foo")),)
    joined = c.stable_group(protocols=both, session=600_000)
    everything = (FOO_0, FOO_1, BAR_0, BAR_1)
    c.commit(dict.fromkeys(everything, 37), member=joined.member_id, generation=1)

    cleanup_after(c, RETENTION + 2)
    assert c.state() == "Stable"
    assert offsets(c, *everything) == [37, 37, 37, 37]

    again = c.join(GROUP, joined.member_id, protocols=foo_only).result
    c.coordinator.cleanup_group_metadata()
    assert offsets(c, *everything) == [37, 37, 37, 37]
    c.sync(GROUP, again.generation_id, joined.member_id, {joined.member_id: b""})
    end = c.end_offset()
    c.coordinator.cleanup_group_metadata()
    assert c.state() == "Stable"
    assert offsets(c, *everything) == [37, 37, -1, -1]
    assert c.records(start=end) == [(key(BAR_0), None), (key(BAR_1), None)]
    assert len(c.topic.batches(c.partition(), end)) == 1


def test_nothing_expires_by_its_commit_time_while_a_group_gets_members_again() -> None:
    """GM testOffsetRemovalDuringTransitionFromEmptyToNonEmpty

    Repaired: KAFKA-13636, nothing expires by its commit time while a rebalance runs
    """
    c = Context(**SHORT)
    subscribed = {"protocols": (("range", subscription("foo")),), "session": 600_000}
    joined = c.stable_group(**subscribed)
    assert c.group().subscribed_topics == {"foo"}
    c.commit({FOO_0: 37, BAR_0: 38}, member=joined.member_id, generation=1)

    c.clock.advance(RETENTION + 1)
    c.leave(GROUP, joined.member_id)
    assert c.state() == "Empty"
    cleanup_after(c, 0)
    assert offsets(c, FOO_0, BAR_0) == [37, 38]

    again = c.join(**subscribed)
    assert c.state() == "PreparingRebalance"
    cleanup_after(c, 0)
    assert offsets(c, FOO_0, BAR_0) == [37, 38]

    c.sleep(51)
    assert c.state() == "CompletingRebalance"
    cleanup_after(c, 0)
    assert offsets(c, FOO_0, BAR_0) == [37, 38]

    c.sync(GROUP, 3, again.result.member_id, {again.result.member_id: b""})
    assert c.state() == "Stable"
    cleanup_after(c, 0)
    assert offsets(c, FOO_0, BAR_0) == [37, -1]


def test_a_group_of_unknown_subscriptions_keeps_everything_while_it_has_members() -> None:
    c = Context(**SHORT)
    joined = c.stable_group(protocols=(("range", b"?"),), session=600_000)
    commit_expiring(c, None, 1, member=joined.member_id, generation=1)
    cleanup_after(c, RETENTION * 5)
    assert offsets(c, FOO_0, FOO_1) == [37, 37]


def test_a_group_whose_record_does_not_tell_since_when_it_is_empty_counts_from_its_commits() -> None:
    c = Context(**SHORT, inter_broker_protocol_version="1.1")
    joined = c.stable_group()
    c.commit({FOO_0: 37}, member=joined.member_id, generation=1)
    c.clock.advance(RETENTION - 10)
    c.leave(GROUP, joined.member_id)
    c = c.restarted(**SHORT)
    assert c.group().current_state_timestamp is None
    cleanup_after(c, 9)
    assert offsets(c, FOO_0) == [37]
    cleanup_after(c, 1)
    assert c.find() is None


def test_expired_things_are_looked_for_at_every_interval() -> None:
    c = Context(**SHORT, offsets_retention_check_interval_ms=600_000)
    c.coordinator.startup()
    for _ in range(3):
        c.commit({FOO_0: 37})
        c.sleep(600_001)
        assert c.find() is None
    c.commit({FOO_0: 37})
    c.coordinator.shutdown()
    end = c.end_offset()
    c.sleep(600_001)
    assert c.end_offset() == end


def test_a_clock_that_is_set_back_expires_nothing_early_and_nothing_twice() -> None:
    c = Context(**SHORT)
    c.commit({FOO_0: 37})
    c.clock.jump(-86_400_000)
    cleanup_after(c, RETENTION)
    assert offsets(c, FOO_0) == [37]
    c.clock.jump(86_400_000)
    cleanup_after(c, 0)
    assert c.find() is None
    end = c.end_offset()
    cleanup_after(c, 0)
    assert c.end_offset() == end


def test_a_group_with_an_id_handed_out_goes_and_the_id_with_it() -> None:
    c = Context()
    first = c.join(require_known_id=True).result
    c.coordinator.cleanup_group_metadata()
    assert c.find() is None
    assert c.join(GROUP, first.member_id).result.error is ErrorCode.UNKNOWN_MEMBER_ID
    c.sleep(501)
    assert c.end_offset() == 0


def test_a_group_whose_name_is_half_a_character_can_go() -> None:
    """It is written with a question mark in its place; nor may it keep others from expiring."""
    c = Context(own=False, **SHORT)
    for partition in (0, 1):
        c.elect(partition)
    for remove in (c.coordinator.cleanup_group_metadata, lambda: c.delete("\ud800", GROUP)):
        joined = c.join("\ud800")
        c.sleep(51)
        c.leave("\ud800", joined.result.member_id)
        assert c.state("\ud800") == "Empty"
        c.commit({FOO_0: 37})
        c.clock.advance(RETENTION)
        remove()
        c.settle()
        assert not c.manager.current_groups


@pytest.mark.parametrize("group", ["x" * 32_768, "é" * 16_384], ids=["long", "wide"])
def test_a_group_whose_name_fits_into_no_record_is_refused(group: str) -> None:
    """Repaired: a group id that fits into no record is INVALID_GROUP_ID"""
    c = Context(own=False)
    for partition in (0, 1):
        c.elect(partition)
    assert c.join(group).result.error is ErrorCode.INVALID_GROUP_ID
    assert only(c.commit({FOO_0: 37}, group).result) is ErrorCode.INVALID_GROUP_ID
    assert c.delete(group).result == {group: ErrorCode.INVALID_GROUP_ID}
    assert only(c.commit({FOO_0: 37}, group[:-1]).result) is ErrorCode.NONE
