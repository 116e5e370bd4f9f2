"""A client's connection: frames in, frames out.

Requests of one connection are served one after the other, as Kafka does: the next is looked at when the one before is
answered. So answers come in the order of their requests, and a long poll holds up nobody but its own client. Only where
a request has its place in the log already and waits for the disk, others of its kind may follow it there, so that one
sync serves them all; they are answered in order all the same. A client that does not read is not listened to any more
until it does.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, cast

from kohort.broker.api import Api
from kohort.broker.authentication import may_ask
from kohort.broker.call import Call
from kohort.broker.wire import API_VERSIONS, BadRequest, RequestHeader, read_header
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.server import Server

logger = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")
_FRAME_HEAD = _SIZE.size
_API_KEY = slice(0, 2)
_MOST_WAITING = 64
"""How many requests of a pipelining client are read ahead, and how many are served and not answered."""
_MOST_WAITING_BYTES = 1 << 20
"""And how large they may be together, not counting the one that is still coming in."""


_WRITE_AT_ONCE = 65_536
"""So much is not kept back to be written with the answers that follow: a client that does not read must be noticed."""


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._traffic = server.traffic
        self._buffer = bytearray()
        self._frames: deque[bytes] = deque()
        self._begun: deque[Call] = deque()
        """Requests that are not answered yet, or not before those in front of them are."""
        self._begun_bytes = 0
        self._answers = bytearray()
        self._has_answers = False
        """Whether the server knows that there is something to be written."""
        self._is_serving = False
        self._is_clogged = False
        self._is_paused = False
        self._last_words: str | None = None
        """Why the connection is closed when everything before is answered."""
        self._transport: asyncio.Transport | None = None
        self._authenticator = None if server.new_authenticator is None else server.new_authenticator()
        self._host = ""
        self.last_active = 0.0

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._host = f"/{transport.get_extra_info('peername')[0]}"
        self.last_active = self._server.loop.time()
        self._server.connections.add(self)
        self._traffic.connections_opened += 1

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._server.connections.discard(self)
        self._traffic.connections_closed += 1
        self._transport = None
        self._frames.clear()
        self._begun.clear()
        self._buffer.clear()

    def data_received(self, data: bytes) -> None:
        self.last_active = self._server.loop.time()
        self._traffic.bytes_in += len(data)
        if self._last_words is not None:
            return
        if self._buffer:
            self._buffer += data
            del self._buffer[: self._cut_frames(self._buffer)]
        elif (end := self._cut_frames(data)) < len(data):
            self._buffer += memoryview(data)[end:]
        self._serve()
        if self._frames and not self._is_paused and self._has_read_enough():
            self._pause_reading()

    def pause_writing(self) -> None:
        self._pause_reading()
        self._is_clogged = True

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._serve()

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    # Frames

    def _cut_frames(self, data: bytes | bytearray) -> int:
        """Take whole frames out of `data`, and tell where the rest begins. Behind a frame that cannot be there is
        nothing more to be understood."""
        at, length, most = 0, len(data), self._server.max_request_bytes
        while length - at >= _FRAME_HEAD:
            (size,) = _SIZE.unpack_from(data, at)
            if not 0 <= size <= most:
                self._last_words = f"a request of {size} bytes"
                return length
            end = at + _FRAME_HEAD + size
            if end > length:
                break
            if isinstance(data, bytes):
                self._frames.append(data[at + _FRAME_HEAD : end])
            else:
                with memoryview(data) as view:
                    self._frames.append(bytes(view[at + _FRAME_HEAD : end]))
            at = end
        return at

    def _has_read_enough(self) -> bool:
        return len(self._frames) >= _MOST_WAITING or sum(map(len, self._frames)) >= _MOST_WAITING_BYTES

    def _serve(self) -> None:
        """One request after the other, as long as each is answered at once."""
        if self._is_serving:
            return
        self._is_serving = True
        try:
            while self._frames and not self._is_clogged and self._transport is not None and self._may_begin():
                self._handle(self._frames.popleft())
        finally:
            self._is_serving = False
            if self._answers and not self._has_answers:
                self._has_answers = True
                self._server.write_soon(self)
        if self._last_words is not None and not self._frames and not self._begun:
            self._close(self._last_words)
        if self._is_paused and not self._is_clogged and not self._frames:
            self._resume_reading()

    def _may_begin(self) -> bool:
        """Whether the next request may be looked at: nothing is open, or it has its place behind what is."""
        begun = self._begun
        if not begun:
            return True
        last = begun[-1]
        return (
            (last.has_its_place or last.is_answered)
            and self._frames[0][_API_KEY] == last.frame[_API_KEY]
            and len(begun) < _MOST_WAITING
            and self._begun_bytes < _MOST_WAITING_BYTES
        )

    def _handle(self, frame: bytes) -> None:
        server = self._server
        try:
            header = read_header(frame)
        except BadRequest as error:
            self._hang_up(str(error))
            return
        api = server.apis.get(header.api_key)
        if api is None or not api.first <= header.api_version <= api.last:
            self._refuse(header, api)
            return
        if self._authenticator is not None and not may_ask(self._authenticator, api.key):
            self._hang_up(f"API {header.api_key} before it was said who asks")
            return
        self._traffic.apis[api.key].requests[header.api_version] += 1
        call = self._begin(header, frame)
        try:
            api.handle(server.broker, call)
        except BadRequest as error:
            call.hang_up(str(error))
            return
        server.broker.wake_timers()

    def _begin(self, header: RequestHeader, frame: bytes) -> Call:
        call = Call(header, frame, self._host, self._send, self._hang_up, self._authenticator)
        self._begun.append(call)
        self._begun_bytes += len(frame)
        return call

    def _refuse(self, header: RequestHeader, api: Api | None) -> None:
        """Kafka closes the connection, except that ApiVersions tells a newer client which version we speak."""
        if api is None or header.api_key != API_VERSIONS:
            self._hang_up(f"API {header.api_key}, version {header.api_version} is not served")
            return
        versions = [{"api_key": API_VERSIONS, "min_version": api.first, "max_version": api.last}]
        refusal = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": versions}
        self._begin(header._replace(api_version=0), b"").answer(refusal)

    def _send(self, call: Call, body: bytes | None, errors: Sequence[int]) -> None:
        """A call is answered. Its answer goes out, with those behind that are ready, if it is the first."""
        if self._transport is None:
            return
        traffic = self._traffic.apis[call.api_key]
        traffic.times.record(perf_counter() - call.began)
        for code in errors:
            traffic.errors[code] = traffic.errors.get(code, 0) + 1
        call.kept_answer = body
        begun = self._begun
        while begun and begun[0].is_answered:
            self._put(begun.popleft())
        if len(self._answers) >= _WRITE_AT_ONCE:
            self.write_out()
        self._serve()

    def _put(self, call: Call) -> None:
        self._begun_bytes -= len(call.frame)
        answer = call.kept_answer
        if answer is not None:
            self._traffic.bytes_out += _FRAME_HEAD + len(answer)
            self._answers += len(answer).to_bytes(_FRAME_HEAD, "big")
            self._answers += answer

    def write_out(self) -> None:
        """All answers that are ready, in one go: each write is a call to the system."""
        self._has_answers = False
        if self._answers and self._transport is not None:
            self._transport.write(bytes(self._answers))
        self._answers.clear()

    def _hang_up(self, reason: str) -> None:
        """Nothing more is understood here; whoever asked before gets an answer first."""
        self._last_words = reason
        self._frames.clear()

    def _close(self, reason: str) -> None:
        self.write_out()
        if self._transport is not None:
            logger.info("connection from %s is closed: %s", self._host, reason)
            self._traffic.bad_requests += 1
            self._transport.close()
            self._transport = None
        self._frames.clear()

    def close(self) -> None:
        """The server is going down; what was written still goes out."""
        self.write_out()
        if self._transport is not None:
            self._transport.close()
