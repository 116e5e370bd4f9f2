"""Who lives with the broker: members of groups, committers, transactions, and readers who look at what is there."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

from kohort.errors import ErrorCode
from tests.simulation.client import Client
from tests.simulation.ledger import Fenced, Joined, Key, Ledger, Outcome, Read, Removal, Synced, Write
from tests.simulation.network import Broken

TOPIC = "orders"
PARTITIONS = 4
_OFFSET_COMMIT, _OFFSET_FETCH, _JOIN, _HEARTBEAT, _LEAVE, _SYNC = 8, 9, 11, 12, 13, 14
_INIT_PRODUCER_ID, _ADD_OFFSETS, _END_TXN, _TXN_COMMIT, _OFFSET_DELETE = 22, 25, 26, 28, 47

_REFUSALS = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
"""Errors after which nothing has happened. After others nobody knows: what was appended may stay."""


class Actors:
    """Everybody of one run, and what they need."""

    def __init__(
        self, random: Random, ledger: Ledger, time: Callable[[], float], new_client: Callable[[str], Client]
    ) -> None:
        self.random, self.ledger, self.time, self.new_client = random, ledger, time, new_client
        self.offsets: Iterator[int] = count(1)
        self.answered = 0

    async def pause(self, longest_s: float) -> None:
        await asyncio.sleep(self.random.uniform(0.0, longest_s))


def outcome_of(errors: Sequence[int]) -> Outcome:
    if all(error == ErrorCode.NONE for error in errors):
        return Outcome.OK
    return Outcome.FAILED if all(error in _REFUSALS for error in errors) else Outcome.UNKNOWN


async def recorded(world: Actors, write: Write, asking: Awaitable[Any], errors: Callable[[Any], Sequence[int]]) -> Any:
    """Ask for something that takes effect, and note how it ended."""
    try:
        answer = await asking
    except Broken:
        return None
    world.answered += 1
    write.end(world.time(), outcome_of(errors(answer)))
    return answer


def commit_errors(answer: Any) -> list[int]:
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


def commit_values(group: str, offsets: dict[Key, int]) -> dict[str, Any]:
    partitions = [
        {"partition_index": partition, "committed_offset": offset, "committed_leader_epoch": -1}
        for (_, partition), offset in offsets.items()
    ]
    return {"group_id": group, "topics": [{"name": TOPIC, "partitions": partitions}]}


async def committer(world: Actors, name: str, group: str, times: int) -> None:
    """Commits for a group without members, one or more partitions at a time."""
    client = world.new_client(name)
    for _ in range(times):
        await world.pause(4.0)
        chosen = world.random.sample(range(PARTITIONS), world.random.randint(1, 3))
        write = world.ledger.write({(group, partition): next(world.offsets) for partition in chosen}, world.time())
        values = commit_values(group, write.offsets) | {"generation_id_or_member_epoch": -1, "member_id": ""}
        await recorded(world, write, client.ask(_OFFSET_COMMIT, 8, values), commit_errors)
    client.hang_up()


async def reader(world: Actors, name: str, groups: Sequence[str], times: int) -> None:
    """Looks at the offsets of groups, now this one, now that."""
    client = world.new_client(name)
    for _ in range(times):
        await world.pause(4.0)
        await look(world, client, world.random.choice(groups))
    client.hang_up()


async def look(world: Actors, client: Client, group: str) -> bool:
    """Read every partition of a group once; whether there was an answer."""
    began = world.time()
    topics = [{"name": TOPIC, "partition_indexes": list(range(PARTITIONS))}]
    try:
        answer = await client.ask(_OFFSET_FETCH, 6, {"group_id": group, "topics": topics})
    except Broken:
        return False
    if answer.error_code:
        return False
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.NONE:
                offset = None if partition.committed_offset == -1 else partition.committed_offset
                world.ledger.reads.append(Read((group, partition.partition_index), offset, began, world.time()))
    return True


async def transactor(world: Actors, name: str, group: str, times: int) -> None:
    """Commits offsets in transactions, which it commits, aborts or leaves alone."""
    client = world.new_client(name)
    producer: tuple[int, int] | None = None
    for _ in range(times):
        await world.pause(4.0)
        try:
            if producer is None:
                values = {"transactional_id": name, "transaction_timeout": 10_000, "producer_id": -1}
                began = await client.ask(_INIT_PRODUCER_ID, 3, values | {"producer_epoch": -1})
                if began.error_code:
                    continue
                producer = began.producer_id, began.producer_epoch
            if not await _transact(world, client, name, group, producer):
                producer = None
        except Broken:
            producer = None
    client.hang_up()


async def _transact(world: Actors, client: Client, name: str, group: str, producer: tuple[int, int]) -> bool:
    """One transaction; whether the producer may go on with another."""
    who = {"transactional_id": name, "producer_id": producer[0], "producer_epoch": producer[1]}
    added = await client.ask(_ADD_OFFSETS, 1, who | {"group_id": group})
    if added.error_code:
        return False
    chosen = world.random.sample(range(PARTITIONS), world.random.randint(1, 3))
    write = world.ledger.write({(group, partition): next(world.offsets) for partition in chosen}, world.time())
    values = commit_values(group, write.offsets) | who | {"generation_id": -1, "member_id": ""}
    try:
        answer = await client.ask(_TXN_COMMIT, 3, values)
    except Broken:
        # Whether it is in the transaction is not known; that will end without being committed by us.
        write.end(world.time(), Outcome.FAILED)
        raise
    if outcome_of(commit_errors(answer)) is not Outcome.OK:
        write.end(world.time(), Outcome.FAILED)
        return False
    await world.pause(1.0)
    is_commit = world.random.random() < 0.7
    if not is_commit:
        write.end(world.time(), Outcome.FAILED)
    ended = await recorded(
        world,
        write if is_commit else Write({}, world.time()),
        client.ask(_END_TXN, 1, who | {"committed": is_commit}),
        lambda answer: [answer.error_code],
    )
    # Committed is a decision; the markers follow. Until they stand nobody reads the offsets, and that is no violation.
    if is_commit and write.outcome is Outcome.OK:
        write.outcome, write.ended = Outcome.UNKNOWN, float("inf")
    return ended is not None and ended.error_code == ErrorCode.NONE


async def remover(world: Actors, name: str, groups: Sequence[str], times: int) -> None:
    """Deletes offsets of groups without members."""
    client = world.new_client(name)
    for _ in range(times):
        await world.pause(15.0)
        group, partition = world.random.choice(groups), world.random.randrange(PARTITIONS)
        removal = Removal((group, partition), world.time())
        world.ledger.removals.append(removal)
        topics = [{"name": TOPIC, "partitions": [{"partition_index": partition}]}]
        try:
            answer = await client.ask(_OFFSET_DELETE, 0, {"group_id": group, "topics": topics})
        except Broken:
            continue
        if answer.error_code in _REFUSALS:
            world.ledger.removals.remove(removal)
        elif answer.error_code == ErrorCode.NONE:
            removal.ended = world.time()
    client.hang_up()


async def member(world: Actors, name: str, group: str, times: int, instance: str | None = None) -> None:
    """A consumer: joins, gets its share, commits what it owns, and joins again when it is told to."""
    client = world.new_client(name)
    member_id, generation = "", -1
    share: frozenset[int] = frozenset()
    last = -1
    for _ in range(times):
        await world.pause(1.5)
        try:
            if generation < 0 and last >= 0 and share and world.random.random() < 0.2:
                # It has not noticed that the others have gone on without it, or with it.
                await _commit_share(world, client, group, member_id, last, share, instance)
            elif generation < 0:
                member_id, generation, share = await _join(world, client, group, member_id, instance, share)
            elif share and world.random.random() < 0.6:
                generation = await _commit_share(world, client, group, member_id, generation, share, instance)
            else:
                who = {"group_id": group, "generation_id": generation, "member_id": member_id}
                beat = await client.ask(_HEARTBEAT, 3, who | {"group_instance_id": instance})
                world.answered += 1
                if beat.error_code:
                    last, generation = generation, -1
                if beat.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                    member_id = ""
        except Broken:
            last, generation = max(last, generation), -1
    if world.random.random() < 0.5:
        client.abandon()
        return
    try:
        await client.ask(_LEAVE, 1, {"group_id": group, "member_id": member_id})
    except Broken:
        return
    client.hang_up()


async def _join(
    world: Actors, client: Client, group: str, member_id: str, instance: str | None, old: frozenset[int]
) -> tuple[str, int, frozenset[int]]:
    """Join and sync; generation -1 and the old share if that did not work out."""
    began = world.time()
    joined = await client.ask(
        _JOIN,
        5,
        {
            "group_id": group,
            "session_timeout": 10_000,
            "rebalance_timeout": 10_000,
            "member_id": member_id,
            "group_instance_id": instance,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"m"}],
        },
        patience_s=30.0,
    )
    world.answered += 1
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        return joined.member_id, -1, old
    if joined.error_code:
        return "" if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID else member_id, -1, old
    is_leader, who_it_is = joined.leader == joined.member_id, instance or joined.member_id
    world.ledger.joins.append(Joined(group, joined.generation_id, who_it_is, began, world.time()))
    shares: list[dict[str, Any]] = []
    if is_leader:
        members = [one.member_id for one in joined.members]
        shares = [
            {"member_id": one, "assignment": json.dumps(list(range(PARTITIONS))[at :: len(members)]).encode()}
            for at, one in enumerate(members)
        ]
    began = world.time()
    who = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
    synced = await client.ask(_SYNC, 3, who | {"group_instance_id": instance, "assignments": shares}, patience_s=30.0)
    world.answered += 1
    if synced.error_code:
        return joined.member_id, -1, old
    share = frozenset(json.loads(synced.assignment or b"[]"))
    world.ledger.syncs.append(Synced(group, joined.generation_id, who_it_is, share, began, world.time()))
    return joined.member_id, joined.generation_id, share


async def _commit_share(
    world: Actors,
    client: Client,
    group: str,
    member_id: str,
    generation: int,
    share: frozenset[int],
    instance: str | None,
) -> int:
    """Commit some of what is owned; the generation, or -1 if the member must join again."""
    chosen = world.random.sample(sorted(share), world.random.randint(1, len(share)))
    began = world.time()
    write = world.ledger.write({(group, partition): next(world.offsets) for partition in chosen}, began)
    values = commit_values(group, write.offsets) | {"generation_id_or_member_epoch": generation, "member_id": member_id}
    answer = await recorded(
        world, write, client.ask(_OFFSET_COMMIT, 8, values | {"group_instance_id": instance}), commit_errors
    )
    if answer is None:
        return -1
    if write.outcome is Outcome.OK:
        world.ledger.commits.append(Fenced(group, generation, began, world.time()))
        return generation
    return -1
