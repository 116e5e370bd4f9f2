"""Who lives with the broker: those who commit, those who look at what is there, and those who remove it."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

from kohort.errors import ErrorCode
from tests.simulation.client import Client
from tests.simulation.history import Key, Outcome, Read, Removal, Write
from tests.simulation.ledger import Ledger
from tests.simulation.network import Broken

TOPIC = "orders"
PARTITIONS = 3
_OFFSET_COMMIT, _OFFSET_FETCH, _DELETE_GROUPS, _OFFSET_DELETE = 8, 9, 42, 47

REFUSALS = {
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.NON_EMPTY_GROUP,
}
"""Errors after which nothing has happened. After others nobody knows: what was appended may stay."""


class Actors:
    """Everybody of one run, and what they need."""

    def __init__(
        self, random: Random, ledger: Ledger, time: Callable[[], float], new_client: Callable[[str], Client]
    ) -> None:
        self.random, self.ledger, self.time, self.new_client = random, ledger, time, new_client
        self.offsets: Iterator[int] = count(1)
        self.looks: Iterator[int] = count()
        self.answered = 0
        self.loading: dict[str, float] = {}
        """When each group was seen last while its coordinator read its log."""

    async def pause(self, longest_s: float) -> None:
        await asyncio.sleep(self.random.uniform(0.0, longest_s))


def outcome_of(errors: Sequence[int], refusals: Container[int] = REFUSALS) -> Outcome:
    if all(error == ErrorCode.NONE for error in errors):
        return Outcome.OK
    return Outcome.FAILED if all(error in refusals for error in errors) else Outcome.UNKNOWN


async def recorded(
    world: Actors,
    write: Write,
    asking: Awaitable[Any],
    errors: Callable[[Any], Sequence[int]],
    refusals: Container[int] = REFUSALS,
) -> Any:
    """Ask for something that takes effect, and note how it ended."""
    try:
        answer = await asking
    except Broken:
        return None
    world.answered += 1
    write.end(world.time(), outcome_of(errors(answer), refusals))
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
        await look(world, client, world.random.choice(groups), is_stable=world.random.random() < 0.5)
    client.hang_up()


async def look(world: Actors, client: Client, group: str, *, is_stable: bool = False) -> bool:
    """Read every partition of a group once; whether there was an answer."""
    began = world.time()
    topics = [{"name": TOPIC, "partition_indexes": list(range(PARTITIONS))}]
    try:
        values = {"group_id": group, "topics": topics, "require_stable": is_stable}
        answer = await client.ask(_OFFSET_FETCH, 7, values)
    except Broken:
        return False
    if answer.error_code:
        return False
    number = next(world.looks)
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.NONE:
                key = group, partition.partition_index
                offset = None if partition.committed_offset == -1 else partition.committed_offset
                world.ledger.reads.append(Read(key, offset, began, world.time(), number, is_stable))
    return True


async def remover(world: Actors, name: str, groups: Sequence[str], times: int) -> None:
    """Deletes offsets of groups without members, or such groups with all that they have."""
    client = world.new_client(name)
    for _ in range(times):
        await world.pause(15.0)
        group, partition = world.random.choice(groups), world.random.randrange(PARTITIONS)
        is_whole = world.random.random() < 0.3
        partitions = range(PARTITIONS) if is_whole else (partition,)
        removals = [Removal((group, one), world.time()) for one in partitions]
        world.ledger.removals += removals
        topics = [{"name": TOPIC, "partitions": [{"partition_index": partition}]}]
        try:
            if is_whole:
                error = (await client.ask(_DELETE_GROUPS, 1, {"groups_names": [group]})).results[0].error_code
            else:
                error = _deletion_error(
                    await client.ask(_OFFSET_DELETE, 0, {"group_id": group, "topics": topics}), partition
                )
        except Broken:
            continue
        world.answered += 1
        if error in REFUSALS:
            world.ledger.removals = [removal for removal in world.ledger.removals if removal not in removals]
        elif error == ErrorCode.NONE:
            for removal in removals:
                removal.ended = world.time()
    client.hang_up()


def _deletion_error(answer: Any, partition: int) -> int:
    """Of the whole, or of the one partition."""
    if answer.error_code:
        return int(answer.error_code)
    errors = {one.partition_index: one.error_code for topic in answer.topics for one in topic.partitions}
    return int(errors[partition])
