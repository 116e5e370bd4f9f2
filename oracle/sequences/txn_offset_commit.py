"""Offsets that are committed in transactions."""

from typing import Any

from oracle.apis import Api
from oracle.member import Member, stable_pair
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk

UNSTABLE = 88
CONCURRENT = 51


class Producer:
    """A transactional producer with its own connection."""

    def __init__(self, talk: Talk, name: str = "p", *, timeout: int = 30_000, group: str | None = None) -> None:
        self.talk = talk
        self.caller = talk.client(name)
        self.transactional_id = f"{talk.name}-{name}"
        self.group = talk.group if group is None else group
        self.timeout = timeout
        self.producer_id, self.epoch = -1, -1

    def init(self, version: int = 1, **changes: Any) -> Any:
        values = {"transactional_id": self.transactional_id, "transaction_timeout": self.timeout}
        answer = self.caller.ask(Api.INIT_PRODUCER_ID, version, **values | changes)
        if answer.error_code.value == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def until_ended(self) -> Any:
        """The next transaction can begin when all markers of the one before are written."""
        answer = self.caller.ask_until(
            lambda answer: answer.error_code.value != CONCURRENT,
            Api.INIT_PRODUCER_ID,
            1,
            transactional_id=self.transactional_id,
            transaction_timeout=self.timeout,
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def add_offsets(self, version: int = 1, **changes: Any) -> Any:
        return self.caller.ask(Api.ADD_OFFSETS_TO_TXN, version, **self._who() | {"group_id": self.group} | changes)

    def add_partitions(self, *partitions: int, version: int = 1, topic: str = "orders", **changes: Any) -> Any:
        values = {f"v3_and_below_{name}": value for name, value in self._who().items()}
        values["v3_and_below_topics"] = [{"name": topic, "partitions": partitions}]
        return self.caller.ask(Api.ADD_PARTITIONS_TO_TXN, version, **values | changes)

    def begin(self) -> None:
        self.init()
        self.add_offsets()

    def commit_offsets(self, *offsets: tuple[int, int], version: int = 2, topic: str = "orders", **changes: Any) -> Any:
        partitions = [{"partition_index": partition, "committed_offset": offset} for partition, offset in offsets]
        for partition in partitions if version >= 2 else ():
            partition["committed_leader_epoch"] = -1
        values = self._who() | {"group_id": self.group, "topics": [{"name": topic, "partitions": partitions}]}
        if version >= 3:
            values |= {"generation_id": -1, "member_id": "", "group_instance_id": None}
        return self.caller.ask(Api.TXN_OFFSET_COMMIT, version, **values | changes)

    def end(self, version: int = 1, *, commit: bool, **changes: Any) -> Any:
        return self.caller.ask(Api.END_TXN, version, **self._who() | {"committed": commit} | changes)

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }


def fetch_until_stable(member: Member, *partitions: int) -> None:
    member.caller.ask_until(
        lambda answer: all(
            partition.error_code.value != UNSTABLE for topic in answer.topics for partition in topic.partitions
        ),
        Api.OFFSET_FETCH,
        7,
        group_id=member.group,
        topics=[{"name": "orders", "partition_indexes": partitions}],
        require_stable=True,
    )


@for_versions(0, 1, 2, 3)
def txn_offsets_committed(talk: Talk, version: int) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    producer.commit_offsets((0, 5), (2, 6), version=version)
    member.fetch(0, 1, 2)
    member.fetch()
    member.fetch(0, 1, 2, version=7, require_stable=True)
    member.fetch(version=7, require_stable=True)
    member.describe()
    producer.end(commit=True)
    fetch_until_stable(member, 0, 1, 2)
    member.fetch()
    producer.until_ended()


