"""A connection to the HTTP port, as aiohttp serves it, with what it leaves open: there are only so many of them, each
has to come to the point, and what it hears of bytes that are no request carries the same headers as everything else.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_request import BaseRequest

logger = logging.getLogger(__name__)

_LONGEST_LINE = 131_072
"""A group's id may have 32,767 bytes, each of which takes three in an address."""
_KEPT_ALIVE_S = 75.0
_FIRST_REQUEST_S = 30.0
_MOST_CONNECTIONS = 256


class _NoTraceForNonsense(logging.Filter):
    """Whoever sends what is no HTTP does not fill the log of the broker."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


logger.addFilter(_NoTraceForNonsense())


class HttpConnection(web.RequestHandler):
    """One client."""

    __slots__ = ("_headers", "_timeout")

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, headers: Mapping[str, str]) -> None:
        super().__init__(
            server,
            loop=loop,
            logger=logger,
            access_log=None,  # type: ignore[arg-type] # which is how aiohttp is told that there is none
            max_line_size=_LONGEST_LINE,
            keepalive_timeout=_KEPT_ALIVE_S,
        )
        self._headers = headers
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self._manager.connections) > _MOST_CONNECTIONS:  # type: ignore[union-attr] # there is one until the end
            self._end()
        else:
            self._timeout = self._loop.call_later(_FIRST_REQUEST_S, self._end_if_silent)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        answer = super().handle_error(request, status, exc, message if status >= 500 else "this is no HTTP\n")
        answer.headers.update(self._headers)
        return answer

    def _end_if_silent(self) -> None:
        if not self._request_count:
            self._end()

    def _end(self) -> None:
        if self.transport is not None:
            self.transport.abort()


def http_connections(server: web.Server, headers: Mapping[str, str]) -> Any:
    """What an event loop makes of each connection."""
    loop = asyncio.get_running_loop()
    return lambda: HttpConnection(server, loop, headers)
