"""Connections are taken one by one, and what becomes of one never costs another its place."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import cast

import pytest
import uvloop

from kohort.broker.acceptor import Acceptor
from kohort.broker.security.connection_limits import Admission, ConnectionLimits
from kohort.broker.security.listener_settings import ListenerConfig
from kohort.broker.security.listeners import Address
from kohort.broker.security.tls import Tls
from kohort.broker.settings import BrokerConfig
from tests.broker.security.certificates import file_of, server
from tests.hostile import attacks

NewLoop = Callable[[], asyncio.AbstractEventLoop]
LOOPS: list[NewLoop] = [asyncio.new_event_loop, uvloop.new_event_loop]
PATIENCE_S = 30.0


class Echo(asyncio.Protocol):
    """Says back what it hears."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.admission.settle()

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.admission.release()


def play(new_loop: NewLoop, scene: Callable[[ConnectionLimits], Awaitable[None]], **settings: int) -> ConnectionLimits:
    """Whatever happens, in the end every place is free."""
    config = replace(BrokerConfig(), **settings)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        loop = runner.get_loop()
        unhandled: list[object] = []
        loop.set_exception_handler(lambda _, context: unhandled.append(context))
        limits = ConnectionLimits(lambda: config, loop.time)
        runner.run(asyncio.wait_for(scene(limits), PATIENCE_S))
    assert (limits.total, len(limits.half_open), unhandled) == (0, 0, [])
    return limits


def some_tls() -> Tls:
    return Tls("SSL", ListenerConfig(ssl_keystore_type="PEM", ssl_keystore_location=file_of(server())))


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def accepting(
    limits: ConnectionLimits, host: str = "127.0.0.1", tls: Tls | None = None
) -> AsyncIterator[Address]:
    acceptor = Acceptor(asyncio.get_running_loop(), limits, Echo, tls)
    port = acceptor.listen(Address(host, 0))
    try:
        yield Address("127.0.0.1", port)
    finally:
        acceptor.close()
        await acceptor.wait_closed()


async def echoed(address: Address, said: bytes = b"hello") -> bool:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(said)
    heard = await reader.readexactly(len(said))
    writer.close()
    await writer.wait_closed()
    return heard == said


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", ""])
def test_whoever_comes_is_served_on_every_address_of_the_host(new_loop: NewLoop, host: str) -> None:
    async def scene(limits: ConnectionLimits) -> None:
        async with accepting(limits, host) as address:
            for _ in range(20):
                assert await echoed(address)
            await until(lambda: not limits.total)

    play(new_loop, scene)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_port_that_is_taken_is_told_and_nothing_stays_open(new_loop: NewLoop) -> None:
    async def scene(limits: ConnectionLimits) -> None:
        async with accepting(limits) as address:
            second = Acceptor(asyncio.get_running_loop(), limits, Echo, None)
            with pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
                second.listen(address)
            assert await echoed(address)
            await until(lambda: not limits.total)

    play(new_loop, scene)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_handshakes_that_do_not_go_on_take_so_many_places_and_are_given_up_for_others(new_loop: NewLoop) -> None:
    most = 0

    async def scene(limits: ConnectionLimits) -> None:
        async with accepting(limits, tls=some_tls()) as address:

            def note() -> None:
                nonlocal most
                most = max(most, len(limits.half_open))

            limits.on_room.append(note)
            outcome = await attacks.half_a_handshake(30, 3)(attacks.Address(*address))
            assert outcome.opened == 30
            assert outcome.ended >= 10
            await until(lambda: not limits.total)

    limits = play(new_loop, scene, max_connections_half_open=10)
    assert limits.given_up >= 10
    assert most <= 10


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_handshake_that_fails_or_takes_too_long_frees_its_place(new_loop: NewLoop) -> None:

    async def scene(limits: ConnectionLimits) -> None:
        async with accepting(limits, tls=some_tls()) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"this is no TLS, whatever it is")
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
            silent, other = await asyncio.open_connection(*address)
            with contextlib.suppress(ConnectionError):
                await silent.read()
            other.close()
            await until(lambda: not limits.total)

    play(new_loop, scene, connection_setup_timeout_ms=200)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_when_the_system_has_no_means_left_it_goes_on_a_little_later(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = iter([OSError(errno.EMFILE, "too many open files"), ConnectionAbortedError()])
    accept = socket.socket.accept

    def fail_first(listening: socket.socket) -> object:
        if (failure := next(failing, None)) is not None:
            raise failure
        return accept(listening)

    async def scene(limits: ConnectionLimits) -> None:
        async with accepting(limits) as address:
            monkeypatch.setattr(socket.socket, "accept", fail_first)
            assert await echoed(address)
            await until(lambda: not limits.total)

    play(new_loop, scene)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_whoever_is_in_the_middle_of_a_handshake_at_the_end_stays_outside(new_loop: NewLoop) -> None:

    async def scene(limits: ConnectionLimits) -> None:
        async with accepting(limits, tls=some_tls()) as address:
            _, writer = await asyncio.open_connection(*address)
            await until(lambda: limits.total == 1)
        writer.close()

    play(new_loop, scene)
