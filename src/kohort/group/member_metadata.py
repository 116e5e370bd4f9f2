"""One member of a group: what it said of itself, what it was assigned, and which answers it waits for."""

from collections.abc import Collection
from typing import NamedTuple

from kohort.errors import IllegalState
from kohort.group.delayed import Timer
from kohort.group.memory import MEMBER_OVERHEAD, protocols_size
from kohort.group.requests import JoinCallback, MemberId, MemberSummary, Protocols, SyncCallback


class WrittenIdentity(NamedTuple):
    """What a static member changes when it comes back under a new id, as it stands in the log."""

    member_id: MemberId
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int


class MemberMetadata:
    """A member. It belongs to one group, which alone changes who waits for what."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "identities",
        "is_new",
        "member_id",
        "protocol_type",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "session_timer",
        "supported_protocols",
    )

    def __init__(
        self,
        member_id: MemberId,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        supported_protocols: Protocols,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.supported_protocols = supported_protocols
        self.assignment = b""
        self.awaiting_join: JoinCallback | None = None
        self.awaiting_sync: SyncCallback | None = None
        self.is_new = False
        """Its first join is still parked: it has no id to send heartbeats with."""
        self.session_timer: Timer | None = None
        self.identities: list[WrittenIdentity] = []
        """Of a static member whose new id is on the way to the log: who it is there, then who it is about to be."""

    @property
    def identity(self) -> WrittenIdentity:
        return WrittenIdentity(
            self.member_id, self.supported_protocols, self.rebalance_timeout_ms, self.session_timeout_ms
        )

    @property
    def size(self) -> int:
        """How many bytes it takes, about."""
        names = len(self.member_id) + len(self.client_id) + len(self.group_instance_id or "")
        return MEMBER_OVERHEAD + names + protocols_size(self.supported_protocols) + len(self.assignment)

    @property
    def is_static_member(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.awaiting_join is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.awaiting_sync is not None

    @property
    def is_excused(self) -> bool:
        """Whoever waits for an answer of ours cannot send heartbeats. A new member may still wait for too long."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """Each once, even if the member names it twice: it has one vote."""
        return tuple(dict.fromkeys(name for name, _ in self.supported_protocols))

    def end_session(self) -> None:
        """Nobody waits for its heartbeats any more."""
        if self.session_timer is not None:
            self.session_timer.discard()
            self.session_timer = None

    def metadata(self, protocol: str) -> bytes:
        """What the member told with that protocol."""
        for name, metadata in self.supported_protocols:
            if name == protocol:
                return metadata
        raise IllegalState(f"member {self.member_id} does not support protocol {protocol}")

    def matches(self, protocols: Protocols) -> bool:
        """Whether these are the protocols it has already: same names, order and bytes."""
        return self.supported_protocols == protocols

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate that it likes best."""
        for name, _ in self.supported_protocols:
            if name in candidates:
                return name
        raise IllegalState(f"member {self.member_id} supports none of the protocols {sorted(candidates)}")

    def summary(self, protocol: str | None) -> MemberSummary:
        """How DescribeGroups shows it; metadata and assignment only with the protocol of a Stable group."""
        return MemberSummary(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol is None else self.metadata(protocol),
            b"" if protocol is None else self.assignment,
        )
