"""OffsetDelete (KIP-496)."""

from oracle.apis import Api
from oracle.member import Member
from oracle.sequences import sequence
from oracle.sequences.txn_offset_commit import Producer
from oracle.talk import Talk

OTHER_TOPIC = b"\0\0\0\0\0\1\0\5other\xff\xff\xff\xff"
"""A subscription to a topic that is not there."""


@sequence
def delete_offsets_of_a_group_without_members(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1), (1, 2), (2, 3))
    member.delete_offsets(0, 1)
    member.fetch()
    member.delete_offsets(0)
    member.describe()


@sequence
def delete_the_last_offset_of_a_group(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1))
    member.delete_offsets(0)
    member.describe()
    member.delete_offsets(0)


@sequence
def delete_the_last_offset_of_a_group_that_had_members(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.commit((0, 1))
    member.leave()
    member.delete_offsets(0)
    member.describe()
    member.fetch()


@sequence
def delete_offsets_refused(talk: Talk) -> None:
    member = Member(talk)
    member.delete_offsets(0)
    member.group = ""
    member.delete_offsets(0)
    member.delete_offsets(7)
    member.group = talk.group
    member.commit((0, 1))
    member.delete_offsets(0, topic="no such topic")
    member.delete_offsets(0, 7, -1)
    member.delete_offsets()
    member.caller.ask(Api.OFFSET_DELETE, 0, group_id=talk.group, topics=[])
    member.describe()


@sequence
def delete_offsets_of_a_topic_that_is_read(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.commit((0, 1))
    member.delete_offsets(0, 1)
    member.fetch()


@sequence
def delete_offsets_of_a_topic_that_is_not_read_any_more(talk: Talk) -> None:
    member = Member(talk, protocols=(("range", OTHER_TOPIC),))
    member.settle()
    member.commit((0, 1), (1, 2))
    member.delete_offsets(0, 2)
    member.fetch()
    member.heartbeat()


@sequence
def delete_offsets_during_a_rebalance(talk: Talk) -> None:
    member = Member(talk)
    member.enter()
    member.delete_offsets(0)
    other = Member(talk, "b", protocols=(("range", OTHER_TOPIC),))
    other.send_enter()
    member.heartbeat_until_rebalance()
    member.delete_offsets(0)


@sequence
def delete_offsets_of_a_group_of_another_kind(talk: Talk) -> None:
    member = Member(talk, protocol_type="connect")
    member.settle()
    member.delete_offsets(0)
    member.leave()
    member.commit((0, 1), member_id="", generation_id_or_member_epoch=-1)
    member.delete_offsets(0)


@sequence
def delete_an_offset_that_is_pending(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    producer.commit_offsets((0, 7))
    member.commit((1, 8))
    member.delete_offsets(0)
    member.fetch(0, 1, version=7, require_stable=True)
    producer.end(commit=True)
    producer.until_ended()
    member.fetch()
