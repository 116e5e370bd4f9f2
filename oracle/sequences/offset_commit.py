"""OffsetCommit and OffsetFetch."""

from typing import Any

from oracle.apis import Api
from oracle.member import Member, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk


def one_partition(offset: int, metadata: str | None = "", index: int = 0, **more: Any) -> list[dict[str, Any]]:
    partition = {"partition_index": index, "committed_offset": offset, "committed_metadata": metadata, **more}
    return [{"name": "orders", "partitions": [partition]}]


@for_versions(2, 3, 4, 5, 6, 7, 8)
def commit_without_a_group(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.commit((0, 5), (2, 7), version=version)
    member.commit((0, 6), version=version)
    member.describe()
    member.fetch()
    member.commit((0, 1), version=version, group_id="")
    member.commit((0, 1), version=version, generation_id_or_member_epoch=3)
    member.commit((0, 1), version=version, member_id="nobody")
    member.commit((0, 1), version=version, member_id="nobody", generation_id_or_member_epoch=0)


@for_versions(2, 3, 4, 5, 6, 7, 8)
def commit_of_a_member(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.settle()
    member.commit((0, 5), version=version)
    member.commit((0, 6), version=version, generation_id_or_member_epoch=0)
    member.commit((0, 6), version=version, generation_id_or_member_epoch=2)
    member.commit((0, 6), version=version, member_id="nobody")
    member.commit((0, 6), version=version, member_id="", generation_id_or_member_epoch=-1)
    member.commit((0, 6), version=version, generation_id_or_member_epoch=-1)
    member.fetch()


@for_versions(2, 3, 4)
def commit_that_is_to_be_kept_for_some_time(talk: Talk, version: int) -> None:
    member = Member(talk)
    member.commit((0, 5), version=version, retention_time=86_400_000)
    member.commit((1, 5), version=version, retention_time=-1)
    member.commit((2, 5), version=version, retention_time=0)
    member.fetch(0, 1)


@sequence
def commit_for_partitions_that_are_not_there(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1), topic="no such topic")
    member.commit((0, 1), (3, 1), (-1, 1), (99, 1))
    member.commit((0, 1), topic="__consumer_offsets")
    member.fetch()
    member.commit((3, 1))
    member.commit((3, 1), group_id="")
    member.commit((3, 1), member_id="nobody", generation_id_or_member_epoch=4)


@sequence
def commit_of_too_much_metadata(talk: Talk) -> None:
    member = Member(talk)
    member.commit(topics=one_partition(1, "m" * 64))
    member.commit(topics=one_partition(2, "m" * 65))
    member.commit(topics=one_partition(3, "ü" * 33))
    member.commit(topics=one_partition(4, None))
    member.fetch()


@sequence
def commit_of_some_too_much_metadata(talk: Talk) -> None:
    member = Member(talk)
    partitions = [
        {"partition_index": 0, "committed_offset": 1, "committed_metadata": "fits"},
        {"partition_index": 1, "committed_offset": 2, "committed_metadata": "m" * 65},
        {"partition_index": 9, "committed_offset": 3, "committed_metadata": ""},
    ]
    member.commit(topics=[{"name": "orders", "partitions": partitions}])
    member.fetch()
    member.fetch(0, version=7, require_stable=True)


@sequence
def commit_of_too_much_metadata_leaves_nothing_pending(talk: Talk) -> None:
    member = Member(talk)
    partitions = [
        {"partition_index": 0, "committed_offset": 1, "committed_metadata": "fits"},
        {"partition_index": 1, "committed_offset": 2, "committed_metadata": "m" * 65},
    ]
    member.commit(topics=[{"name": "orders", "partitions": partitions}])
    member.fetch(0, 1, version=7, require_stable=True)


@sequence
def commit_of_odd_values(talk: Talk) -> None:
    member = Member(talk)
    member.commit(topics=one_partition(-1, "minus one"))
    member.commit(topics=one_partition(-5, "less"))
    member.commit(topics=one_partition(2**63 - 1, "most"))
    member.commit(topics=one_partition(1, "epoch", committed_leader_epoch=7))
    member.commit(topics=one_partition(1, "epoch", committed_leader_epoch=-9))
    member.fetch()
    member.fetch(version=1, topics=[{"name": "orders", "partition_indexes": [0]}])
    member.commit((1, 5), (1, 6))
    member.fetch(1)
    member.commit(topics=[])
    member.commit(topics=[{"name": "orders", "partitions": []}])
    member.commit(topics=[*one_partition(11), *one_partition(12, index=1)])
    member.fetch()


@sequence
def commit_of_nothing(talk: Talk) -> None:
    member = Member(talk)
    member.commit(topics=[])
    member.commit(topics=[], group_id="")
    member.commit(topics=[{"name": "orders", "partitions": []}])
    member.describe()


@sequence
def commit_during_a_rebalance(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    leader.send_join()
    follower.heartbeat_until_rebalance()
    follower.commit((0, 1))
    follower.commit((0, 1), generation_id_or_member_epoch=1)
    follower.join()
    leader.joined()
    follower.commit((0, 2))
    leader.commit((0, 2))
    leader.commit((0, 2), generation_id_or_member_epoch=1)
    leader.fetch()


@sequence
def commit_of_a_member_that_went(talk: Talk) -> None:
    member = Member(talk)
    member.settle()
    member.leave()
    member.commit((0, 1))
    member.commit((0, 1), member_id="", generation_id_or_member_epoch=-1)
    member.commit((0, 2), member_id="", generation_id_or_member_epoch=member.generation)
    member.commit((0, 3), generation_id_or_member_epoch=-1)
    member.fetch()


@sequence
def commit_of_an_id_that_has_not_joined(talk: Talk) -> None:
    member = Member(talk)
    member.join()
    member.commit((0, 1))
    member.commit((0, 1), generation_id_or_member_epoch=0)
    member.commit((0, 2), member_id="")
    member.fetch()


@for_versions(1, 2, 3, 4, 5, 6, 7)
def fetch_of_offsets(talk: Talk, version: int) -> None:
    member = Member(talk)
    if version >= 2:
        member.fetch(version=version)
    member.fetch(0, version=version)
    member.commit(topics=one_partition(5, "hello"))
    member.commit(topics=one_partition(6, "", index=1, committed_leader_epoch=3))
    member.fetch(0, 1, 2, 3, -1, version=version)
    member.fetch(0, version=version, topic="no such topic")
    member.fetch(0, version=version, group_id="")
    member.fetch(0, version=version, group_id=f"{talk.group}.none")
    member.fetch(version=version, topics=[])
    member.fetch(version=version, topics=[{"name": "orders", "partition_indexes": []}])
    member.fetch(version=version, topics=[{"name": "orders", "partition_indexes": [0, 0]}])
    if version >= 2:
        member.fetch(version=version)
        member.fetch(version=version, group_id="")


@sequence
def fetch_of_offsets_whose_topic_is_deleted(talk: Talk) -> None:
    member = Member(talk)
    topic = {"name": f"{talk.name}.topic", "num_partitions": 2, "replication_factor": 1}
    member.caller.ask(Api.CREATE_TOPICS, 4, topics=[topic], timeout=20_000)
    member.commit((0, 3), (1, 4), topic=topic["name"])
    member.commit((0, 5))
    member.caller.ask(Api.DELETE_TOPICS, 3, topic_names=[topic["name"]], timeout=20_000)
    member.caller.ask_until(
        lambda answer: [topic.name for topic in answer.topics] == ["orders"],
        Api.OFFSET_FETCH,
        5,
        group_id=talk.group,
        topics=None,
    )
    member.commit((0, 3), topic=topic["name"])
    member.describe()


@sequence
def fetch_of_offsets_of_a_group_that_only_offsets_kept(talk: Talk) -> None:
    """When the topic of its last offset is deleted, the group is gone."""
    member = Member(talk)
    topic = {"name": f"{talk.name}.topic", "num_partitions": 1, "replication_factor": 1}
    member.caller.ask(Api.CREATE_TOPICS, 4, topics=[topic], timeout=20_000)
    member.commit((0, 3), topic=topic["name"])
    member.describe()
    member.caller.ask(Api.DELETE_TOPICS, 3, topic_names=[topic["name"]], timeout=20_000)
    member.describe_until("Dead")
    member.fetch()