@sequence
def txn_offsets_aborted(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    member.commit((0, 1))
    producer.begin()
    producer.commit_offsets((0, 5), (1, 6))
    member.fetch(0, version=7, require_stable=True)
    producer.end(commit=False)
    fetch_until_stable(member, 0, 1)
    producer.until_ended()
    member.fetch()


@sequence
def txn_offsets_of_a_group_that_had_nothing_aborted(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    producer.commit_offsets((0, 5))
    member.describe()
    member.delete_group()
    producer.end(commit=False)
    producer.until_ended()
    member.describe()
    member.delete_group()


@sequence
def txn_offsets_with_plain_commits_between(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    producer.commit_offsets((0, 5), (1, 5))
    member.commit((0, 9))
    member.fetch()
    member.fetch(0, version=7, require_stable=True)
    producer.end(commit=True)
    fetch_until_stable(member, 0, 1)
    member.fetch()


@sequence
def txn_offsets_of_two_producers(talk: Talk) -> None:
    one, two, member = Producer(talk, "p"), Producer(talk, "q"), Member(talk)
    one.begin()
    two.begin()
    one.commit_offsets((0, 5), (1, 5))
    two.commit_offsets((0, 6), (2, 6))
    two.end(commit=True)
    two.until_ended()
    member.fetch()
    member.fetch(0, 1, 2, version=7, require_stable=True)
    one.end(commit=True)
    one.until_ended()
    fetch_until_stable(member, 0, 1, 2)


@sequence
def txn_offsets_of_members(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    member.settle()
    producer.begin()
    who = {"member_id": member.member_id, "generation_id": member.generation}
    producer.commit_offsets((0, 1), version=3, **who)
    producer.commit_offsets((0, 2), version=3, **who | {"generation_id": 0})
    producer.commit_offsets((0, 2), version=3, **who | {"generation_id": 2})
    producer.commit_offsets((0, 2), version=3, **who | {"member_id": "nobody"})
    producer.commit_offsets((0, 2), version=3, **who | {"group_instance_id": "unknown"})
    producer.commit_offsets((1, 3), version=3, member_id=member.member_id)
    producer.commit_offsets((1, 4), version=3, generation_id=member.generation)
    producer.commit_offsets((1, 5), version=3)
    producer.commit_offsets((1, 6), version=2)
    producer.end(commit=True)
    fetch_until_stable(member, 0, 1)


@sequence
def txn_offsets_during_a_rebalance(talk: Talk) -> None:
    producer = Producer(talk)
    leader, follower = stable_pair(talk)
    producer.begin()
    leader.send_join()
    follower.heartbeat_until_rebalance()
    who = {"member_id": follower.member_id, "generation_id": follower.generation}
    producer.commit_offsets((0, 1), version=3, **who)
    producer.commit_offsets((0, 1))
    follower.join()
    leader.joined()
    producer.commit_offsets((0, 2), version=3, **who)
    producer.commit_offsets((0, 2), version=3, **who | {"generation_id": follower.generation})
    producer.commit_offsets((0, 3))
    producer.end(commit=True)
    fetch_until_stable(leader, 0)


@sequence
def txn_offsets_of_a_member_of_no_group(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    producer.commit_offsets((0, 1), version=3, member_id="nobody", generation_id=3)
    member.describe()
    producer.commit_offsets((0, 1), version=3, generation_id=3)
    producer.commit_offsets((0, 1), version=3, member_id="nobody")
    member.describe()


@sequence
def txn_offsets_refused(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    producer.commit_offsets((0, 1), group_id="")
    producer.commit_offsets((0, 1), topic="no such topic")
    producer.commit_offsets((0, 1), (3, 1), (-1, 1))
    producer.commit_offsets(topics=[])
    producer.commit_offsets(topics=[{"name": "orders", "partitions": []}])
    producer.commit_offsets((1, 1), (1, 2))
    long = {"partition_index": 2, "committed_offset": 1, "committed_metadata": "m" * 65}
    producer.commit_offsets(topics=[{"name": "orders", "partitions": [long]}])
    member.fetch(0, 1, version=7, require_stable=True)
    producer.end(commit=True)
    fetch_until_stable(member, 0, 1)


@sequence
def txn_offsets_with_too_much_metadata(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.begin()
    partitions = [
        {"partition_index": 0, "committed_offset": 1, "committed_metadata": "fits"},
        {"partition_index": 1, "committed_offset": 1, "committed_metadata": "m" * 65},
    ]
    producer.commit_offsets(topics=[{"name": "orders", "partitions": partitions}])
    member.fetch(0, 1, version=7, require_stable=True)
    producer.end(commit=True)
    fetch_until_stable(member, 0)
    member.fetch(0, 1, version=7, require_stable=True)


@sequence
def txn_offsets_without_adding_the_group(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    producer.init()
    producer.commit_offsets((0, 1))
    member.fetch(0, version=7, require_stable=True)
    producer.end(commit=True)


@sequence
def txn_offsets_of_a_producer_that_was_replaced(talk: Talk) -> None:
    old, new, member = Producer(talk), Producer(talk), Member(talk)
    old.begin()
    old.commit_offsets((0, 1))
    new.init()
    new.until_ended()
    old.commit_offsets((0, 2))
    old.add_offsets()
    old.end(commit=True)
    fetch_until_stable(member, 0)
    new.add_offsets()
    new.commit_offsets((0, 3))
    new.end(commit=True)
    fetch_until_stable(member, 0)
    new.until_ended()


@sequence
def txn_offsets_of_a_transaction_that_takes_too_long(talk: Talk) -> None:
    producer, member = Producer(talk, timeout=100), Member(talk)
    producer.begin()
    producer.commit_offsets((0, 1))
    fetch_until_stable(member, 0)
    producer.end(commit=True)
    producer.commit_offsets((0, 2))
    producer.add_offsets()
    member.describe()


@sequence
def txn_offsets_and_a_deletion_of_the_group(talk: Talk) -> None:
    producer, member = Producer(talk), Member(talk)
    member.commit((1, 1))
    producer.begin()
    producer.commit_offsets((0, 1))
    member.delete_group()
    member.describe()
    producer.end(commit=True)
    producer.until_ended()
    member.describe()
    member.fetch()
