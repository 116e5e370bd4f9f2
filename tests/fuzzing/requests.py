"""Targets: what comes on a connection. Frames with their lengths, headers, and the bodies of every API and version.

Nothing but `BadRequest` may come of bytes that are no request, and a connection makes of that its own end.
"""

import asyncio
import random
import struct
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kohort.broker.api import all_apis
from kohort.broker.broker import Broker
from kohort.broker.connection import Connection
from kohort.broker.response_writer import writer_of
from kohort.broker.schemas import load_request_schema
from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig
from kohort.broker.wire import BadRequest, read_body, read_header, schema_of
from kohort.clock import VirtualClock
from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.log.simulated_files import SimulatedFiles
from tests.broker.random_requests import random_entity
from tests.fuzzing.target import target

if TYPE_CHECKING:
    from kohort.broker.call import Call

_APIS = list(all_apis().values())
_HEAD = struct.Struct(">hhih")
_SIZE = struct.Struct(">i")
_FLEXIBLE_TAGS = b"\0"


class _Line(asyncio.Transport):
    """The other end of a connection: nobody is there, but it is known when it was closed."""

    is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("fuzzer", 0) if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """What is answered is of no interest here."""

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        """All is here already."""

    def resume_reading(self) -> None:
        """All is here already."""


class _Listener:
    """A server whose handlers read requests and do no more."""

    def __init__(self) -> None:
        config = BrokerConfig(port=0, data="/memory", log_flush_mode=FlushMode.OS)
        loop = asyncio.new_event_loop()
        broker = Broker(config, SimulatedFiles(), VirtualClock(), loop, on_failure=_fail)
        broker.turns.never_end()  # nothing runs on this loop
        self._server = Server(broker, loop)
        self._server.apis = {
            key: replace(api, handle=self._handle, at_once=None) for key, api in self._server.apis.items()
        }
        self._read: list[str] = []

    def _handle(self, _: Broker, call: "Call") -> None:
        self._read.append(f"{call.api_key} {call.version} {call.client_id} {call.request!r}")
        call.answer_nothing()

    def hear(self, stream: bytes, piece: int) -> tuple[list[str], bool]:
        """The requests in a stream that arrives in pieces, and whether the connection was closed."""
        self._read = []
        line = _Line()
        connection = Connection(self._server)
        connection.connection_made(line)
        for at in range(0, len(stream), piece):
            connection.data_received(stream[at : at + piece])
        connection.connection_lost(None)
        return self._read, line.is_closed


def _fail(failure: StorageFailed) -> None:
    raise failure


_listener = _Listener()


def frames_of_every_version() -> Iterator[tuple[int, int, bytes]]:
    """API by its place among all, version by its place among those served, and a body."""
    noise = random.Random(1)
    for index, api in enumerate(_APIS):
        for version in range(api.first, api.last + 1):
            schema = load_request_schema(api.key, version)
            out = bytearray()
            writer_of(schema)(out, _plain(random_entity(schema, noise)))
            yield index, version - api.first, (_FLEXIBLE_TAGS if schema.__flexible__ else b"") + bytes(out)


def _plain(value: Any) -> Any:
    """Values of kio's or of our reader's as the writer takes them: dictionaries, lists, milliseconds."""
    if isinstance(value, SimpleNamespace):
        return {name: _plain(inner) for name, inner in vars(value).items()}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "total_seconds"):
        return round(value.total_seconds() * 1000)
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * 1000)
    return value


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    return _HEAD.pack(api_key, version, 7, 1) + b"c" + body


def _request_seeds() -> Iterator[bytes]:
    for index, version, body in frames_of_every_version():
        yield bytes([index, version]) + body


def _stream_seeds() -> Iterator[bytes]:
    for index, version, body in frames_of_every_version():
        frame = _frame(_APIS[index].key, _APIS[index].first + version, body)
        yield b"\x03" + (_SIZE.pack(len(frame)) + frame) * 2


@target("requests", _request_seeds)
def fuzz_request(data: bytes) -> None:
    """The first byte chooses the API, the second the version, the others are what follows on the client id."""
    if len(data) < 2:
        return
    api = _APIS[data[0] % len(_APIS)]
    version = api.first + data[1] % (api.last - api.first + 1)
    schema, write = schema_of(api.key, version), writer_of(load_request_schema(api.key, version))
    frame = _frame(api.key, version, data[2:])
    try:
        request = read_body(frame, read_header(frame), schema)
    except BadRequest:
        return
    values, out = _plain(request), bytearray()
    write(out, values)
    again = _frame(api.key, version, (_FLEXIBLE_TAGS if schema.is_flexible else b"") + bytes(out))
    # Compared as text, for NaN is not the same as itself.
    assert repr(_plain(read_body(again, read_header(again), schema))) == repr(values)


@target("connections", _stream_seeds)
def fuzz_connection(data: bytes) -> None:
    """A stream in one piece, and in pieces as long as the first byte says: the same requests, and the same end."""
    if data:
        whole = _listener.hear(data[1:], len(data))
        assert _listener.hear(data[1:], data[0] + 1) == whole
