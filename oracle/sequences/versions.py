"""ApiVersions, and requests that are none."""

import struct
from typing import Any

from oracle.apis import Api
from oracle.sequences import for_versions, sequence
from oracle.talk import Talk

COORDINATORS = {
    Api.OFFSET_COMMIT: (2, 8),
    Api.OFFSET_FETCH: (1, 7),
    Api.FIND_COORDINATOR: (0, 3),
    Api.JOIN_GROUP: (0, 7),
    Api.HEARTBEAT: (0, 4),
    Api.LEAVE_GROUP: (0, 4),
    Api.SYNC_GROUP: (0, 5),
    Api.DESCRIBE_GROUPS: (0, 5),
    Api.LIST_GROUPS: (0, 4),
    Api.API_VERSIONS: (0, 3),
    Api.INIT_PRODUCER_ID: (0, 3),
    Api.ADD_PARTITIONS_TO_TXN: (0, 1),
    Api.ADD_OFFSETS_TO_TXN: (0, 1),
    Api.END_TXN: (0, 1),
    Api.TXN_OFFSET_COMMIT: (0, 3),
    Api.DELETE_GROUPS: (0, 2),
    Api.OFFSET_DELETE: (0, 0),
}
"""What 2.6 serves of what clients still speak. More is welcome."""


def covered(answer: Any) -> dict[str, Any]:
    served = {known.api_key: (known.min_version, known.max_version) for known in answer.api_keys}
    return {"error": answer.error_code} | {
        api.title: served[api][0] <= first and last <= served[api][1] for api, (first, last) in COORDINATORS.items()
    }


@for_versions(0, 1, 2, 3)
def api_versions(talk: Talk, version: int) -> None:
    caller = talk.client()
    values = {"client_software_name": "oracle", "client_software_version": "1"} if version >= 3 else {}
    caller.send(Api.API_VERSIONS, version, **values)
    caller.receive_only(covered)


@sequence
def api_versions_of_a_newer_client(talk: Talk) -> None:
    """Answered in version 0, with the range of this one API."""
    caller = talk.client()
    caller.send_bytes(struct.pack(">hhih", Api.API_VERSIONS, 99, 7, -1) + b"\0\1\1\0")
    caller.receive_bytes("ApiVersions v99", lambda frame: frame[:14])


@sequence
def api_versions_with_a_bad_name(talk: Talk) -> None:
    caller = talk.client()
    for name, version in (("", "1"), ("with space", "1"), ("ok", ""), ("-ok", "1"), ("ok", "1?")):
        caller.send(Api.API_VERSIONS, 3, client_software_name=name, client_software_version=version)
        caller.receive_only(lambda answer: answer.error_code)


@sequence
def versions_that_nobody_serves(talk: Talk) -> None:
    for api in (*COORDINATORS, 999, -1):
        if api != Api.API_VERSIONS:
            caller = talk.client()
            caller.send_bytes(struct.pack(">hhih", api, 99, 7, -1) + b"\0" * 32)
            caller.receive_bytes(f"API {api:d} v99")
            caller = talk.client()
            caller.send_bytes(struct.pack(">hhih", api, -1, 7, -1) + b"\0" * 32)
            caller.receive_bytes(f"API {api:d} v-1")


@sequence
def versions_of_requests_that_are_cut_off(talk: Talk) -> None:
    for api in COORDINATORS:
        caller = talk.client()
        caller.send_bytes(struct.pack(">hhih", api, 0 if api != Api.OFFSET_COMMIT else 2, 7, -1) + b"\0\5ab")
        caller.receive_bytes(f"API {api:d}, cut off", lambda frame: len(frame) > 4)
