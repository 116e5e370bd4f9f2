"""What a coordinator is asked and what it answers, as plain values.

Answers that may have to wait (joins, syncs, whatever is written to the log first) are given to a callback, exactly
once; all others are returned.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, NewType

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import NO_LEADER_EPOCH, OffsetCommitValue

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)
GenerationId = NewType("GenerationId", int)

UNKNOWN_MEMBER_ID = MemberId("")
NO_GENERATION = GenerationId(-1)
INVALID_OFFSET = -1

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata of the protocols that a member supports, the one it likes best first."""

Offsets = Mapping[TopicPartition, OffsetCommitValue]


class JoinGroupRequest(NamedTuple):
    """A client that wants to become or stay a member; `require_known_member_id` from version 4 on (KIP-394)."""

    group_id: GroupId
    member_id: MemberId
    group_instance_id: str | None
    client_id: str | None
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    require_known_member_id: bool = False


class JoinGroupMember(NamedTuple):
    """A member as its leader sees it."""

    member_id: MemberId
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResult(NamedTuple):
    """The generation that a member is in; the leader also gets the list of all."""

    error: ErrorCode
    member_id: MemberId
    generation_id: GenerationId = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: MemberId = UNKNOWN_MEMBER_ID
    members: tuple[JoinGroupMember, ...] = ()


class SyncGroupRequest(NamedTuple):
    """A member that wants its assignment; the leader brings everybody's."""

    group_id: GroupId
    generation_id: GenerationId
    member_id: MemberId
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    group_assignment: Mapping[MemberId, bytes] = {}


class SyncGroupResult(NamedTuple):
    """What the leader assigned to the member."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(NamedTuple):
    """A sign of life."""

    group_id: GroupId
    member_id: MemberId
    generation_id: GenerationId
    group_instance_id: str | None = None


class MemberIdentity(NamedTuple):
    """Who leaves: by member id, or a static member by its instance id alone."""

    member_id: MemberId
    group_instance_id: str | None = None


class LeaveGroupRequest(NamedTuple):
    """One or more members that leave (KIP-345)."""

    group_id: GroupId
    members: tuple[MemberIdentity, ...]


class LeaveMemberResult(NamedTuple):
    """What became of one of them."""

    member_id: MemberId
    group_instance_id: str | None
    error: ErrorCode


class LeaveGroupResult(NamedTuple):
    """What became of all of them."""

    error: ErrorCode
    members: tuple[LeaveMemberResult, ...] = ()


class Committer(NamedTuple):
    """Who commits: a member, or a simple consumer (generation below 0, no member id)."""

    group_id: GroupId
    member_id: MemberId = UNKNOWN_MEMBER_ID
    generation_id: GenerationId = NO_GENERATION
    group_instance_id: str | None = None


class OffsetCommitRequest(NamedTuple):
    """Offsets of a member, or of a simple consumer (generation below 0, no member id)."""

    group_id: GroupId
    offsets: Offsets
    member_id: MemberId = UNKNOWN_MEMBER_ID
    generation_id: GenerationId = NO_GENERATION
    group_instance_id: str | None = None


class TxnOffsetCommitRequest(NamedTuple):
    """Offsets that count when their producer's transaction commits."""

    group_id: GroupId
    producer_id: int
    producer_epoch: int
    offsets: Offsets
    member_id: MemberId = UNKNOWN_MEMBER_ID
    generation_id: GenerationId = NO_GENERATION
    group_instance_id: str | None = None


class SameForAll(Mapping[TopicPartition, ErrorCode]):
    """One answer for all partitions of a commit."""

    __slots__ = ("_partitions", "error")

    def __init__(self, partitions: Collection[TopicPartition], error: ErrorCode) -> None:
        self._partitions = partitions
        self.error = error

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._partitions)

    def __getitem__(self, partition: TopicPartition) -> ErrorCode:
        if partition not in self._partitions:
            raise KeyError(partition)
        return self.error

    def __repr__(self) -> str:
        return repr(dict(self))


class PartitionData(NamedTuple):
    """A committed offset as OffsetFetch tells it."""

    offset: int = INVALID_OFFSET
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class GroupOverview(NamedTuple):
    """A group in a list."""

    group_id: GroupId
    protocol_type: str
    state: str


class MemberSummary(NamedTuple):
    """A member of a described group."""

    member_id: MemberId
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupSummary(NamedTuple):
    """A described group; protocol, metadata and assignments are told of Stable groups only."""

    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[MemberSummary, ...] = ()


JoinCallback = Callable[[JoinGroupResult], None]
SyncCallback = Callable[[SyncGroupResult], None]
CommitCallback = Callable[[Mapping[TopicPartition, ErrorCode]], None]
