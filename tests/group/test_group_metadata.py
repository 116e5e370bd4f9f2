"""The book-keeping of one group: protocols, subscribed topics, generations, and who has not synced yet."""

import pytest

from kohort.clock import VirtualClock
from kohort.errors import IllegalState
from kohort.group.group_metadata import GroupMetadata
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import GroupId, MemberId, Protocols
from kohort.group.states import GroupState
from kohort.records.consumer_protocol import Subscription, encode_subscription
from tests.group.context import GROUP, INITIAL_DELAY, PROTOCOL_SUPERSET, Context, subscription

MEMBER = MemberId("memberId")


def new_group(clock: VirtualClock | None = None) -> GroupMetadata:
    return GroupMetadata(GroupId(GROUP), clock or VirtualClock())


def member(
    *names: str, member_id: str = MEMBER, protocol_type: str = "consumer", metadata: bytes = b"", timeout: int = 60_000
) -> MemberMetadata:
    protocols: Protocols = tuple((name, metadata) for name in names or ("range",))
    return MemberMetadata(
        MemberId(member_id), None, "clientId", "clientHost", timeout, 10_000, protocol_type, protocols
    )


def next_generation(group: GroupMetadata) -> None:
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.init_next_generation()


# Protocols


def test_the_protocol_is_the_one_that_most_members_like_best() -> None:
    """GM testSelectProtocol"""
    group = new_group()
    group.add(member("range", "roundrobin"))
    assert group.select_protocol() == "range"
    group.add(member("roundrobin", "range", member_id="other"))
    assert group.select_protocol() in ("range", "roundrobin")
    group.add(member("roundrobin", "range", member_id="last"))
    assert group.select_protocol() == "roundrobin"


def test_a_tie_of_votes_goes_to_what_was_voted_for_first() -> None:
    group = new_group()
    group.add(member("range", "roundrobin"))
    group.add(member("roundrobin", "range", member_id="other"))
    assert group.select_protocol() == "range"
    group.remove(MEMBER)
    group.add(member("range", "roundrobin"))
    assert group.select_protocol() == "roundrobin"


def test_without_members_there_is_no_protocol_to_select() -> None:
    """GM testSelectProtocolRaisesIfNoMembers"""
    with pytest.raises(IllegalState, match="groupId has no members to select a protocol"):
        new_group().select_protocol()


def test_only_what_all_members_support_can_be_selected() -> None:
    """GM testSelectProtocolChoosesCompatibleProtocol"""
    group = new_group()
    group.add(member("range", "roundrobin"))
    group.add(member("roundrobin", "blah", member_id="other"))
    assert group.select_protocol() == "roundrobin"


def test_whoever_joins_must_share_a_protocol_with_all_who_are_there() -> None:
    """GM testSupportsProtocols"""
    group = new_group()
    assert group.supports_protocols("consumer", ["roundrobin", "range"])
    assert group.supports_protocols("anything", ["blah"])

    group.add(member("range", "roundrobin"))
    group.transition_to(GroupState.PREPARING_REBALANCE)
    assert group.supports_protocols("consumer", ["roundrobin", "foo"])
    assert group.supports_protocols("consumer", ["range", "foo"])
    assert not group.supports_protocols("consumer", ["foo", "bar"])

    group.add(member("roundrobin", "blah", member_id="other"))
    assert group.supports_protocols("consumer", ["roundrobin", "foo"])
    assert not group.supports_protocols("invalid_type", ["roundrobin", "foo"])
    assert not group.supports_protocols("consumer", ["range", "foo"])


def test_a_protocol_that_nobody_supports_any_more_is_not_shared() -> None:
    group = new_group()
    group.add(member("range"))
    group.add(member("range", "roundrobin", member_id="other"))
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.update_member(group.members[MEMBER], (("roundrobin", b""),), 500, 500, None)
    assert not group.supports_protocols("consumer", ["range"])
    assert group.supports_protocols("consumer", ["roundrobin"])
    assert group.select_protocol() == "roundrobin"


# Topics


def test_the_subscribed_topics_are_those_of_the_generation() -> None:
    """GM testSubscribedTopics"""
    group = new_group()
    assert group.subscribed_topics is None

    group.add(member(metadata=subscription("foo")))
    next_generation(group)
    assert group.subscribed_topics == {"foo"}

    group.remove(MEMBER)
    next_generation(group)
    assert group.subscribed_topics == frozenset()

    group.add(member(metadata=b""))
    next_generation(group)
    assert group.subscribed_topics is None
    assert group.is_subscribed_to_topic("foo")


