"""What hostile peers do: each attack opens so many connections, lasts so long, and tells what became of them.

Nothing here leaves this machine, and nothing lasts longer than it is told to.
"""

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.broker.bombs import bombs
from tests.broker.data_plane import produce_request
from tests.broker.wire_client import request_bytes
from tests.hostile.well_behaved import TOPIC

API_VERSIONS, JOIN_GROUP, PRODUCE, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 11, 0, 17, 36
MIB = 1 << 20
_AT_ONCE = 200
_LOGINS_AT_ONCE = 20
_ANSWERED_WITHIN_S = 60.0
_NO_ANSWER = -99


class Outcome(NamedTuple):
    """What an attack has come to."""

    opened: int
    ended: int
    """Connections that the broker has ended."""
    told: str = ""


class Address(NamedTuple):
    host: str
    port: int


Attack = Callable[[Address], Awaitable[Outcome]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


HELLO = framed(request_bytes(API_VERSIONS, 0, 1, "hostile", {}))


async def _opened(address: Address, count: int, first: bytes = b"") -> list[Streams]:
    """So many connections as can be had, on each of which these bytes were sent."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one() -> Streams | None:
        async with places:
            try:
                reader, writer = await asyncio.wait_for(asyncio.open_connection(*address), 10)
            except (OSError, TimeoutError):
                return None
            writer.write(first)
            return reader, writer

    return [streams for streams in await asyncio.gather(*(one() for _ in range(count))) if streams is not None]


async def _let_go(connections: list[Streams]) -> None:
    for _, writer in connections:
        writer.transport.abort()
    await asyncio.sleep(0)


def _watched(connections: list[Streams]) -> list[asyncio.Task[bytes]]:
    """Whether a connection has ended is only known to whoever reads from it."""
    return [asyncio.create_task(_read_to_the_end(reader)) for reader, _ in connections]


async def _read_to_the_end(reader: asyncio.StreamReader) -> bytes:
    try:
        while data := await reader.read(65_536):
            del data
    except OSError:
        pass
    return b""


async def _hold(connections: list[Streams], seconds: float, every: Callable[[Streams], None] | None = None) -> int:
    """Keep them for a while, doing something with each now and then; how many the broker has ended."""
    watched = _watched(connections)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for streams, task in zip(connections, watched, strict=True):
            if every is not None and not task.done() and not streams[1].is_closing():
                every(streams)
        await asyncio.sleep(min(1.0, seconds / 5))
    ended = sum(task.done() for task in watched)
    for task in watched:
        task.cancel()
    await asyncio.gather(*watched, return_exceptions=True)
    return ended


def slow_loris(count: int, seconds: float) -> Attack:
    """A request is begun on each connection, and goes on by a byte a second."""

    async def attack(address: Address) -> Outcome:
        connections = await _opened(address, count, HELLO + struct.pack(">i", 1_000_000))
        ended = await _hold(connections, seconds, lambda streams: streams[1].write(b"x"))
        await _let_go(connections)
        return Outcome(len(connections), ended)

    return attack


def silent(count: int, seconds: float) -> Attack:
    """Connections that say nothing."""

    async def attack(address: Address) -> Outcome:
        connections = await _opened(address, count)
        ended = await _hold(connections, seconds)
        await _let_go(connections)
        return Outcome(len(connections), ended)

    return attack


def coming_and_going(count: int) -> Attack:
    """Connections that are opened and closed as fast as it goes, each with a request."""

    async def attack(address: Address) -> Outcome:
        opened = 0
        for _ in range(0, count, _AT_ONCE):
            connections = await _opened(address, min(_AT_ONCE, count - opened), HELLO)
            opened += len(connections)
            await _let_go(connections)
        return Outcome(opened, 0)

    return attack


def announced(count: int, seconds: float, size: int = 100 * MIB) -> Attack:
    """Requests of 100 MiB that never come."""

    async def attack(address: Address) -> Outcome:
        connections = await _opened(address, count, HELLO + struct.pack(">ihhi", size, PRODUCE, 8, 1))
        ended = await _hold(connections, seconds)
        await _let_go(connections)
        return Outcome(len(connections), ended, f"{count * size // MIB:,} MiB announced")

    return attack


def half_a_handshake(count: int, seconds: float) -> Attack:
    """TLS that is begun, with the first bytes of a ClientHello, and not gone on with."""

    async def attack(address: Address) -> Outcome:
        connections = await _opened(address, count, bytes.fromhex("1603010200010001fc0303") + bytes(20))
        ended = await _hold(connections, seconds)
        await _let_go(connections)
        return Outcome(len(connections), ended)

    return attack


async def _asked(streams: Streams, frame: bytes) -> bytes | None:
    """The answer, or None if the connection ends instead."""
    reader, writer = streams
    try:
        writer.write(framed(frame))
        await writer.drain()
        size = await asyncio.wait_for(reader.readexactly(4), _ANSWERED_WITHIN_S)
        return await asyncio.wait_for(reader.readexactly(int.from_bytes(size, "big")), _ANSWERED_WITHIN_S)
    except (OSError, asyncio.IncompleteReadError):  # no answer in time is an OSError too
        return None


def bombing(times: int) -> Attack:
    """Batches that become hundreds of MiB, each in a Produce request that is right in all else."""
    hostile = list(bombs().values())

    async def attack(address: Address) -> Outcome:
        connections = await _opened(address, 4, HELLO)
        answers = taken = 0
        for reader, _ in connections:
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

        async def throw(streams: Streams) -> None:
            nonlocal answers, taken
            for _ in range(times):
                for bomb in hostile:
                    request = produce_request(bomb, topic=TOPIC)
                    answer = await _asked(streams, request_bytes(PRODUCE, 8, 7, "hostile", request))
                    answers += answer is not None
                    taken += answer is not None and _error_of_produce(answer) == 0

        await asyncio.gather(*(throw(streams) for streams in connections))
        await _let_go(connections)
        return Outcome(len(connections), 0, f"{answers} bombs answered, {taken} taken")

    return attack


def _error_of_produce(answer: bytes) -> int:
    """Correlation id, one topic by its name, one partition."""
    at = 4 + 4 + 2 + len(TOPIC) + 4 + 4
    return int.from_bytes(answer[at : at + 2], "big", signed=True)


def joining(times: int, size: int, *, at_once: int = 1) -> Attack:
    """JoinGroup with so much metadata, in a version that is let in at once: some in each of a few groups."""

    async def attack(address: Address) -> Outcome:
        places = asyncio.Semaphore(at_once)

        async def join(number: int) -> int:
            async with places:
                connections = await _opened(address, 1)
                request = {
                    "group_id": f"hostile-{number % 3}",
                    "session_timeout": 30_000,
                    "rebalance_timeout": 30_000,
                    "protocol_type": "consumer",
                    "protocols": [{"name": "range", "metadata": bytes(size)}],
                }
                answer = await _asked(connections[0], request_bytes(JOIN_GROUP, 3, 7, "hostile", request))
                await _let_go(connections)
            return _NO_ANSWER if answer is None else int.from_bytes(answer[8:10], "big", signed=True)

        errors = await asyncio.gather(*(join(number) for number in range(times)))
        told = ", ".join(f"{errors.count(error)} times error {error}" for error in sorted(set(errors)))
        return Outcome(times, 0, told)

    return attack


def wrong_passwords(times: int, *, mechanism: str = "PLAIN", wrong: bytes = b"\0admin\0wrong") -> Attack:
    """Logins that are none, one connection for each as where a broker ends it after one."""

    async def attack(address: Address) -> Outcome:
        places = asyncio.Semaphore(_LOGINS_AT_ONCE)
        got_in = opened = 0

        async def log_in() -> None:
            nonlocal got_in, opened
            async with places:
                for streams in await _opened(address, 1):
                    opened += 1
                    choice = request_bytes(SASL_HANDSHAKE, 1, 1, "hostile", {"mechanism": mechanism})
                    if await _asked(streams, choice) is not None:
                        said = request_bytes(SASL_AUTHENTICATE, 0, 2, "hostile", {"auth_bytes": wrong})
                        answer = await _asked(streams, said)
                        got_in += answer is not None and answer[4:6] == b"\0\0"
                    await _let_go([streams])

        await asyncio.gather(*(log_in() for _ in range(times)))
        return Outcome(opened, opened - got_in, f"{got_in} of {times} got in")

    return attack
