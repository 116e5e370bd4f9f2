"""Producers that commit offsets in transactions: they end them, leave them, come again, and go on though fenced."""

from typing import Any

from kohort.errors import ErrorCode
from tests.simulation.actors import PARTITIONS, REFUSALS, Actors, commit_errors, commit_values, outcome_of, recorded
from tests.simulation.client import Client
from tests.simulation.history import Epoch, Outcome, Transacted, Write
from tests.simulation.network import Broken

_INIT_PRODUCER_ID, _ADD_OFFSETS, _END_TXN, _TXN_COMMIT = 22, 25, 26, 28

_REFUSALS_OF_THE_END = REFUSALS - {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""A coordinator that is loaded anew before its decision is safe says, as Kafka does, that it loads."""

Producer = tuple[int, int]
"""An id and an epoch."""


async def transactor(world: Actors, name: str, group: str, times: int) -> None:
    """Commits offsets in transactions, which it commits, aborts or leaves alone."""
    client = world.new_client(name)
    producer: Producer | None = None
    fenced: Producer | None = None
    for _ in range(times):
        await world.pause(4.0)
        try:
            if producer is None:
                producer = await _init(world, client, name)
            elif world.random.random() < 0.15:
                # Another one with the same transactional id has come.
                fenced, producer = producer, await _init(world, client, name)
            if producer is None:
                continue
            if fenced is not None and world.random.random() < 0.5:
                await _transact(world, client, name, group, fenced)
                fenced = None
            elif not await _transact(world, client, name, group, producer):
                producer, fenced = None, producer
        except Broken:
            producer, fenced = None, producer
    client.hang_up()


async def _init(world: Actors, client: Client, name: str) -> Producer | None:
    values = {"transactional_id": name, "transaction_timeout": 10_000, "producer_id": -1, "producer_epoch": -1}
    answer = await client.ask(_INIT_PRODUCER_ID, 3, values)
    world.answered += 1
    if answer.error_code:
        return None
    producer = answer.producer_id, answer.producer_epoch
    world.ledger.epochs.append(Epoch(name, producer, world.time()))
    return producer


async def _transact(world: Actors, client: Client, name: str, group: str, producer: Producer) -> bool:
    """One transaction; whether the producer may go on with another."""
    who = {"transactional_id": name, "producer_id": producer[0], "producer_epoch": producer[1]}
    began = world.time()
    added = await client.ask(_ADD_OFFSETS, 1, who | {"group_id": group})
    world.answered += 1
    if added.error_code:
        return False
    world.ledger.transacted.append(Transacted(name, producer, began))
    chosen = world.random.sample(range(PARTITIONS), world.random.randint(1, PARTITIONS))
    write = world.ledger.write({(group, partition): next(world.offsets) for partition in chosen}, world.time())
    values = commit_values(group, write.offsets) | who | {"generation_id": -1, "member_id": ""}
    try:
        answer = await client.ask(_TXN_COMMIT, 3, values)
    except Broken:
        # Whether it is in the transaction is not known; that will end without being committed by us.
        write.end(world.time(), Outcome.FAILED)
        raise
    world.answered += 1
    if outcome_of(commit_errors(answer)) is not Outcome.OK:
        write.end(world.time(), Outcome.FAILED)
        return False
    return await _end(world, client, name, producer, write)


async def _end(world: Actors, client: Client, name: str, producer: Producer, write: Write) -> bool:
    who: dict[str, Any] = {"transactional_id": name, "producer_id": producer[0], "producer_epoch": producer[1]}
    stands = world.time()
    await world.pause(1.0)
    is_commit = world.random.random() < 0.7
    asked = write.visible_from = world.time()
    if not is_commit:
        write.end(asked, Outcome.FAILED)
    ended = await recorded(
        world,
        write if is_commit else Write({}, asked),
        client.ask(_END_TXN, 1, who | {"committed": is_commit}),
        lambda answer: [answer.error_code],
        _REFUSALS_OF_THE_END,
    )
    # Committed is a decision; the markers follow. Until they stand nobody reads the offsets, and that is no violation.
    if is_commit and write.outcome is Outcome.OK:
        write.end(world.time(), Outcome.UNKNOWN)
        write.decided = world.time()
    if ended is None or ended.error_code != ErrorCode.NONE:
        return False
    write.pending = stands, asked
    world.ledger.transacted.append(Transacted(name, producer, asked))
    return True
