"""How much memory the members of groups take: what they say of themselves, and what they are assigned.

Kafka limits the number of a group's members and nothing else, so a few members with large subscriptions can take all
the memory of a broker. Here a group may take `group.max.bytes`, all groups together `group.coordinator.max.bytes`, and
both are asked before anything is kept. Ids that were handed out and not come back with count too.
"""

from kohort.group.requests import JoinGroupRequest, Protocols

MEMBER_OVERHEAD = 1_024
"""What a member takes beside that: its names, its timer, its place."""
_UUID = 37
"""What is added to one of its names."""


class GroupMemory:
    """Bytes of all groups that count together."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0


def protocols_size(protocols: Protocols) -> int:
    return sum(len(name) + len(metadata) for name, metadata in protocols)


def newcomer_size(request: JoinGroupRequest) -> int:
    """What a member will take that is none yet; its id is made of one of its names."""
    names = len(request.client_id or "") + len(request.group_instance_id or "")
    return MEMBER_OVERHEAD + _UUID + 2 * names + protocols_size(request.protocols)
