"""Requests and answers in the newest version that both sides know, over the connections of a client library.

The library knows no newer versions than it needs itself; so what is sent and what comes back is written and read by
the schemas that the broker uses too. A field that a version does not have is passed over.
"""

import struct
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

from kohort.broker.request_reader import Read, reader_of, skip_tags
from kohort.broker.response_writer import Write, writer_of
from kohort.broker.schemas import load_request_schema, load_response_schema
from kohort.errors import KohortError
from kohort.records.primitives import Malformed, utf8

_HEAD = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_MOST_ENTRIES = 20_000_000
"""Of one answer; a cluster is trusted further than whoever connects to a broker."""


class NotSpoken(KohortError):
    """A request that a broker has no version of that we know."""


class BadMessage(KohortError):
    """What no request can hold, or an answer that cannot be read."""


class Api(NamedTuple):
    """A kind of request, and the versions that are spoken here."""

    name: str
    key: int
    first: int
    last: int


PRODUCE = Api("Produce", 0, 3, 12)
FETCH = Api("Fetch", 1, 4, 12)
LIST_OFFSETS = Api("ListOffsets", 2, 1, 7)
OFFSET_COMMIT = Api("OffsetCommit", 8, 2, 9)
OFFSET_FETCH = Api("OffsetFetch", 9, 2, 7)
FIND_COORDINATOR = Api("FindCoordinator", 10, 0, 3)
DESCRIBE_GROUPS = Api("DescribeGroups", 15, 0, 5)
LIST_GROUPS = Api("ListGroups", 16, 0, 5)
CREATE_TOPICS = Api("CreateTopics", 19, 2, 7)
DESCRIBE_ACLS = Api("DescribeAcls", 29, 1, 3)
CREATE_ACLS = Api("CreateAcls", 30, 1, 3)
DELETE_ACLS = Api("DeleteAcls", 31, 1, 3)
DESCRIBE_CONFIGS = Api("DescribeConfigs", 32, 1, 4)
DELETE_GROUPS = Api("DeleteGroups", 42, 0, 2)
INCREMENTAL_ALTER_CONFIGS = Api("IncrementalAlterConfigs", 44, 0, 1)
OFFSET_DELETE = Api("OffsetDelete", 47, 0, 0)
DESCRIBE_CLIENT_QUOTAS = Api("DescribeClientQuotas", 48, 0, 1)
ALTER_CLIENT_QUOTAS = Api("AlterClientQuotas", 49, 0, 1)
CONSUMER_GROUP_DESCRIBE = Api("ConsumerGroupDescribe", 69, 0, 1)


@cache
def _schemas(api: Api, version: int) -> tuple[bool, Write, Read]:
    request, response = load_request_schema(api.key, version), load_response_schema(api.key, version)
    return bool(request.__flexible__), writer_of(request), reader_of(response, _MOST_ENTRIES)


class Ask:
    """A request as the library's connections take it; the answer comes back as `Answer`."""

    def __init__(self, api: Api, values: dict[str, Any]) -> None:
        self._api = api
        self._values = values

    def prepare(self, versions: dict[int, tuple[int, int]]) -> "_Prepared":
        """The library tells what the broker knows."""
        first, last = versions.get(self._api.key, (0, -1))
        version = min(last, self._api.last)
        if version < max(first, self._api.first):
            raise NotSpoken(f"the broker does not take {self._api.name} in any version that is known here")
        return _Prepared(self._api, version, self._values)


class Answer(NamedTuple):
    """An answer that has not been read yet: what cannot be read must not end the library's own reading."""

    api: Api
    version: int
    data: bytes

    def read(self) -> Any:
        flexible, _, read = _schemas(self.api, self.version)
        try:
            body, _ = read(self.data, skip_tags(self.data, 0) if flexible else 0)
        except Malformed as error:
            what = f"the answer to {self.api.name}, version {self.version}"
            raise BadMessage(f"{what}, cannot be read: {error}") from None
        return body


class _Prepared:
    """The names are those that the library calls."""

    def __init__(self, api: Api, version: int, values: dict[str, Any]) -> None:
        self._api = api
        self._version = version
        self._values = values
        self.RESPONSE_TYPE = self

    def build_request_header(self, correlation_id: int, client_id: str) -> "_Header":
        flexible, *_ = _schemas(self._api, self._version)
        name = utf8(client_id)
        head = _HEAD.pack(self._api.key, self._version, correlation_id, len(name)) + name
        return _Header(correlation_id, head + b"\0" if flexible else head)

    def encode(self) -> bytes:
        _, write, _ = _schemas(self._api, self._version)
        out = bytearray()
        try:
            write(out, self._values)
        except struct.error:
            raise BadMessage(f"{self._api.name} cannot hold a name or a number that large") from None
        return bytes(out)

    def parse_response_header(self, stream: BytesIO) -> "_Header":
        (correlation_id,) = _CORRELATION.unpack(stream.read(_CORRELATION.size))
        return _Header(correlation_id, b"")

    def decode(self, stream: BytesIO) -> Answer:
        return Answer(self._api, self._version, stream.read())


class _Header(NamedTuple):
    correlation_id: int
    data: bytes

    def encode(self) -> bytes:
        return self.data
