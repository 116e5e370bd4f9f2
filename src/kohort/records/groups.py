"""A group as a coordinator holds it after a load, whatever its type."""

from dataclasses import dataclass

from kohort.records.offsets_topic import GroupMetadataValue

EMPTY, STABLE = "Empty", "Stable"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group; what its group's type does not keep is None."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None = None
    rebalance_timeout: int | None = None
    session_timeout: int | None = None
    subscription: bytes | None = None
    assignment: bytes | None = None
    topics: tuple[str, ...] | None = None
    topic_ids: tuple[tuple[str, int], ...] | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group as loaded. The generation of a newer type of group is its epoch."""

    type: str = "classic"
    state: str = EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    state_timestamp: int = -1
    members: tuple[Member, ...] = ()


def classic_group(value: GroupMetadataValue) -> Group:
    """A classic group with members is loaded as Stable: it was written at the end of a rebalance."""
    members = tuple(
        Member(
            member_id=member.member_id,
            client_id=member.client_id,
            client_host=member.client_host,
            instance_id=member.group_instance_id,
            rebalance_timeout=member.rebalance_timeout,
            session_timeout=member.session_timeout,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in value.members
    )
    return Group(
        type="classic",
        state=STABLE if members else EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol=value.protocol,
        leader=value.leader,
        state_timestamp=value.current_state_timestamp,
        members=members,
    )
