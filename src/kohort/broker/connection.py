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
from kohort.broker.authentication import EXPIRED, refusal_of
from kohort.broker.call import Call
from kohort.broker.entrance import Entrance
from kohort.broker.peer import Peer
from kohort.broker.quotas.metered_call import MeteredCall
from kohort.broker.wire import API_VERSIONS, BadRequest, RequestHeader, read_header, read_place
from kohort.errors import ClientError, ErrorCode

if TYPE_CHECKING:
    from kohort.broker.security.connection_limits import Admission
    from kohort.broker.security.request_memory import RequestMemory
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

    def __init__(
        self, server: "Server", entrance: Entrance | None = None, admission: "Admission | None" = None
    ) -> None:
        self._server = server
        self._entrance = entrance = server.entrances[0] if entrance is None else entrance
        self._admission = self._half_open = admission
        """Its place among all connections, and the same as long as it has not said what it wants."""
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
        self._mutes = 0
        """How many times that it is to wait for have not passed yet."""
        self._turns = server.broker.turns
        self._is_prompt = server.broker.durable.is_prompt
        self._is_queued = False
        """It waits for its turn."""
        self._is_heavy = False
        """It was served when a turn was over."""
        self._is_held = False
        """Whether nothing is served: its client does not read, or has to wait."""
        self._is_paused = False
        self._quotas = server.broker.quotas
        self._memory = server.request_memory
        self._taken = 0
        """How much of that memory."""
        self._is_starved = False
        self._last_words: str | None = None
        """Why the connection is closed when everything before is answered."""
        self._transport: asyncio.Transport | None = None
        self._authenticator = None if entrance.new_authenticator is None else entrance.new_authenticator()
        self.peer = Peer(authenticator=self._authenticator, authorizer=server.broker.authorizer)
        self.last_active = 0.0

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.last_active = self._server.loop.time()
        self._server.connections.add(self)
        if self._half_open is not None:
            self._half_open.give_up = self._give_up
        self._traffic.connections_opened += 1
        if self._server.is_isolated:
            self.drop("the broker is cut off from its store")
            return
        self.peer.host = f"/{transport.get_extra_info('peername')[0]}"
        try:
            self.peer.principal, self.peer.told_address = self._entrance.greet(transport)
        except ClientError as error:
            self._close(str(error))

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._server.connections.discard(self)
        self._traffic.connections_closed += 1
        self._transport = None
        self._frames.clear()
        self._begun.clear()
        self._buffer.clear()
        self._server.slow_requests.end(self)
        if self._memory is not None:
            memory, taken = self._memory, self._taken
            self._memory, self._taken = None, 0
            memory.change(-taken)
            memory.done(self)
        if self._admission is not None:
            self._admission.release()

    def data_received(self, data: bytes) -> None:
        self.last_active = self._server.loop.time()
        self._traffic.bytes_in += len(data)
        if self._last_words is not None:
            return
        if self._buffer:
            self._buffer += data
            if end := self._cut_frames(self._buffer):
                del self._buffer[:end]
                self._note_begun_request()
        elif (end := self._cut_frames(data)) < len(data):
            self._buffer += memoryview(data)[end:]
            self._note_begun_request()
        self._serve()
        if self._frames and not self._is_paused and self._has_read_enough():
            self._pause_reading()

    def pause_writing(self) -> None:
        self._pause_reading()
        self._is_clogged = self._is_held = True

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._go_on()

    def mute(self, ms: int) -> None:
        """Serve nothing for so long, and read nothing: whoever asks too much has to wait (KIP-219)."""
        self._pause_reading()
        self._mutes += 1
        self._is_held = True
        self._server.broker.call_later(ms, self._unmute)

    def _unmute(self) -> None:
        self._mutes -= 1
        self._go_on()

    def _go_on(self) -> None:
        self._is_held = self._is_clogged or self._mutes > 0
        self._serve()

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    # Limits

    @property
    def is_read(self) -> bool:
        return not self._is_paused

    @property
    def received(self) -> int:
        return len(self._buffer)

    def _note_begun_request(self) -> None:
        """What stands at the front of the buffer is another request than before, or none."""
        if self._memory is not None:
            self._memory.done(self)
        if self._buffer:
            self._server.slow_requests.begin(self)
        else:
            self._server.slow_requests.end(self)

    def _take_memory(self, memory: "RequestMemory") -> None:
        """Count what is held; wait if there is no room for the rest of a request."""
        held = sum(map(len, self._frames)) + self._begun_bytes + len(self._buffer)
        change, self._taken = held - self._taken, held
        if change:
            memory.change(change)
        self._is_starved = bool(self._buffer) and self._transport is not None and not memory.may_go_on(self)
        if self._is_starved:
            self._pause_reading()

    def on_memory(self) -> None:
        self._is_starved = False
        self._serve()

    def _look_after(self, call: Call) -> None:
        """Its handler is done. By now it is known what the client wants and, if it matters, who he is."""
        if isinstance(call, MeteredCall):
            call.rest()
        is_known = self._authenticator is None or self._authenticator.is_authenticated
        if self._half_open is not None and is_known:
            self._half_open.settle()
            self._half_open = None

    def _give_up(self, reason: str) -> bool:
        if self._authenticator is not None and self._authenticator.is_authenticated:
            return False
        self.drop(reason)
        return True

    def drop(self, reason: str) -> None:
        """End the connection at once, whatever is under way."""
        if self._transport is not None:
            logger.info("connection from %s is closed: %s", self.peer.host, reason)
            self._transport.abort()
            self._transport = None
        self._frames.clear()

    # Frames

    def _cut_frames(self, data: bytes | bytearray) -> int:
        """Take whole frames out of `data`, and tell where the rest begins. Behind a frame that cannot be there is
        nothing more to be understood."""
        at, length, most = 0, len(data), self._server.max_request_bytes
        if self._authenticator is not None and not self._authenticator.is_authenticated:
            most = self._server.max_bytes_before_login
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
            while self._frames and not self._is_held and self._transport is not None and self._may_begin():
                if self._turns.is_over:
                    self._wait_turn()
                    break
                frame = self._frames.popleft()
                if not self._is_prompt or not self._answer_at_once(frame):
                    self._handle(frame)
        finally:
            self._is_serving = False
            if self._answers and not self._has_answers:
                self._has_answers = True
                self._server.write_soon(self)
        if self._last_words is not None and not self._frames and not self._begun:
            self._close(self._last_words)
        if self._memory is not None:
            self._take_memory(self._memory)
        if self._is_paused and not self._is_held and not self._is_starved and not self._frames:
            self._resume_reading()

    def _wait_turn(self) -> None:
        if not self._is_queued:
            self._is_queued = True
            self._turns.wait(self._on_turn, is_heavy=self._is_heavy)

    def _on_turn(self) -> None:
        self._is_queued = self._is_heavy = False
        self._serve()

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

    def _answer_at_once(self, frame: bytes) -> bool:
        """Where most requests are of a kind that nobody has to wait for, these do without a `Call`. Whatever is unusual
        is left to the general way."""
        api_key, version, body_at = read_place(frame)
        api = self._server.apis.get(api_key)
        if api is None or api.at_once is None or not api.first <= version <= api.last:
            return False
        if self._begun or self._half_open is not None or self._quotas.is_active:
            return False
        if self._authenticator is not None:
            if refusal_of(self._authenticator, api_key) is not None:
                return False
            self.peer.principal = self._authenticator.principal
        began, broker = perf_counter(), self._server.broker
        answer = api.at_once(broker, self.peer, frame, body_at, version)
        if answer is None:
            return False
        traffic = self._traffic.apis[api_key]
        traffic.requests[version] += 1
        now = perf_counter()
        traffic.times.record(now - began)
        if now > self._turns.ends:
            self._is_heavy = self._turns.mark(now)
        self._put(answer)
        broker.wake_timers()
        return True

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
        if self._authenticator is not None:
            refusal = refusal_of(self._authenticator, api.key)
            if refusal is not None:
                self._traffic.logins.expired += refusal is EXPIRED
                self._hang_up(refusal)
                return
            self.peer.principal = self._authenticator.principal
        self._traffic.apis[api.key].requests[header.api_version] += 1
        call = self._begin(header, frame)
        try:
            api.handle(server.broker, call)
        except BadRequest as error:
            call.hang_up(str(error))
            return
        if self._half_open is not None or call.is_metered:
            self._look_after(call)
        server.broker.wake_timers()

    def _begin(self, header: RequestHeader, frame: bytes) -> Call:
        call = Call(header, frame, self.peer, self._send, self._hang_up)
        if self._quotas.is_active:
            call = MeteredCall(call, self._quotas, self.mute)
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
        now = perf_counter()
        traffic.times.record(now - call.began)
        if now > self._turns.ends:
            self._is_heavy = self._turns.mark(now)
        for code in errors:
            traffic.errors[code] = traffic.errors.get(code, 0) + 1
        call.kept_answer = body
        begun = self._begun
        while begun and begun[0].is_answered:
            first = begun.popleft()
            self._begun_bytes -= len(first.frame)
            if first.kept_answer is not None:
                self._put(first.kept_answer)
        if len(self._answers) >= _WRITE_AT_ONCE:
            self.write_out()
        self._serve()

    def _put(self, answer: bytes) -> None:
        size = len(answer)
        self._traffic.bytes_out += _FRAME_HEAD + size
        answers = self._answers
        answers += _SIZE.pack(size)
        answers += answer

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
            logger.info("connection from %s is closed: %s", self.peer.host, reason)
            self._traffic.bad_requests += 1
            self._transport.close()
            self._transport = None
        self._frames.clear()

    def close(self) -> None:
        """The server is going down; what was written still goes out."""
        self.write_out()
        if self._transport is not None:
            self._transport.close()
