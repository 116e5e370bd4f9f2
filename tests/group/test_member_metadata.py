"""One member: the protocols that it supports and the one that it likes best."""

import pytest

from kohort.errors import IllegalState
from kohort.group.member_metadata import MemberMetadata
from kohort.group.requests import MemberId, Protocols

RANGE_AND_ROUNDROBIN: Protocols = (("range", b"\0"), ("roundrobin", b"\1"))


def member(protocols: Protocols) -> MemberMetadata:
    return MemberMetadata(
        MemberId("memberId"), "groupInstanceId", "clientId", "clientHost", 60_000, 10_000, "consumer", protocols
    )


def test_protocols_are_the_same_only_in_name_order_number_and_bytes() -> None:
    """MM testMatchesSupportedProtocols"""
    range_alone = member((("range", b""),))
    assert range_alone.matches((("range", b""),))
    assert not range_alone.matches((("range", b"\0"),))
    assert not range_alone.matches((("roundrobin", b""),))
    assert not range_alone.matches((("range", b""), ("roundrobin", b"")))
    assert not range_alone.matches(())
    assert member(RANGE_AND_ROUNDROBIN).matches(RANGE_AND_ROUNDROBIN)
    assert not member(RANGE_AND_ROUNDROBIN).matches(RANGE_AND_ROUNDROBIN[::-1])


def test_a_member_votes_for_the_first_of_its_own_protocols_among_the_candidates() -> None:
    """MM testVoteForPreferredProtocol"""
    assert member(RANGE_AND_ROUNDROBIN).vote({"roundrobin", "range"}) == "range"
    assert member(RANGE_AND_ROUNDROBIN[::-1]).vote({"roundrobin", "range"}) == "roundrobin"
    assert member(RANGE_AND_ROUNDROBIN).vote({"blah", "roundrobin"}) == "roundrobin"


def test_a_member_without_a_candidate_cannot_vote() -> None:
    """MM testVoteRaisesOnNoSupportedProtocols"""
    for candidates in ({"blah"}, set()):
        with pytest.raises(IllegalState, match="memberId supports none of the protocols"):
            member(RANGE_AND_ROUNDROBIN).vote(candidates)


def test_metadata_are_the_bytes_of_the_named_protocol() -> None:
    """MM testMetadata"""
    assert member(RANGE_AND_ROUNDROBIN).metadata("range") == b"\0"
    assert member(RANGE_AND_ROUNDROBIN).metadata("roundrobin") == b"\1"


def test_a_protocol_that_a_member_does_not_support_has_no_metadata() -> None:
    """MM testMetadataRaisesOnUnsupportedProtocol"""
    with pytest.raises(IllegalState, match="memberId does not support protocol blah"):
        member(RANGE_AND_ROUNDROBIN).metadata("blah")


def test_a_protocol_that_is_named_twice_counts_once_and_by_its_first_metadata() -> None:
    """Repaired: a protocol that a member names twice has one vote (2.6.3 counts two and can never finish the
    rebalance)
    """
    twice = member((("range", b"\0"), ("roundrobin", b"\1"), ("range", b"\2")))
    assert twice.protocol_names == ("range", "roundrobin")
    assert twice.metadata("range") == b"\0"
