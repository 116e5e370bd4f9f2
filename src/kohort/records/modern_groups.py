"""Consumer (KIP-848), share (KIP-932) and streams (KIP-1071) groups, put together from their last records.

Each record tells one thing of a group (its epoch, a member, a member's assignment); a 4.x broker derives the rest, and
so do we: the state of a group follows from its epochs and those of its members.
"""

import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kohort.records.groups import EMPTY, STABLE, Group, Member
from kohort.records.offsets_topic import CoordinatorKey, CoordinatorValue

ASSIGNING, RECONCILING, NOT_READY = "Assigning", "Reconciling", "NotReady"

_MEMBER_STABLE = 0
_DEFAULT_ASSIGNOR = {"consumer": "uniform", "share": "simple", "streams": None}

# Which record type tells what, by type of group.
_GROUP_RECORDS = {3: "consumer", 11: "share", 17: "streams"}
_MEMBER_RECORDS = {5: "consumer", 10: "share", 19: "streams"}
_CURRENT_RECORDS = {8: "consumer", 14: "share", 22: "streams"}
_TARGET_RECORDS = {6: "consumer", 12: "share", 20: "streams"}
_TOPOLOGY_RECORD = 23


@dataclass(slots=True)
class _Parts:
    """The records of one group, by what they tell."""

    type: str = ""
    group: dict[str, Any] = field(default_factory=dict)
    assignment_epoch: int = 0
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    current: dict[str, dict[str, Any]] = field(default_factory=dict)
    topology_epoch: int | None = None


class ModernGroups:
    """Collects the standing records of newer groups of one partition."""

    def __init__(self) -> None:
        self._parts: dict[str, _Parts] = {}

    @staticmethod
    def is_group(key: CoordinatorKey) -> bool:
        """Whether the record is the one that a group lives and dies with."""
        return key.version in _GROUP_RECORDS

    def add(self, key: CoordinatorKey, value: CoordinatorValue) -> None:
        parts = self._parts.setdefault(key.group, _Parts())
        fields: dict[str, Any] = value.fields
        if key.version in _GROUP_RECORDS:
            parts.type, parts.group = _GROUP_RECORDS[key.version], fields
        elif key.version in _MEMBER_RECORDS:
            parts.members[str(key.fields["member_id"])] = fields
        elif key.version in _CURRENT_RECORDS:
            parts.current[str(key.fields["member_id"])] = fields
        elif key.version in _TARGET_RECORDS:
            parts.assignment_epoch = fields["assignment_epoch"]
        elif key.version == _TOPOLOGY_RECORD:
            parts.topology_epoch = fields["epoch"]

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Every group whose own record stands; what is left of others is no group."""
        for group_id, parts in self._parts.items():
            if parts.type:
                yield group_id, _group(parts)


def _group(parts: _Parts) -> Group:
    return Group(
        type=parts.type,
        state=_state(parts),
        generation=parts.group["epoch"],
        protocol_type=parts.type,
        protocol=_assignor(parts),
        members=tuple(_member(member_id, parts) for member_id in parts.members),
    )


def _state(parts: _Parts) -> str:
    if not parts.members:
        return EMPTY
    if parts.type == "share":
        return STABLE
    if parts.type == "streams" and parts.group["validated_topology_epoch"] != parts.topology_epoch:
        return NOT_READY
    if parts.group["epoch"] > parts.assignment_epoch:
        return ASSIGNING
    settled = (
        current["state"] == _MEMBER_STABLE and current["member_epoch"] == parts.assignment_epoch
        for current in (parts.current.get(member_id) for member_id in parts.members)
        if current is not None
    )
    return STABLE if all(settled) and parts.members.keys() <= parts.current.keys() else RECONCILING


def _assignor(parts: _Parts) -> str | None:
    """The server-side assignor that most members ask for."""
    votes = Counter(name for member in parts.members.values() if (name := member.get("server_assignor")))
    return votes.most_common(1)[0][0] if votes else _DEFAULT_ASSIGNOR[parts.type]


def _member(member_id: str, parts: _Parts) -> Member:
    metadata = parts.members[member_id]
    current = parts.current.get(member_id, {})
    classic = metadata.get("classic_member_metadata") or {}
    return Member(
        member_id=member_id,
        client_id=metadata["client_id"],
        client_host=metadata["client_host"],
        instance_id=metadata.get("instance_id"),
        rebalance_timeout=metadata.get("rebalance_timeout_ms"),
        session_timeout=classic.get("session_timeout_ms"),
        topics=tuple(metadata["subscribed_topic_names"]) if "subscribed_topic_names" in metadata else None,
        topic_ids=tuple(
            (kafka_uuid(assigned["topic_id"]), partition)
            for assigned in current.get("assigned_partitions", ())
            for partition in assigned["partitions"]
        ),
        epoch=current.get("member_epoch"),
    )


def kafka_uuid(value: UUID) -> str:
    """A UUID as Kafka prints it."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
