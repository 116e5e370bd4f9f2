"""LeaveGroup (13): one member or several go.

0 one member · 1 throttle time · 3 several, static ones by their instance (KIP-345) · 4 flexible · 5 a reason (KIP-800)
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.security.permission import READ_GROUP
from kohort.errors import ErrorCode
from kohort.group.requests import LeaveGroupRequest, MemberIdentity

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_BATCH_FROM = 3


@api(13, 0, 5, permissions=(READ_GROUP,))
def leave_group(broker: "Broker", call: "Call") -> None:
    request = call.request
    if not call.may(READ_GROUP, request.group_id):
        call.answer({"error_code": READ_GROUP.refusal, "members": ()})
        return
    is_batch = call.version >= _BATCH_FROM
    leaving = (
        [MemberIdentity(member.member_id, member.group_instance_id) for member in request.members]
        if is_batch
        else [MemberIdentity(request.member_id)]
    )
    result = broker.groups.handle_leave_group(LeaveGroupRequest(request.group_id, tuple(leaving)))
    error = result.error
    if not is_batch and error is ErrorCode.NONE and result.members:
        error = result.members[0].error
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "error_code": member.error,
        }
        for member in result.members
    ]
    call.answer({"error_code": error, "members": members})
