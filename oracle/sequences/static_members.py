"""Static members (KIP-345): those that come back under the same instance id."""

from oracle.apis import Api
from oracle.member import Member, assign, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk


def static_pair(talk: Talk, **kinds: int) -> tuple[Member, Member]:
    return stable_pair(
        talk, first=Member(talk, "a", instance="one", **kinds), second=Member(talk, "b", instance="two", **kinds)
    )


@for_versions(5, 6, 7)
def static_life(talk: Talk, version: int) -> None:
    member = Member(talk, instance="one")
    member.enter(version)
    member.sync(version - 2, {member.member_id: b"all of it"})
    member.heartbeat(min(version - 2, 4))
    member.describe()
    member.commit((0, 1))
    member.leave(min(version - 2, 4))
    member.describe()


@sequence
def static_follower_comes_back_without_a_rebalance(talk: Talk) -> None:
    leader, follower = static_pair(talk)
    back = Member(talk, "c", instance="two")
    back.join()
    back.describe()
    leader.heartbeat()
    back.sync()
    back.heartbeat()
    follower.heartbeat()
    back.commit((1, 2))
    back.fetch()


@sequence
def static_leader_comes_back_without_a_rebalance(talk: Talk) -> None:
    _, follower = static_pair(talk)
    back = Member(talk, "c", instance="one")
    back.join()
    back.describe()
    follower.heartbeat()
    back.sync(assignments={back.member_id: b"other"})
    follower.sync()


@sequence
def static_member_that_was_replaced_is_fenced(talk: Talk) -> None:
    _, follower = static_pair(talk)
    back = Member(talk, "c", instance="two")
    back.join(7)
    follower.join()
    follower.sync()
    follower.heartbeat()
    follower.commit((0, 1))
    follower.leave(3)
    follower.caller.ask(
        Api.TXN_OFFSET_COMMIT,
        3,
        transactional_id=talk.group,
        group_id=talk.group,
        producer_id=4000,
        producer_epoch=0,
        generation_id=follower.generation,
        member_id=follower.member_id,
        group_instance_id="two",
        topics=[{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    )
    follower.heartbeat(2)
    follower.leave(2)


@sequence
def static_member_with_a_wrong_id_is_fenced(talk: Talk) -> None:
    leader, _ = static_pair(talk)
    leader.heartbeat(member_id="wrong")
    leader.sync(member_id="wrong")
    leader.commit((0, 1), member_id="wrong")
    leader.send_join(member_id="wrong")
    leader.caller.receive()
    leader.caller.ask(
        Api.LEAVE_GROUP, 3, group_id=talk.group, members=[{"member_id": "wrong", "group_instance_id": "one"}]
    )


@sequence
def static_instance_that_nobody_knows(talk: Talk) -> None:
    leader, _ = static_pair(talk)
    leader.heartbeat(group_instance_id="three")
    leader.sync(group_instance_id="three")
    leader.commit((0, 1), group_instance_id="three")
    leader.send_join(group_instance_id="three")
    leader.caller.receive()
    leader.caller.ask(
        Api.LEAVE_GROUP,
        3,
        group_id=talk.group,
        members=[{"member_id": leader.member_id, "group_instance_id": "three"}],
    )
    leader.describe_until_members(1)


@sequence
def static_member_comes_back_with_other_protocols(talk: Talk) -> None:
    leader, _ = static_pair(talk)
    back = Member(talk, "c", instance="two", protocols=(("range", b"other"),))
    back.send_join()
    leader.heartbeat_until_rebalance()
    leader.join()
    back.joined()
    leader.describe()


@sequence
def static_member_comes_back_with_another_choice_of_protocols(talk: Talk) -> None:
    leader, _ = static_pair(talk)
    back = Member(talk, "c", instance="two", protocols=(("sticky", b"other"),))
    back.join()
    leader.heartbeat()


@sequence
def static_member_comes_back_with_other_timeouts(talk: Talk) -> None:
    static_pair(talk)
    back = Member(talk, "c", instance="two", session=15_000, rebalance=16_000)
    back.join()
    back.describe()


@sequence
def static_member_comes_back_during_a_rebalance(talk: Talk) -> None:
    """Its parked join is told that it was fenced."""
    leader, follower = static_pair(talk)
    third = Member(talk, "c", instance="three")
    third.send_join()
    follower.heartbeat_until_rebalance()
    follower.send_join()
    follower.caller.is_kept_waiting()
    back = Member(talk, "d", instance="two")
    back.send_join()
    follower.joined()
    back.caller.is_kept_waiting()
    leader.join()
    back.joined()
    third.joined()
    leader.describe()


@sequence
def static_member_comes_back_while_assignments_are_awaited(talk: Talk) -> None:
    leader, follower = static_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.join()
    leader.joined()
    follower.send_sync()
    follower.caller.is_kept_waiting()
    back = Member(talk, "c", instance="two")
    back.send_join()
    follower.synced()
    leader.heartbeat_until_rebalance()
    leader.join()
    back.joined()


@sequence
def static_members_that_leave_together(talk: Talk) -> None:
    leader, follower = static_pair(talk)
    leaving = [
        {"member_id": "", "group_instance_id": "one"},
        {"member_id": "", "group_instance_id": "nobody"},
        {"member_id": "wrong", "group_instance_id": "two"},
        {"member_id": "nobody", "group_instance_id": None},
        {"member_id": "", "group_instance_id": None},
        {"member_id": follower.member_id, "group_instance_id": "two"},
    ]
    leader.caller.ask(Api.LEAVE_GROUP, 3, group_id=talk.group, members=leaving)
    leader.describe()
    leader.caller.ask(Api.LEAVE_GROUP, 4, group_id=talk.group, members=leaving)


@sequence
def static_member_that_is_gone_for_too_long(talk: Talk) -> None:
    member = Member(talk, instance="one", session=200)
    member.settle()
    member.describe_until("Empty")
    member.heartbeat()
    member.commit((0, 1))
    member.leave(3)
    member.join()


@sequence
def static_leader_that_is_gone_for_too_long(talk: Talk) -> None:
    leader = Member(talk, "a", instance="one", session=400)
    follower = Member(talk, "b", instance="two")
    stable_pair(talk, first=leader, second=follower)
    follower.heartbeat_until_rebalance()
    follower.join()
    follower.sync(assignments=assign(follower))
    follower.describe()
    leader.heartbeat()


@sequence
def static_members_do_not_come_again_but_stay(talk: Talk) -> None:
    """A rebalance that times out goes on without removing static members."""
    leader, follower = static_pair(talk, rebalance=300)
    leader.send_join()
    leader.caller.is_kept_waiting()
    leader.joined()
    leader.describe()
    follower.heartbeat()


@sequence
def static_members_none_of_whom_comes_again(talk: Talk) -> None:
    leader, follower = static_pair(talk, rebalance=300)
    third = Member(talk, "c", rebalance=300)
    third.send_enter()
    leader.heartbeat_until_rebalance()
    third.leave()
    third.joined()
    leader.describe()
    follower.heartbeat()


@sequence
def static_member_is_one_too_many(talk: Talk) -> None:
    members = [Member(talk, name, instance=name) for name in "abc"]
    for member in members:
        member.send_join()
        member.caller.is_kept_waiting()
    for member in members:
        member.joined()
    Member(talk, "d", instance="d").join()
    members[0].describe()


@sequence
def static_member_comes_back_into_an_empty_group(talk: Talk) -> None:
    member = Member(talk, instance="one")
    member.settle()
    member.leave(3)
    back = Member(talk, "b", instance="one")
    back.settle()
    back.describe()
    member.heartbeat()
