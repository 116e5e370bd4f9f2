"""DescribeGroups, ListGroups, DeleteGroups."""

from oracle.apis import Api
from oracle.member import Member, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk


def listed(talk: Talk, member: Member, version: int = 2, states: tuple[str, ...] | None = None) -> None:
    """What is listed of this sequence's groups; others have theirs."""
    values = {} if states is None else {"states_filter": states}
    member.caller.send(Api.LIST_GROUPS, version, **values)
    member.caller.receive_only(
        lambda answer: {
            "error": answer.error_code,
            "groups": [group for group in answer.groups if group.group_id.startswith(talk.group)],
        }
    )


@for_versions(0, 1, 2, 3, 4, 5)
def describe(talk: Talk, version: int) -> None:
    leader, follower = stable_pair(talk)
    leader.describe(version)
    leader.describe(version, talk.group, f"{talk.group}.none", "", talk.group)
    leader.caller.ask(Api.DESCRIBE_GROUPS, version, groups=())
    if version >= 3:
        names = (talk.group, f"{talk.group}.none")
        leader.caller.ask(Api.DESCRIBE_GROUPS, version, groups=names, include_authorized_operations=True)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.describe(version)
    follower.join()
    leader.joined()
    follower.describe(version)


@for_versions(0, 1, 2, 3, 4)
def list_all(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.settle()
    Member(talk, group=f"{talk.group}.offsets").commit((0, 1))
    emptied = Member(talk, group=f"{talk.group}.empty", protocol_type="connect")
    emptied.settle()
    emptied.leave()
    listed(talk, member, version)


@sequence
def list_by_state(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    Member(talk, group=f"{talk.group}.offsets").commit((0, 1))
    waiting = Member(talk, group=f"{talk.group}.waiting")
    waiting.enter()
    pending = Member(talk, group=f"{talk.group}.pending")
    pending.join()
    for states in (
        ("Stable",),
        ("stable",),
        ("Empty", "CompletingRebalance"),
        ("PreparingRebalance", "Dead"),
        ("no such state",),
        ("",),
        (),
    ):
        listed(talk, member, 4, states)


@for_versions(0, 1, 2)
def delete(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.delete_group(version)
    member.delete_group(version, "")
    member.settle()
    member.commit((0, 1), (1, 2))
    member.delete_group(version)
    member.leave()
    member.delete_group(version, talk.group, f"{talk.group}.none", "")
    member.describe()
    member.fetch()
    member.delete_group(version)
    listed(talk, member)


@sequence
def delete_a_group_that_has_only_offsets(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1), (1, 2))
    member.delete_group()
    member.fetch()
    member.describe()
    member.commit((0, 3))
    member.fetch()


@sequence
def delete_a_group_twice_in_one_request(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1))
    member.delete_group(1, talk.group, talk.group)
    member.caller.ask(Api.DELETE_GROUPS, 1, groups_names=())


@sequence
def delete_a_group_in_every_state(talk: Talk) -> None:
    member = Member(talk)
    member.join()
    member.delete_group()
    member.send_join()
    member.caller.is_kept_waiting()
    other = Member(talk, "b")
    other.delete_group()
    member.joined()
    other.delete_group()
    member.sync()
    other.delete_group()
    member.leave()
    other.delete_group()


@sequence
def delete_a_group_and_begin_again(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.commit((0, 1))
    member.leave()
    member.delete_group()
    member.heartbeat()
    member.sync()
    member.join()
    fresh = Member(talk, "b")
    fresh.settle()
    fresh.describe()
    fresh.fetch()
