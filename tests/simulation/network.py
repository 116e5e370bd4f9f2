"""Connections in memory, which deliver late, break, or go silent without a word."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from tests.simulation.loop import SimulatedLoop


class Broken(Exception):
    """The connection is gone, or nobody answers: whether a request was served cannot be told."""


class _BrokerSide(asyncio.Transport):
    """What the broker writes into."""

    def __init__(self, line: "Line") -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self._line = line
        self._is_closing = False

    def write(self, data: Any) -> None:
        self._line.to_client(bytes(data))

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._line.break_off()

    abort = close

    def pause_reading(self) -> None:
        self._line.is_held = True

    def resume_reading(self) -> None:
        self._line.is_held = False
        self._line.deliver_held()

    def get_write_buffer_size(self) -> int:
        return 0


class Line:
    """One connection. Bytes arrive in order; a broken line loses what is under way."""

    def __init__(self, loop: SimulatedLoop, random: Random, protocol: asyncio.Protocol) -> None:
        self._loop, self._random, self._protocol = loop, random, protocol
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._received = bytearray()
        self._there_at = self._back_at = 0.0
        self._held: list[bytes] = []
        self.is_held = False
        self.is_broken = False
        self.is_silent = False
        """Half open: the broker does not know, and nothing gets through any more."""
        protocol.connection_made(_BrokerSide(self))

    # The client's side

    def send(self, frame: bytes) -> None:
        if self.is_broken:
            raise Broken
        self._there_at = self._later(self._there_at, self._arrive, len(frame).to_bytes(4, "big") + frame)

    async def receive(self) -> bytes:
        """The next frame."""
        while len(self._received) < 4 or len(self._received) < 4 + int.from_bytes(self._received[:4], "big"):
            more = await self._answers.get()
            if more is None:
                raise Broken
            self._received += more
        size = int.from_bytes(self._received[:4], "big")
        frame = bytes(self._received[4 : 4 + size])
        del self._received[: 4 + size]
        return frame

    def break_off(self) -> None:
        """Both sides see that it is over."""
        if not self.is_broken:
            self.is_broken = True
            self._answers.put_nowait(None)
            self._loop.call_soon(self._protocol.connection_lost, None)

    # The broker's side

    def to_client(self, data: bytes) -> None:
        if not self.is_broken:
            self._back_at = self._later(self._back_at, self._come_back, data)

    def deliver_held(self) -> None:
        while self._held and not self.is_held and not self.is_broken:
            self._protocol.data_received(self._held.pop(0))

    def _later(self, not_before: float, act: Callable[[bytes], None], data: bytes) -> float:
        when = max(not_before, self._loop.time() + self._random.expovariate(1 / 0.002))
        self._loop.call_at(when, act, data)
        return when

    def _arrive(self, data: bytes) -> None:
        if self.is_broken or self.is_silent:
            return
        self._held.append(data)
        self.deliver_held()

    def _come_back(self, data: bytes) -> None:
        if not self.is_broken and not self.is_silent:
            self._answers.put_nowait(data)
