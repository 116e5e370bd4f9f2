"""SyncGroup."""

from oracle.member import Member, assign, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk


@for_versions(0, 1, 2, 3, 4, 5)
def sync_refused(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.sync(version)
    member.sync(version, group_id="")
    member.settle()
    member.sync(version, member_id="nobody")
    member.sync(version, generation_id=0)
    member.sync(version, generation_id=2)
    member.sync(version, generation_id=-1)
    member.sync(version)


@sequence
def sync_of_an_id_that_has_not_joined(talk: Talk) -> None:
    member = Member(talk)
    member.join()
    member.sync(generation_id=1)
    member.describe()


@sequence
def sync_without_its_protocol(talk: Talk) -> None:
    member = Member(talk)
    member.settle(7)
    member.sync(5, protocol_type=None)
    member.sync(5, protocol_name=None)
    member.sync(5, protocol_type=None, protocol_name=None)
    member.sync(5, protocol_type="connect")
    member.sync(5, protocol_name="sticky")
    member.sync(5, protocol_type="", protocol_name="")
    member.sync(5, protocol_name=None, group_id="")
    member.sync(5)
    member.heartbeat()


@sequence
def sync_during_a_rebalance(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.sync()
    follower.sync(5)
    follower.join()
    leader.joined()


@sequence
def sync_of_a_follower_waits_for_the_leader(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.join()
    leader.joined()
    follower.send_sync(5)
    follower.caller.is_kept_waiting()
    leader.heartbeat()
    leader.describe()
    leader.sync(5, assign(leader, follower))
    follower.synced()
    leader.describe()


@sequence
def sync_is_interrupted_by_a_rebalance(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.join()
    leader.joined()
    follower.send_sync()
    follower.caller.is_kept_waiting()
    third = Member(talk, "c")
    third.send_enter()
    follower.synced()
    leader.heartbeat_until_rebalance()


@sequence
def sync_again_tells_the_same(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    follower.sync()
    leader.sync(assignments={leader.member_id: b"something else"})
    leader.sync(5)
    leader.describe()


@sequence
def sync_of_a_leader_that_forgets_somebody(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.join()
    leader.joined()
    leader.sync(assignments={leader.member_id: b"everything", "nobody": b"nothing"})
    follower.sync()
    leader.describe()


@sequence
def sync_without_any_assignment(talk: Talk) -> None:
    member = Member(talk)
    member.enter()
    member.sync()
    member.describe()
    member.commit((0, 1))


@sequence
def sync_that_is_sent_again_from_another_connection(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.join()
    leader.joined()
    follower.send_sync()
    follower.caller.is_kept_waiting()
    again = Member(talk, "b")
    again.member_id, again.generation = follower.member_id, follower.generation
    again.send_sync()
    again.caller.is_kept_waiting()
    follower.caller.is_kept_waiting()
    leader.sync(assignments=assign(leader, follower))
    again.synced()


@sequence
def sync_that_never_comes(talk: Talk) -> None:
    """Heartbeats alone keep nobody in a group that waits for an assignment (KAFKA-12890)."""
    member = Member(talk, rebalance=250)
    member.enter()
    member.heartbeat()
    talk.wait(500)
    member.heartbeat()
    member.describe()
