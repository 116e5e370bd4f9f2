"""DescribeGroups (15): groups and their members.

1 throttle time · 3 what the client may do (KIP-430) · 4 static members (KIP-345) · 5 flexible · 6 a group that is not
there is an error (KIP-1043)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.operations import NOT_ASKED, group_operations
from kohort.broker.security.permission import ALL_OF_GROUPS, DESCRIBE_GROUP
from kohort.errors import ErrorCode
from kohort.group.requests import GroupSummary
from kohort.group.states import GroupState

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_NOT_FOUND_FROM = 6
_LONGEST_STRING = 0x7FFF
_END = 100


@api(15, 0, 6, permissions=(DESCRIBE_GROUP,), tells=ALL_OF_GROUPS)
def describe_groups(broker: "Broker", call: "Call") -> None:
    call.answer({"groups": [_described(broker, call, group_id) for group_id in call.request.groups]})


def _described(broker: "Broker", call: "Call", group_id: Any) -> dict[str, Any]:
    is_asked, message = getattr(call.request, "include_authorized_operations", False), None
    if call.may(DESCRIBE_GROUP, group_id):
        error, summary = broker.groups.handle_describe_group(group_id)
    else:
        error, summary = DESCRIBE_GROUP.refusal, GroupSummary("")
    if call.version >= _NOT_FOUND_FROM and error is ErrorCode.NONE and summary.state == GroupState.DEAD.value:
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
        "authorized_operations": group_operations(call, group_id) if is_asked and not error else NOT_ASKED,
    }


def _not_found(group_id: str) -> str:
    """Kafka's sentence, without the middle of a name that would make it longer than a string may be."""
    told = f"Group {group_id} not found."
    return told if len(told.encode()) <= _LONGEST_STRING else f"Group {group_id[:_END]}…{group_id[-_END:]} not found."
