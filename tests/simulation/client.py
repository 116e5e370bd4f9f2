"""A client of the simulated broker: real frames over a simulated line, with patience on simulated time."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from tests.broker.wire_client import read_answer, request_bytes
from tests.simulation.network import Broken, Line

PATIENCE_S = 10.0


class Client:
    """Asks one thing at a time. A request without an answer ends the connection; the next one makes a new one."""

    def __init__(self, name: str, connect: Callable[[], Line]) -> None:
        self.name = name
        self._connect = connect
        self._line: Line | None = None
        self._correlation_id = 0

    @property
    def line(self) -> Line | None:
        return self._line

    async def ask(
        self, api_key: int, version: int, values: Mapping[str, Any], *, patience_s: float = PATIENCE_S
    ) -> Any:
        """The answer; `Broken` if there is none."""
        if self._line is None or self._line.is_broken:
            self._line = self._connect()
        self._correlation_id += 1
        try:
            self._line.send(request_bytes(api_key, version, self._correlation_id, self.name, values))
            async with asyncio.timeout(patience_s):
                frame = await self._line.receive()
        except (TimeoutError, Broken):
            self.hang_up()
            raise Broken from None
        return read_answer(api_key, version, frame)

    def hang_up(self) -> None:
        if self._line is not None:
            self._line.break_off()
            self._line = None

    def abandon(self) -> None:
        """Die without closing the connection."""
        if self._line is not None:
            self._line.is_silent = True
            self._line = None
