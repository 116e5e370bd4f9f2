"""What a client may do (KIP-430), as bits."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kohort.broker.security.acl import CLUSTER_NAME
from kohort.broker.security.permission import ALL_OF_CLUSTER, ALL_OF_GROUPS, ALL_OF_TOPICS, DESCRIBE_CLUSTER, Permission

if TYPE_CHECKING:
    from kohort.broker.call import Call

NOT_ASKED = -(1 << 31)
NONE_AT_ALL = 0


def topic_operations(call: "Call", name: str) -> int:
    """What who asks may do with a topic, whether or not it is there."""
    return _allowed(call, ALL_OF_TOPICS, name)


def group_operations(call: "Call", group_id: str) -> int:
    return _allowed(call, ALL_OF_GROUPS, group_id)


def cluster_operations(call: "Call") -> int:
    """Nothing for whoever may not describe it."""
    return _allowed(call, ALL_OF_CLUSTER, CLUSTER_NAME) if call.may(DESCRIBE_CLUSTER) else NONE_AT_ALL


def _allowed(call: "Call", permissions: Iterable[Permission], name: str) -> int:
    return sum(1 << permission.operation for permission in permissions if call.might(permission, name))
