"""LeaveGroup."""

from oracle.apis import Api
from oracle.member import Member, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk


@for_versions(0, 1, 2, 3, 4)
def leave_refused(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.leave(version)
    member.leave(version, group_id="")
    member.member_id = "nobody"
    member.leave(version)
    member.member_id = ""
    member.settle()
    member.leave(version)
    member.leave(version)


@sequence
def leave_of_a_follower(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    follower.leave()
    leader.heartbeat()
    leader.describe()
    leader.join()
    leader.describe()


@sequence
def leave_of_the_leader(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.leave(3)
    follower.heartbeat()
    follower.join()
    follower.sync(assignments={follower.member_id: b"all of it"})
    follower.describe()


@sequence
def leave_of_one_that_waits_to_join(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    follower.protocols = (("range", b"other"),)
    follower.send_join()
    leader.heartbeat_until_rebalance()
    leader.caller.ask(Api.LEAVE_GROUP, 2, group_id=talk.group, member_id=follower.member_id)
    follower.joined()
    leader.join()


@sequence
def leave_of_one_that_waits_for_its_assignment(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.join()
    leader.joined()
    follower.send_sync()
    follower.caller.is_kept_waiting()
    leader.caller.ask(Api.LEAVE_GROUP, 2, group_id=talk.group, member_id=follower.member_id)
    follower.caller.is_kept_waiting()
    leader.join()


@sequence
def leave_of_an_id_that_has_not_joined(talk: Talk) -> None:
    member, pending = Member(talk), Member(talk, "b")
    member.settle()
    pending.join()
    pending.leave()
    member.heartbeat()
    member.describe()
    pending.join()


@sequence
def leave_of_an_id_that_has_not_joined_ends_the_waiting(talk: Talk) -> None:
    member, pending = Member(talk), Member(talk, "b")
    member.settle()
    pending.join()
    member.send_join()
    member.caller.is_kept_waiting()
    pending.leave(3)
    member.joined()


@sequence
def leave_of_everybody_at_once(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.commit((0, 1), (1, 2))
    leaving = [{"member_id": member.member_id, "group_instance_id": None} for member in (leader, follower)]
    leader.caller.ask(Api.LEAVE_GROUP, 4, group_id=talk.group, members=leaving)
    leader.describe()
    leader.fetch()


@sequence
def leave_of_nobody(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.caller.ask(Api.LEAVE_GROUP, 3, group_id=talk.group, members=[])
    member.caller.ask(Api.LEAVE_GROUP, 4, group_id=f"{talk.group}.none", members=[])
    member.heartbeat()


@sequence
def leave_twice_in_one_request(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    leaving = [{"member_id": member.member_id, "group_instance_id": None}] * 2
    member.caller.ask(Api.LEAVE_GROUP, 3, group_id=talk.group, members=leaving)


@sequence
def leave_and_begin_again(talk: Talk) -> None:
    first, second = Member(talk), Member(talk, "b", protocol_type="other kind", protocols=(("x", b""),))
    first.settle()
    first.leave()
    second.settle()
    second.describe()
    second.leave()
    second.describe()
