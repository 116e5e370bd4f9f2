"""A client that speaks the wire protocol with kio's own writers and readers, and knows nothing of ours."""

import io
import select
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, Self, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

_ZEROS: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": UUID(int=0),
    "float64": 0.0,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE_S = 30.0


class Closed(Exception):
    """The broker has closed the connection; so many of so many bytes came."""

    is_between_frames = False


class WireClient:
    """One connection. Times are given as milliseconds and come back as kio tells them."""

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        *,
        client_id: str | None = "wire-client",
        tls: ssl.SSLContext | None = None,
        name: str = "localhost",
    ) -> None:
        """With `tls` the broker must have a certificate for `name`."""
        self._socket = socket.create_connection((host, port), timeout=_PATIENCE_S)
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=name)
            except OSError:
                self._socket.close()
                raise
        self._client_id = client_id
        self._correlation_id = 0
        self._asked: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, api_key: int, version: int, **values: Any) -> Any:
        """The answer to a request; a field that is not given has its default, else nothing or zero."""
        self.send(api_key, version, **values)
        return self.receive()

    def send(self, api_key: int, version: int, **values: Any) -> int:
        """Send a request without waiting for its answer. Returns its correlation id."""
        self._correlation_id += 1
        self._asked[self._correlation_id] = (api_key, version)
        self.send_frame(request_bytes(api_key, version, self._correlation_id, self._client_id, values))
        return self._correlation_id

    def receive(self) -> Any:
        """The next answer."""
        return self.receive_with_id()[1]

    def receive_with_id(self) -> tuple[int, Any]:
        """The next answer and the correlation id that it carries."""
        frame = self.receive_frame()
        correlation_id = int.from_bytes(frame[:4], "big")
        return correlation_id, read_answer(*self._asked.pop(correlation_id), frame)

    def has_answer(self) -> bool:
        """Whether something has come that was not received yet."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def send_frame(self, frame: bytes) -> None:
        self.send_raw(len(frame).to_bytes(4, "big") + frame)

    def send_raw(self, data: bytes) -> None:
        """Bytes as they are, without a length before them."""
        self._socket.sendall(data)

    def send_until_it_blocks(self, data: bytes, *, limit: int) -> int:
        """Send the same bytes over and over, until the broker takes no more for a while or `limit` is reached."""
        sent = 0
        self._socket.settimeout(1.0)
        try:
            while sent < limit:
                self._socket.sendall(data)
                sent += len(data)
        except TimeoutError:
            pass
        finally:
            self._socket.settimeout(_PATIENCE_S)
        return sent

    def finish_sending(self) -> None:
        """Tell the broker that nothing more will come."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive_frame(self) -> bytes:
        """The next answer without its length; `Closed` if the connection ended instead."""
        try:
            size = self._exactly(4)
        except Closed as end:
            end.is_between_frames = end.args[0] == 0
            raise
        return self._exactly(int.from_bytes(size, "big"))

    def remaining_frames(self) -> Iterator[bytes]:
        """Every answer up to the end of the connection; `Closed` if that comes in the middle of one."""
        while True:
            try:
                frame = self.receive_frame()
            except Closed as end:
                if end.is_between_frames:
                    return
                raise
            yield frame

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                more = self._socket.recv(min(count - len(data), 1 << 20))
            except ConnectionError as error:
                raise Closed(len(data), count) from error
            if not more:
                raise Closed(len(data), count)
            data += more
        return bytes(data)


def request_bytes(
    api_key: int, version: int, correlation_id: int, client_id: str | None, values: Mapping[str, Any]
) -> bytes:
    """A whole request, header and body."""
    schema = _request_schema(api_key, version)
    head = schema.__header_schema__
    known = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    out = io.BytesIO()
    entity_writer(head)(out, head(**{name: known[name] for name in _fields_of(head)}))
    entity_writer(schema)(out, entity(schema, values))
    return out.getvalue()


def read_answer(api_key: int, version: int, frame: bytes) -> Any:
    """What an answer says; an error if bytes are missing or left over."""
    schema = _response_schema(api_key, version)
    _, size = entity_reader(schema.__header_schema__)(frame, 0)
    answer, more = entity_reader(schema)(frame, size)
    if size + more != len(frame):
        raise ValueError(f"{len(frame) - size - more} bytes behind the answer to API {api_key}, version {version}")
    return answer


def entity(schema: type[Any], values: Mapping[str, Any]) -> Any:
    """Plain dictionaries and lists as kio's values; a name that this version does not have is an error."""
    known = _fields_of(schema)
    if unknown := values.keys() - known.keys():
        raise TypeError(f"{schema.__module__} has no {', '.join(sorted(unknown))}")
    return schema(**{name: _field_value(name, known[name], values) for name in known})


@cache
def _request_schema(api_key: int, version: int) -> Any:
    return load_request_schema(api_key, version)


@cache
def _response_schema(api_key: int, version: int) -> Any:
    return load_response_schema(api_key, version)


class _Field(NamedTuple):
    """What is known of a field from its type."""

    default: Any
    kafka_type: str | None
    element: Any
    is_nullable: bool
    is_array: bool


@cache
def _fields_of(schema: type[Any]) -> dict[str, _Field]:
    hints = get_type_hints(schema)
    return {field.name: _known_of(field, hints[field.name]) for field in fields(schema)}


def _known_of(field: "Field[Any]", hint: Any) -> _Field:
    arguments = get_args(hint)
    is_nullable = type(None) in arguments
    if is_nullable:
        hint = next(argument for argument in arguments if argument is not type(None))
    is_array = get_origin(hint) is tuple
    element = get_args(hint)[0] if is_array else hint
    return _Field(field.default, field.metadata.get("kafka_type"), element, is_nullable, is_array)


def _field_value(name: str, field: _Field, values: Mapping[str, Any]) -> Any:
    default, kafka_type, element, is_nullable, is_array = field
    if name not in values:
        if default is not MISSING:
            return default
        return _nothing(kafka_type, element, is_nullable=is_nullable, is_array=is_array)
    value = values[name]
    if value is None:
        return None
    if is_array:
        return tuple(_single(kafka_type, element, entry) for entry in value)
    return _single(kafka_type, element, value)


def _nothing(kafka_type: str | None, element: Any, *, is_nullable: bool, is_array: bool) -> Any:
    if is_nullable:
        return None
    if is_array:
        return ()
    return entity(element, {}) if kafka_type is None else _single(kafka_type, element, _ZEROS.get(kafka_type, 0))


def _single(kafka_type: str | None, element: Any, value: Any) -> Any:
    if kafka_type is None:
        return entity(element, value)
    if kafka_type.startswith("timedelta") and not isinstance(value, timedelta):
        return timedelta(milliseconds=value)
    if kafka_type.startswith("datetime") and not isinstance(value, datetime):
        return _EPOCH + timedelta(milliseconds=value)
    return value
