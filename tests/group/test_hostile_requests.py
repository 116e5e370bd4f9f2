"""Requests that no honest client sends: each ends in one answer with an error code, and the group stays whole."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kohort.errors import ErrorCode
from kohort.group.records import GroupRecords
from kohort.group.requests import GroupId
from tests.group.context import GROUP, INITIAL_DELAY, SESSION_TIMEOUT, Answer, Context, only

FOO = ("foo", 0)
IDS = st.text(max_size=40) | st.sampled_from(
    ["", "\0", "a\0b", "😀", "\ud800", "x" * 32_767, "é" * 16_383, "../..", "%s%n"]
)
NUMBERS = st.integers(-(2**31), 2**31 - 1)


def assert_whole(c: Context) -> None:
    """Book-keeping that must agree with itself, and a log that loads."""
    for group in c.manager.current_groups:
        waiting = [member for member in group.members.values() if member.is_awaiting_join]
        assert group.awaiting_join == len(waiting)
        assert group.leader_id in group.members or not group.members
        static = {member.group_instance_id: member.member_id for member in group.members.values()}
        static.pop(None, None)
        assert group.static_members == static
    c.restarted()


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(IDS, IDS, st.none() | IDS, st.none() | IDS, NUMBERS, NUMBERS, NUMBERS)
def test_ids_and_numbers_of_any_kind(
    group: str, member: str, instance: str | None, client: str | None, session: int, rebalance: int, generation: int
) -> None:
    c = Context(own=False)
    for partition in (0, 1):
        c.elect(partition)
    asked: list[Answer] = [
        c.join(group, session=SESSION_TIMEOUT, rebalance=rebalance, instance=instance, client_id=client),
        c.join(group, member, instance=instance, session=session, rebalance=rebalance, client_id=client),
        c.join(group, require_known_id=True, client_id=client),
        c.sync(group, generation, member, {member: b"?", "stranger": b"!"}, instance=instance),
        c.commit({FOO: generation}, group, member, generation, instance=instance),
        c.txn_commit(generation, {FOO: 1}, group, member, generation, instance=instance),
        c.delete_offsets([FOO], group),
    ]
    assert isinstance(c.heartbeat(group, member, generation, instance=instance), ErrorCode)
    assert isinstance(c.leave(group, (member, instance)).error, ErrorCode)
    assert isinstance(c.describe(group)[0], ErrorCode)
    assert isinstance(c.fetch(FOO, group=group, require_stable=True)[0], ErrorCode)
    assert_whole(c)
    asked.append(c.delete(group, None))
    for _ in range(4):
        c.sleep(600_001)
    assert all(answer.is_done for answer in asked)
    assert_whole(c)


def test_a_client_id_that_makes_a_member_id_too_long_is_an_error() -> None:
    c = Context()
    assert c.join(client_id="c" * 32_767).result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.join(client_id="c" * 32_000).is_done is False
    assert_whole(c)


def test_protocols_that_are_named_twice_or_not_at_all() -> None:
    c = Context()
    joined = c.join(protocols=(("", b""), ("", b"other"), ("range", b"m"), ("range", b"n")))
    c.sleep(INITIAL_DELAY + 1)
    assert (joined.result.error, joined.result.protocol_name) == (ErrorCode.NONE, "")
    assert c.sync(GROUP, 1, joined.result.member_id).result.error is ErrorCode.NONE
    assert_whole(c)


def test_metadata_that_no_record_can_hold_ends_in_an_error_and_a_rebalance() -> None:
    c = Context()
    joined = c.join(protocols=(("range", b"m" * 2_000_000),))
    c.sleep(INITIAL_DELAY + 1)
    assert c.sync(GROUP, 1, joined.result.member_id).result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.state() == "PreparingRebalance"
    assert_whole(c)


def test_an_assignment_for_strangers_is_for_nobody() -> None:
    c = Context()
    member = c.dynamic_join().member_id
    assert c.sync(GROUP, 1, member, {f"stranger-{n}": b"x" for n in range(1000)}).result.assignment == b""
    assert_whole(c)


def test_a_commit_of_very_many_partitions() -> None:
    c = Context()
    fits = {("foo", n): n for n in range(10_000)}
    assert only(c.commit(fits).result) is ErrorCode.NONE
    too_many = {("foo", n): n for n in range(40_000)}
    assert only(c.commit(too_many).result) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert len(c.fetch_all()[1]) == 10_000
    assert_whole(c)


@pytest.mark.parametrize("topic", ["t" * 40_000, "é" * 20_000])
def test_a_topic_or_metadata_that_no_record_can_hold(topic: str) -> None:
    c = Context(offset_metadata_max_bytes=1_000_000)
    assert only(c.commit({(topic, 0): 1}).result) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    c.commit({FOO: 1})
    assert c.fetch_all()[1].keys() == {FOO}
    assert_whole(c)


def test_the_last_generation_is_followed_by_the_first() -> None:
    c = Context()
    member = c.stable_group().member_id
    group = c.group()
    group.generation_id = 2**31 - 1
    assignment = {member: b""}
    c.topic.write(c.partition(), GroupRecords(c.config).group_metadata(group, assignment, c.clock.now_ms()))
    later = c.restarted()
    again = later.join(GROUP, member)
    assert (again.result.error, again.result.generation_id) == (ErrorCode.NONE, 1)
    assert later.sync(GROUP, 1, member, assignment).result.error is ErrorCode.NONE
    assert later.restarted().group(GroupId(GROUP)).generation_id == 1


def test_a_pending_id_that_claims_to_be_static_is_refused() -> None:
    c = Context()
    pending = c.join(require_known_id=True).result.member_id
    assert c.join(GROUP, pending, instance="static").result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.leave(GROUP, (pending, "static")).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert c.join(GROUP, pending).is_done is False
    assert_whole(c)
