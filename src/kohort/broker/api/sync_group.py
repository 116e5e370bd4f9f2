"""SyncGroup (14): get the assignment; the leader brings everybody's.

1 throttle time · 3 static members (KIP-345) · 4 flexible · 5 protocol type and name, which must both be there (KIP-559)
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.security.permission import READ_GROUP
from kohort.errors import ErrorCode
from kohort.group.requests import SyncGroupRequest, SyncGroupResult

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_PROTOCOL_FROM = 5


@api(14, 0, 5, permissions=(READ_GROUP,))
def sync_group(broker: "Broker", call: "Call") -> None:
    request = call.request
    protocol_type = getattr(request, "protocol_type", None)
    protocol_name = getattr(request, "protocol_name", None)

    def respond(result: SyncGroupResult) -> None:
        call.answer(
            {
                "error_code": result.error,
                "protocol_type": result.protocol_type,
                "protocol_name": result.protocol_name,
                "assignment": result.assignment,
            }
        )

    if call.version >= _PROTOCOL_FROM and (protocol_type is None or protocol_name is None):
        respond(SyncGroupResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    if not call.may(READ_GROUP, request.group_id):
        respond(SyncGroupResult(READ_GROUP.refusal))
        return
    broker.groups.handle_sync_group(
        SyncGroupRequest(
            request.group_id,
            request.generation_id,
            request.member_id,
            getattr(request, "group_instance_id", None),
            protocol_type,
            protocol_name,
            {given.member_id: given.assignment for given in request.assignments},
        ),
        respond,
    )