def test_the_subscribed_topics_are_those_of_all_members() -> None:
    group = new_group()
    group.add(member(metadata=subscription("foo", "bar")))
    group.add(member(member_id="newer", metadata=encode_subscription(Subscription(("baz",), version=3, rack="r"))))
    next_generation(group)
    assert group.subscribed_topics == {"foo", "bar", "baz"}
    assert not group.is_subscribed_to_topic("other")


def test_nobody_knows_the_topics_of_a_group_of_another_type() -> None:
    """GM testSubscribedTopicsNonConsumerGroup"""
    group = new_group()
    assert group.subscribed_topics is None
    group.add(member(protocol_type="My Protocol"))
    next_generation(group)
    assert group.subscribed_topics is None
    group.remove(MEMBER)
    next_generation(group)
    assert group.subscribed_topics is None


# Generations


def test_a_generation_with_members_has_a_number_and_a_protocol() -> None:
    """GM testInitNextGeneration"""
    group = new_group()
    group.add(member("roundrobin"), lambda _: None)
    assert (group.generation_id, group.protocol_name) == (0, None)
    next_generation(group)
    assert (group.generation_id, group.protocol_name) == (1, "roundrobin")
    assert group.state is GroupState.COMPLETING_REBALANCE


def test_a_generation_without_members_has_a_number_only() -> None:
    """GM testInitNextGenerationEmptyGroup"""
    group = new_group()
    assert (group.generation_id, group.protocol_name) == (0, None)
    next_generation(group)
    assert (group.generation_id, group.protocol_name) == (1, None)
    assert group.state is GroupState.EMPTY


def test_generations_begin_anew_where_their_field_ends() -> None:
    group = new_group()
    group.generation_id = 0x7FFF_FFFF
    next_generation(group)
    assert group.generation_id == 1


# Members that have not asked for their assignment yet


def test_a_member_can_owe_a_sync_and_pay_it() -> None:
    """GM testCanAddAndRemovePendingSyncMember"""
    group = new_group()
    group.add(member())
    group.add_pending_sync_member(MEMBER)
    assert group.pending_sync_members == (MEMBER,)
    assert not group.has_received_sync_from_all_members
    group.remove_pending_sync_member(MEMBER)
    assert group.pending_sync_members == ()
    assert group.has_received_sync_from_all_members


def test_only_a_member_can_owe_a_sync() -> None:
    """GM testCannotAddPendingSyncOfUnknownMember"""
    with pytest.raises(IllegalState, match="memberId is no member of group groupId"):
        new_group().add_pending_sync_member(MEMBER)


def test_only_a_member_can_pay_a_sync() -> None:
    """GM testCannotRemovePendingSyncOfUnknownMember"""
    with pytest.raises(IllegalState, match="memberId is no member of group groupId"):
        new_group().remove_pending_sync_member(MEMBER)


def test_who_leaves_owes_no_sync() -> None:
    """GM testRemovalFromPendingSyncWhenMemberIsRemoved"""
    group = new_group()
    group.add(member())
    group.add_pending_sync_member(MEMBER)
    assert group.pending_sync_members == (MEMBER,)
    group.remove(MEMBER)
    assert group.pending_sync_members == ()


def test_syncs_of_an_earlier_generation_are_not_owed_any_more() -> None:
    """GM testNewGenerationClearsPendingSyncMembers"""
    group = new_group()
    group.add(member())
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.add_pending_sync_member(MEMBER)
    assert group.pending_sync_members == (MEMBER,)
    group.init_next_generation()
    assert group.pending_sync_members == ()


# Timeouts


def test_a_member_that_joins_again_brings_its_timeouts_along() -> None:
    """GM testUpdateMember

    Repaired: KAFKA-14009, a member that joins again with other timeouts gets them
    """
    c = Context()
    joined = c.stable_group(protocols=PROTOCOL_SUPERSET)
    assert (c.group().rebalance_timeout_ms, c.group().members[joined.member_id].session_timeout_ms) == (500, 500)
    again = c.join(GROUP, joined.member_id, protocols=PROTOCOL_SUPERSET[1:], rebalance=120_000, session=20_000)
    assert again.result.generation_id == 2
    member = c.group().members[joined.member_id]
    assert (c.group().rebalance_timeout_ms, member.session_timeout_ms) == (120_000, 20_000)
    assert member.supported_protocols == PROTOCOL_SUPERSET[1:]
    c.sync(GROUP, 2, joined.member_id, {joined.member_id: b""})
    c.sleep(19_000 + INITIAL_DELAY)
    assert c.heartbeat(GROUP, joined.member_id, 2) == 0
