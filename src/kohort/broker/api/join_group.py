"""JoinGroup (11): become a member of a group, or come again.

0 a session timeout · 1 a rebalance timeout · 4 a member id must be asked for first (KIP-394) · 5 static members
(KIP-345) · 6 flexible · 7 the protocol type in the answer · 8 a reason (KIP-800) · 9 the leader may be told to make no
assignment (KIP-814), which is not done
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.security.permission import READ_GROUP
from kohort.group.requests import UNKNOWN_MEMBER_ID, JoinGroupRequest, JoinGroupResult

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_NULL_PROTOCOL_FROM = 7
_MEMBER_ID_REQUIRED_FROM = 4


@api(11, 0, 9, permissions=(READ_GROUP,))
def join_group(broker: "Broker", call: "Call") -> None:
    request = call.request
    instance_id = getattr(request, "group_instance_id", None)

    def respond(result: JoinGroupResult) -> None:
        is_old = call.version < _NULL_PROTOCOL_FROM
        call.answer(
            {
                "error_code": result.error,
                "generation_id": result.generation_id,
                "protocol_type": result.protocol_type,
                "protocol_name": (result.protocol_name or "") if is_old else result.protocol_name,
                "leader": result.leader_id,
                "member_id": result.member_id,
                "members": [member._asdict() for member in result.members],
            }
        )

    if not call.may(READ_GROUP, request.group_id):
        respond(JoinGroupResult(READ_GROUP.refusal, UNKNOWN_MEMBER_ID))
        return
    broker.groups.handle_join_group(
        JoinGroupRequest(
            request.group_id,
            request.member_id,
            instance_id,
            call.client_id,
            call.client_host,
            request.session_timeout,
            getattr(request, "rebalance_timeout", request.session_timeout),
            request.protocol_type,
            tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
            call.version >= _MEMBER_ID_REQUIRED_FROM and instance_id is None,
        ),
        respond,
    )
