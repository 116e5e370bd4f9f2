"""Requests as they come: the header, and which schema the rest has.

Every request is a frame: its size, then API key, version, correlation id and client id, then the body. From the first
flexible version of an API on the header ends with tagged fields; the client id is an old string all the same. Answers
begin with the correlation id; those of flexible versions with tagged fields behind it, except for ApiVersions, whose
reader does not know yet what we can do.
"""

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from kohort.broker.answer_errors import FindErrors, errors_of
from kohort.broker.request_reader import Read, reader_of, skip_tags
from kohort.broker.response_writer import Write, writer_of
from kohort.broker.schemas import load_request_schema, load_response_schema
from kohort.errors import ClientError, ErrorCode
from kohort.records.primitives import Malformed

API_VERSIONS = 18

_HEAD = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")


class BadRequest(ClientError):
    """Bytes that are no request; the connection they came on is closed, as Kafka does."""

    code = ErrorCode.INVALID_REQUEST


class RequestHeader(NamedTuple):
    """Who asks what."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_at: int
    """Where the tagged fields or the body begin."""


@dataclass(frozen=True, slots=True)
class Schema:
    """One version of one API."""

    api_key: int
    version: int
    is_flexible: bool
    read: Read
    write: Write
    find_errors: FindErrors | None


@cache
def schema_of(api_key: int, version: int) -> Schema:
    """From kio; loaded when first asked for."""
    request, response = load_request_schema(api_key, version), load_response_schema(api_key, version)
    flexible, find_errors = bool(request.__flexible__), errors_of(response)
    return Schema(api_key, version, flexible, reader_of(request), writer_of(response), find_errors)


def read_header(frame: bytes) -> RequestHeader:
    """Up to the client id, which is the same in all versions."""
    if len(frame) < _HEAD.size:
        raise BadRequest(f"a request of {len(frame)} bytes")
    api_key, version, correlation_id, length = _HEAD.unpack_from(frame)
    end = _HEAD.size + max(length, 0)
    if end > len(frame):
        raise BadRequest("a client id that is longer than its request")
    client_id = None if length < 0 else str(frame[_HEAD.size : end], "utf-8", "replace")
    return RequestHeader(api_key, version, correlation_id, client_id, end)


def read_place(frame: bytes) -> tuple[int, int, int]:
    """The API's key, the version, and where the body begins or the header's tagged fields: in the frame, if it is a
    request."""
    if len(frame) < _HEAD.size:
        return -1, -1, _HEAD.size
    api_key, version, _, length = _HEAD.unpack_from(frame)
    return api_key, version, _HEAD.size + length if length > 0 else _HEAD.size


def read_body(frame: bytes, header: RequestHeader, schema: Schema) -> Any:
    """The request itself."""
    try:
        at = skip_tags(frame, header.body_at) if schema.is_flexible else header.body_at
        body, _ = schema.read(frame, at)
    except Malformed as error:
        raise BadRequest(f"API {header.api_key}, version {header.api_version}: {error}") from error
    return body


def response_head(header: RequestHeader, schema: Schema) -> bytes:
    """What stands before the body of an answer."""
    correlation = _CORRELATION.pack(header.correlation_id)
    return correlation + b"\0" if schema.is_flexible and header.api_key != API_VERSIONS else correlation
