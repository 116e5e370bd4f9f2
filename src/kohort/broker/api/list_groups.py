"""ListGroups (16): all groups.

Who may not see all of them is told of those that he may see.

1 throttle time · 3 flexible · 4 states, and only groups in some of them (KIP-518) · 5 types (KIP-848): ours are all
"classic"
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.security.permission import DESCRIBE_CLUSTER, DESCRIBE_GROUP

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_CLASSIC = "classic"


@api(16, 0, 5, permissions=(DESCRIBE_CLUSTER, DESCRIBE_GROUP))
def list_groups(broker: "Broker", call: "Call") -> None:
    states = frozenset(getattr(call.request, "states_filter", ()))
    types = {name.lower() for name in getattr(call.request, "types_filter", ())}
    error, groups = broker.groups.handle_list_groups(states)
    sees_all = call.might(DESCRIBE_CLUSTER)
    told = [
        {
            "group_id": group.group_id,
            "protocol_type": group.protocol_type,
            "group_state": group.state,
            "group_type": _CLASSIC,
        }
        for group in groups
        if (not types or _CLASSIC in types) and (sees_all or call.might(DESCRIBE_GROUP, group.group_id))
    ]
    call.answer({"error_code": error, "groups": told})
