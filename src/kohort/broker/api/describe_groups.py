"""DescribeGroups (15): groups and their members.

1 throttle time · 3 what the client may do (KIP-430) · 4 static members (KIP-345) · 5 flexible · 6 a group that is not
there is an error (KIP-1043)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.errors import ErrorCode
from kohort.group.states import GroupState

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_NOT_FOUND_FROM = 6
_LONGEST_STRING = 0x7FFF
_END = 100
_NOT_ASKED = -(1 << 31)
_OPERATIONS = 328
"""READ, DELETE and DESCRIBE as bits: what 2.6 tells whoever may do everything."""


@api(15, 0, 6)
def describe_groups(broker: "Broker", call: "Call") -> None:
    operations = _OPERATIONS if getattr(call.request, "include_authorized_operations", False) else _NOT_ASKED
    groups = [_described(broker, group_id, call.version) for group_id in call.request.groups]
    call.answer({"groups": [{**group, "authorized_operations": operations} for group in groups]})


def _described(broker: "Broker", group_id: Any, version: int) -> dict[str, Any]:
    error, summary = broker.groups.handle_describe_group(group_id)
    message = None
    if version >= _NOT_FOUND_FROM and error is ErrorCode.NONE and summary.state == GroupState.DEAD.value:
        error, message = ErrorCode.GROUP_ID_NOT_FOUND, _not_found(group_id)
    return {
        "error_code": error,
        "error_message": message,
        "group_id": group_id,
        "group_state": summary.state,
        "protocol_type": summary.protocol_type,
        "protocol_data": summary.protocol,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata,
                "member_assignment": member.assignment,
            }
            for member in summary.members
        ],
    }


def _not_found(group_id: str) -> str:
    """Kafka's sentence, without the middle of a name that would make it longer than a string may be."""
    told = f"Group {group_id} not found."
    return told if len(told.encode()) <= _LONGEST_STRING else f"Group {group_id[:_END]}…{group_id[-_END:]} not found."
