"""Members of groups: they join, get their share, commit what they own, beat, and go on though others have come."""

import json
from typing import Any

from kohort.errors import ErrorCode
from tests.simulation.actors import PARTITIONS, Actors, commit_errors, commit_values, recorded
from tests.simulation.client import Client
from tests.simulation.history import Fenced, Joined, Outcome, Synced
from tests.simulation.network import Broken

_OFFSET_COMMIT, _JOIN, _HEARTBEAT, _LEAVE, _SYNC = 8, 11, 12, 13, 14


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
                if world.random.random() < 0.5:
                    await _commit_share(world, client, group, member_id, last, share, instance)
                else:
                    await _beat(world, client, group, member_id, last, instance)
            elif generation < 0:
                member_id, generation, share = await _join(world, client, group, member_id, instance, share)
            elif share and world.random.random() < 0.6:
                generation = await _commit_share(world, client, group, member_id, generation, share, instance)
            else:
                error = await _beat(world, client, group, member_id, generation, instance)
                if error:
                    last, generation = generation, -1
                if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
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


async def _beat(
    world: Actors, client: Client, group: str, member_id: str, generation: int, instance: str | None
) -> int:
    """A heartbeat; the error, or 0 if all is well. A coordinator that reads its log answers well, whoever it was."""
    began = world.time()
    who = {"group_id": group, "generation_id": generation, "member_id": member_id, "group_instance_id": instance}
    answer = await client.ask(_HEARTBEAT, 3, who)
    world.answered += 1
    if answer.error_code == ErrorCode.NONE and world.loading.get(group, -1.0) < began:
        world.ledger.commits.append(Fenced(group, generation, began, world.time(), member_id, instance))
    return int(answer.error_code)


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
        is_stranger = joined.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
        return "" if is_stranger else member_id, -1, old
    is_leader, who_it_is = joined.leader == joined.member_id, instance or joined.member_id
    world.ledger.joins.append(Joined(group, joined.generation_id, joined.member_id, began, world.time(), instance))
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
        world.ledger.commits.append(Fenced(group, generation, began, world.time(), member_id, instance))
        return generation
    return -1
