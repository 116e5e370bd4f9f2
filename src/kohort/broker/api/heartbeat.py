"""Heartbeat (12): a sign of life.

1 throttle time · 3 static members (KIP-345) · 4 flexible
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.security.permission import READ_GROUP
from kohort.group.requests import HeartbeatRequest

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(12, 0, 4, permissions=(READ_GROUP,))
def heartbeat(broker: "Broker", call: "Call") -> None:
    request = call.request
    if not call.may(READ_GROUP, request.group_id):
        call.answer({"error_code": READ_GROUP.refusal})
        return
    error = broker.groups.handle_heartbeat(
        HeartbeatRequest(
            request.group_id,
            request.member_id,
            request.generation_id,
            getattr(request, "group_instance_id", None),
        )
    )
    call.answer({"error_code": error})
