"""JoinGroup of dynamic members."""

from oracle.member import SUBSCRIPTION, Member, assign, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk

SYNC_OF = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 4, 7: 5}
HEARTBEAT_OF = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 4, 7: 4}
LEAVE_OF = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 4, 7: 4}


@for_versions(0, 1, 2, 3, 4, 5, 6, 7)
def join_life(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.enter(version)
    member.describe()
    member.sync(SYNC_OF[version], {member.member_id: b"all of it"})
    member.describe()
    member.heartbeat(HEARTBEAT_OF[version])
    member.commit((0, 5), (2, 7))
    member.leave(LEAVE_OF[version])
    member.describe()
    member.heartbeat(HEARTBEAT_OF[version])
    member.fetch()


@for_versions(0, 3, 4, 5, 6, 7)
def join_with_an_empty_group_id(talk: Talk, version: int) -> None:
    Member(talk, group="").join(version)


@sequence
def join_with_a_session_timeout_out_of_bounds(talk: Talk) -> None:
    member = Member(talk)
    for version in (0, 3, 5, 7):
        for timeout in (99, 60_001, 0, -1):
            member.join(version, session_timeout=timeout)
    member.describe()


@sequence
def join_with_an_unknown_member_id(talk: Talk) -> None:
    member = Member(talk)
    for version in (0, 3, 4, 5, 7):
        member.join(version, member_id="somebody")
        member.member_id = ""
    member.settle()
    member.join(3, member_id="somebody else")
    member.describe()


@sequence
def join_is_told_a_member_id_first(talk: Talk) -> None:
    member = Member(talk)
    member.join(4)
    member.describe()
    again = Member(talk)
    again.join(5)
    member.send_join(4)
    member.caller.is_kept_waiting()
    again.send_join(5)
    member.joined()
    again.joined()
    member.describe()


@sequence
def join_without_protocols(talk: Talk) -> None:
    member = Member(talk)
    member.join(3, protocols=[])
    member.join(5, protocols=[])
    member.join(7, protocols=[])
    member.join(3, protocol_type="")
    member.join(7, protocol_type="")
    member.describe()


@sequence
def join_with_another_protocol_type(talk: Talk) -> None:
    Member(talk).settle()
    other = Member(talk, "b", protocol_type="connect")
    other.join(3)
    other.join(5)
    other.join(7)
    other.describe()


@sequence
def join_without_a_common_protocol(talk: Talk) -> None:
    Member(talk).settle()
    other = Member(talk, "b", protocols=(("sticky", b""),))
    other.join(3)
    other.join(7)
    other.protocols = ()
    other.join(3)
    other.describe()


@sequence
def join_again_without_a_common_protocol(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    follower.join(protocols=[{"name": "sticky", "metadata": b""}])
    follower.heartbeat()
    leader.heartbeat()


@sequence
def join_of_a_metadata_that_is_no_subscription(talk: Talk) -> None:
    member = Member(talk, protocols=(("range", b"\0"),))
    member.settle()
    member.describe()
    member.commit((0, 1))
    member.delete_offsets(0)


@sequence
def join_of_two_in_one_generation(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    a.join()
    b.join()
    a.send_join()
    a.caller.is_kept_waiting()
    b.send_join()
    a.joined()
    b.joined()
    a.describe()
    leader, follower = (a, b) if a.is_leader else (b, a)
    follower.send_sync()
    follower.caller.is_kept_waiting()
    leader.sync(assignments=assign(a, b))
    follower.synced()
    a.describe()


@sequence
def join_of_a_second_member_starts_a_rebalance(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    a.settle()
    b.send_enter()
    b.caller.is_kept_waiting()
    a.heartbeat()
    a.describe()
    a.commit((0, 3))
    a.sync()
    a.join()
    b.joined()
    a.describe()
    a.commit((0, 4))
    b.commit((0, 4))
    a.heartbeat()
    b.heartbeat()
    a.sync(assignments=assign(a, b))
    b.sync()
    b.commit((0, 5))
    a.fetch()


@sequence
def join_of_the_leader_again_starts_a_rebalance(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    leader.caller.is_kept_waiting()
    follower.heartbeat()
    follower.join()
    leader.joined()
    follower.send_sync()
    leader.sync(assignments=assign(leader, follower))
    follower.synced()


@sequence
def join_of_a_follower_again_changes_nothing(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    follower.join()
    follower.join(7)
    leader.heartbeat()
    follower.describe()


@sequence
def join_of_a_follower_with_other_metadata_starts_a_rebalance(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    follower.protocols = (("range", SUBSCRIPTION + b"\0"),)
    follower.send_join()
    leader.heartbeat_until_rebalance()
    leader.join()
    follower.joined()
    leader.describe()


@sequence
def join_again_while_assignments_are_awaited(talk: Talk) -> None:
    a, b = stable_pair(talk)
    a.send_join()
    b.heartbeat_until_rebalance()
    b.join()
    a.joined()
    a.join()
    b.join()
    b.protocols = (("range", SUBSCRIPTION + b"\0"),)
    b.send_join()
    a.heartbeat_until_rebalance()
    a.join()
    b.joined()


@sequence
def join_of_a_single_leader_again(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.join()
    member.describe()
    member.heartbeat()
    member.sync(assignments={member.member_id: b"again"})
    member.join(member_id=member.member_id)
    member.describe()


@sequence
def join_votes_for_a_protocol(talk: Talk) -> None:
    """Two against one: which of two with as many votes is taken depends on Scala's hash maps."""
    a = Member(talk, "a", protocols=(("range", b"1"), ("sticky", b"2"), ("roundrobin", b"3")))
    b = Member(talk, "b", protocols=(("roundrobin", b"4"), ("range", b"5")))
    c = Member(talk, "c", protocols=(("cooperative", b"6"), ("roundrobin", b"7"), ("range", b"8")))
    for member in (a, b, c):
        member.join(7)
    for member in (a, b, c):
        member.send_join(7)
        member.caller.is_kept_waiting()
    for member in (a, b, c):
        member.joined()
    a.describe()
    a.sync(5, assignments=assign(a, b, c), protocol_name="range")
    a.sync(5, assignments=assign(a, b, c), protocol_name="roundrobin")
    a.describe()


@sequence
def join_of_one_too_many(talk: Talk) -> None:
    members = [Member(talk, name) for name in "abc"]
    for member in members:
        member.join()
    for member in members:
        member.send_join()
        member.caller.is_kept_waiting()
    for member in members:
        member.joined()
    late = Member(talk, "d")
    late.join(3)
    late.join(5)
    late.join(7)
    late.describe()


@sequence
def join_of_one_too_many_into_a_stable_group(talk: Talk) -> None:
    members = [Member(talk, name) for name in "abc"]
    for member in members:
        member.join()
    for member in members:
        member.send_join()
        member.caller.is_kept_waiting()
    for member in members:
        member.joined()
    leader = next(member for member in members if member.is_leader)
    leader.sync(assignments=assign(*members))
    for member in members:
        if member is not leader:
            member.sync()
    late = Member(talk, "d")
    late.join(3)
    late.join(5)
    members[0].heartbeat()
    members[1].leave()
    late.member_id = ""
    late.send_enter()
    members[0].heartbeat_until_rebalance()


@sequence
def join_of_members_that_do_not_come_again_ends_their_membership(talk: Talk) -> None:
    a, b = Member(talk, "a", rebalance=300), Member(talk, "b", rebalance=300)
    stable_pair(talk, first=a, second=b)
    b.send_join(member_id=b.member_id, protocols=[{"name": "range", "metadata": b"other"}])
    b.caller.is_kept_waiting()
    b.joined()
    b.describe()
    a.heartbeat()
    a.join()


@sequence
def join_without_a_client_id(talk: Talk) -> None:
    member = Member(talk, None)
    answer = member.join(3)
    talk.note("begins", answer.member_id[:5] == "null-")
    member.describe()


@sequence
def join_with_a_name_that_is_not_ascii(talk: Talk) -> None:
    member = Member(talk, "größe-消费者")
    member.settle()
    member.describe()


@sequence
def join_that_is_sent_again_from_another_connection(talk: Talk) -> None:
    """The client lost its connection while it waited, and asks again."""
    leader, follower = stable_pair(talk)
    follower.protocols = (("range", b"other"),)
    follower.send_join()
    leader.heartbeat_until_rebalance()
    again = Member(talk, "b", protocols=follower.protocols)
    again.member_id = follower.member_id
    again.send_join()
    again.caller.is_kept_waiting()
    follower.caller.is_kept_waiting()
    leader.join()
    again.joined()


@sequence
def join_of_an_id_that_is_never_used(talk: Talk) -> None:
    """The pending member blocks the rebalance until its session is over."""
    member = Member(talk)
    member.settle()
    pending = Member(talk, "b", session=300)
    pending.join()
    member.heartbeat()
    member.describe()
    member.send_join()
    member.caller.is_kept_waiting()
    member.joined()
    pending.join()


@sequence
def join_again_with_other_timeouts(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.session, member.rebalance = 15_000, 16_000
    member.join()
    member.sync(assignments={member.member_id: b"again"})


@sequence
def join_of_a_group_of_another_kind(talk: Talk) -> None:
    member = Member(talk, protocol_type="connect", protocols=(("compatible", b"\0\1"),))
    member.settle()
    member.describe()
    member.commit((0, 1))
    member.delete_offsets(0)
    member.delete_group()
