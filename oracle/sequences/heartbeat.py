"""Heartbeat."""

from oracle.member import Member, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk


@for_versions(0, 1, 2, 3, 4)
def heartbeat_refused(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.heartbeat(version)
    member.heartbeat(version, group_id="")
    member.settle()
    member.heartbeat(version, member_id="nobody")
    member.heartbeat(version, member_id="")
    member.heartbeat(version, generation_id=0)
    member.heartbeat(version, generation_id=7)
    member.heartbeat(version, generation_id=-1)
    member.heartbeat(version)


@sequence
def heartbeat_of_an_id_that_has_not_joined(talk: Talk) -> None:
    member = Member(talk)
    member.join()
    member.heartbeat()
    member.heartbeat(generation_id=0)


@sequence
def heartbeat_while_assignments_are_awaited(talk: Talk) -> None:
    member = Member(talk)
    member.enter()
    member.heartbeat()
    member.heartbeat(generation_id=2)


@sequence
def heartbeat_during_a_rebalance(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.heartbeat()
    follower.heartbeat(generation_id=1)
    follower.heartbeat(member_id="nobody")


@sequence
def heartbeat_of_an_empty_group(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.leave()
    member.heartbeat()
    member.heartbeat(generation_id=-1, member_id="")


@sequence
def heartbeat_that_comes_too_late(talk: Talk) -> None:
    member = Member(talk, session=150)
    member.settle()
    member.commit((0, 1))
    member.describe_until("Empty")
    member.heartbeat()
    member.sync()
    member.commit((0, 2))
    member.join()
    member.fetch()


@sequence
def heartbeat_of_one_that_stays_when_another_goes_silent(talk: Talk) -> None:
    leader, follower = stable_pair(talk, first=Member(talk, "a"), second=Member(talk, "b", session=300))
    leader.heartbeat_until_rebalance()
    leader.describe()
    follower.heartbeat()
    leader.join()


@sequence
def heartbeat_of_a_group_that_has_only_offsets(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1))
    member.heartbeat()
    member.heartbeat(generation_id=0)
    member.sync()
