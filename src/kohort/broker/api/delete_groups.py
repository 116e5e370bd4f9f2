"""DeleteGroups (42): groups without members go, with their offsets.

1 throttle time · 2 flexible
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.security.permission import DELETE_GROUP
from kohort.errors import ErrorCode
from kohort.group.requests import GroupId

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(42, 0, 2, permissions=(DELETE_GROUP,))
def delete_groups(broker: "Broker", call: "Call") -> None:
    names = dict.fromkeys(call.request.groups_names)
    refused = call.refused(DELETE_GROUP, names)

    def respond(errors: Mapping[GroupId | None, ErrorCode]) -> None:
        told = {name: DELETE_GROUP.refusal if name in refused else errors[name] for name in names}
        call.answer({"results": [{"group_id": name, "error_code": error} for name, error in told.items()]})

    broker.groups.handle_delete_groups([name for name in names if name not in refused], respond)
