"""Who says that it is another broker: a consumer that says so must not get more than consumers do (CVE-2018-1288)."""

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from kohort.broker.security.permission import CLUSTER_ACTION, Permission

if TYPE_CHECKING:
    from kohort.broker.call import Call


def refused_topics(
    call: "Call", replica_id: int, permission: Permission, names: Iterable[str | None]
) -> Container[str | None]:
    """The topics that who asks may not have. A broker, whose number is not below 0, needs CLUSTER_ACTION for any."""
    if replica_id < 0:
        return call.refused(permission, names)
    return () if call.may(CLUSTER_ACTION) else set(names)
