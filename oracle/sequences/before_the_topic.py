"""Nobody coordinates anything yet: the offsets topic is not there."""

from oracle.apis import Api
from oracle.member import Member
from oracle.sequences import sequence
from oracle.talk import Talk

BEFORE_THE_TOPIC = frozenset(
    {
        "no-coordinator-for-members",
        "no-coordinator-for-offsets",
        "no-coordinator-for-admins",
        "first-search-for-a-coordinator",
    }
)


@sequence
def no_coordinator_for_members(talk: Talk) -> None:
    member = Member(talk)
    member.join()
    member.join(3)
    member.sync()
    member.heartbeat()
    member.leave()
    member.leave(3)


@sequence
def no_coordinator_for_offsets(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1))
    member.fetch(0, version=1)
    member.fetch(0)
    member.fetch()
    member.delete_offsets(0)
    member.caller.ask(
        Api.TXN_OFFSET_COMMIT,
        2,
        transactional_id="t",
        group_id=talk.group,
        producer_id=1,
        producer_epoch=0,
        topics=[{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    )


@sequence
def no_coordinator_for_admins(talk: Talk) -> None:
    member = Member(talk)
    member.describe()
    member.delete_group()
    member.caller.ask(Api.LIST_GROUPS, 2)
    member.caller.ask(Api.ADD_OFFSETS_TO_TXN, 1, transactional_id="t", producer_id=1, group_id=talk.group)
    member.caller.ask(Api.END_TXN, 1, transactional_id="t", producer_id=1)


@sequence
def first_search_for_a_coordinator(talk: Talk) -> None:
    caller = talk.client()
    caller.ask(Api.FIND_COORDINATOR, 2, key=talk.group, key_type=0)
    caller.ask(Api.FIND_COORDINATOR, 2, key=talk.group, key_type=1)
