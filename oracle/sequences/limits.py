"""Writes that the log of the offsets topic refuses, because the topic's settings were changed under it."""

from typing import Any

from oracle.apis import Api
from oracle.member import Member, stable_pair
from oracle.sequences import sequence
from oracle.sequences.txn_offset_commit import Producer, fetch_until_stable
from oracle.talk import Talk

TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
LONG = "m" * 64


def long_commit(group: str) -> dict[str, Any]:
    partitions = [{"partition_index": n, "committed_offset": 1, "committed_metadata": LONG} for n in range(3)]
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": "orders", "partitions": partitions}],
    }


class TightTopic:
    """The offsets topic with another setting, for a while: long enough for Kafka to hear of it."""

    def __init__(self, talk: Talk, name: str, value: str) -> None:
        self._caller = talk.client("admin")
        self._name, self._value = name, value

    def __enter__(self) -> None:
        self.alter(SET)
        self._await(lambda error: error != 0)

    def __exit__(self, *_: object) -> None:
        self.alter(DELETE)
        self._await(lambda error: error == 0)

    def alter(self, operation: int) -> None:
        config = {"name": self._name, "config_operation": operation, "value": self._value}
        resource = {"resource_type": TOPIC_RESOURCE, "resource_name": "__consumer_offsets", "configs": [config]}
        self._caller.ask(Api.INCREMENTAL_ALTER_CONFIGS, 0, resources=[resource])

    def _await(self, holds: Any) -> None:
        """Kafka hears of a new setting a little later."""
        self._caller.ask_until(
            lambda answer: holds(answer.topics[0].partitions[0].error_code.value),
            Api.OFFSET_COMMIT,
            7,
            **long_commit("probe"),
        )


@sequence
def limit_of_a_commit(talk: Talk) -> None:
    member = Member(talk)
    member.commit((0, 1))
    with TightTopic(talk, "max.message.bytes", "400"):
        member.caller.ask(Api.OFFSET_COMMIT, 7, **long_commit(talk.group))
        member.fetch(0, 1, 2, version=7, require_stable=True)
        member.commit((0, 2))
    member.fetch()


@sequence
def limit_of_a_transactional_commit(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    with TightTopic(talk, "max.message.bytes", "400"):
        producer.commit_offsets(topics=long_commit("")["topics"])
        member.fetch(0, 1, 2, version=7, require_stable=True)
        producer.commit_offsets((0, 4))
    producer.end(commit=True)
    fetch_until_stable(member, 0, 1, 2)
    producer.until_ended()


@sequence
def limit_of_an_assignment(talk: Talk) -> None:
    leader, follower = stable_pair(talk)
    with TightTopic(talk, "max.message.bytes", "400"):
        leader.send_join()
        follower.heartbeat_until_rebalance()
        follower.join()
        leader.joined()
        follower.send_sync()
        follower.caller.is_kept_waiting()
        leader.sync(assignments={leader.member_id: b"x" * 400})
        follower.synced()
        leader.heartbeat()
        leader.describe()


@sequence
def limit_of_a_static_member_that_comes_back(talk: Talk) -> None:
    member = Member(talk, instance="one")
    member.settle()
    with TightTopic(talk, "max.message.bytes", "300"):
        back = Member(talk, "b", instance="one", protocols=(("range", b"x" * 300),))
        back.join(protocols=[{"name": "range", "metadata": member.protocols[0][1]}])
        again = Member(talk, "c" * 200, instance="one")
        again.join()
        member.heartbeat()
        member.describe()


@sequence
def limit_of_replicas(talk: Talk) -> None:
    """More replicas in sync are wanted than there are."""
    member = Member(talk)
    tight = TightTopic(talk, "min.insync.replicas", "2")
    tight.alter(SET)
    talk.wait(700)
    member.commit((0, 1))
    member.fetch(0, version=7, require_stable=True)
    tight.alter(DELETE)
    talk.wait(700)
    member.commit((0, 2))
    member.fetch(0)
