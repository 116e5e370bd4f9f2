"""ApiVersions (18): what this broker can do.

0 the list · 1 throttle time · 2 nothing new · 3 flexible, the client's name and version (KIP-511) · 4 nothing for us
"""

import re
from functools import cache
from typing import TYPE_CHECKING

from kohort.broker.api import all_apis, api
from kohort.broker.wire import API_VERSIONS, schema_of
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


_SOFTWARE_FROM = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""What a client may call itself and its version."""


@api(18, 0, 4)
def api_versions(_: "Broker", call: "Call") -> None:
    request = call.request
    if call.version >= _SOFTWARE_FROM and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        call.answer({"error_code": ErrorCode.INVALID_REQUEST, "api_keys": ()})
        return
    call.answer_body(_body(call.version))


@cache
def _body(version: int) -> bytes:
    """Every connection begins with this question, and the answer never changes."""
    keys = [
        {"api_key": known.key, "min_version": known.told_from, "max_version": known.last}
        for known in all_apis().values()
    ]
    out = bytearray()
    schema_of(API_VERSIONS, version).write(out, {"error_code": ErrorCode.NONE, "api_keys": keys})
    return bytes(out)
