"""DeleteGroups (42): groups without members go, with their offsets.

1 throttle time · 2 flexible
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.errors import ErrorCode
from kohort.group.requests import GroupId

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(42, 0, 2)
def delete_groups(broker: "Broker", call: "Call") -> None:
    def respond(errors: Mapping[GroupId | None, ErrorCode]) -> None:
        call.answer({"results": [{"group_id": group_id, "error_code": error} for group_id, error in errors.items()]})

    broker.groups.handle_delete_groups(call.request.groups_names, respond)
