"""A group: its members, its state, its generation, its offsets.

This is book-keeping only: every method leaves the group consistent and does nothing beyond it. What a request means,
when a rebalance begins and what is written to the log is decided in `rebalance.py` and `coordinator.py`; waiting
answers are given here, because they must be given whenever their member changes or goes.
"""

from collections import Counter
from collections.abc import Iterable

from kohort.clock import Clock
from kohort.errors import ErrorCode, IllegalState
from kohort.group.delayed import Timer
from kohort.group.group_offsets import GroupOffsets
from kohort.group.member_metadata import MemberMetadata
from kohort.group.memory import MEMBER_OVERHEAD, GroupMemory
from kohort.group.requests import (
    UNKNOWN_MEMBER_ID,
    GenerationId,
    GroupId,
    GroupOverview,
    GroupSummary,
    JoinCallback,
    JoinGroupMember,
    JoinGroupResult,
    MemberId,
    Protocols,
    SyncCallback,
    SyncGroupResult,
)
from kohort.group.states import VALID_PREVIOUS_STATES, GroupState
from kohort.records.consumer_protocol import decode_topics
from kohort.records.primitives import Malformed

CONSUMER_PROTOCOL_TYPE = "consumer"

_LAST_GENERATION = 0x7FFF_FFFF


class DelayedJoin:
    """A rebalance that waits for members. The first one of an empty group waits for newcomers, and longer for more."""

    __slots__ = ("delay_ms", "is_initial", "remaining_ms", "timer")

    def __init__(self, timer: Timer, *, is_initial: bool = False, delay_ms: int = 0, remaining_ms: int = 0) -> None:
        self.timer = timer
        self.is_initial = is_initial
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms


class GroupMetadata:
    """A group. One owner changes it; nothing here is locked."""

    __slots__ = (
        "_awaiting_join",
        "_clock",
        "_memory",
        "_pending_sync",
        "_protocol_votes",
        "_state",
        "current_state_timestamp",
        "delayed_join",
        "delayed_sync",
        "generation_id",
        "group_id",
        "held_bytes",
        "is_storing_assignment",
        "leader_id",
        "members",
        "new_member_added",
        "offsets",
        "partition",
        "pending_members",
        "protocol_name",
        "protocol_type",
        "removed_by",
        "static_members",
        "subscribed_topics",
    )

    def __init__(
        self, group_id: GroupId, clock: Clock, *, partition: int = 0, state: GroupState = GroupState.EMPTY
    ) -> None:
        self.group_id = group_id
        self.partition = partition
        self._clock = clock
        self._state = state
        self.current_state_timestamp: int | None = clock.now_ms()
        self.generation_id = GenerationId(0)
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: MemberId | None = None
        self.members: dict[MemberId, MemberMetadata] = {}
        self.static_members: dict[str, MemberId] = {}
        self.pending_members: dict[MemberId, Timer] = {}
        """Ids that were handed out and have not joined yet (KIP-394), with the time they have left."""
        self.subscribed_topics: frozenset[str] | None = None
        """Of a "consumer" group whose members' subscriptions could be read (KIP-496)."""
        self.new_member_added = False
        """Somebody came while the first rebalance waits for newcomers."""
        self.delayed_join: DelayedJoin | None = None
        self.delayed_sync: Timer | None = None
        self.offsets = GroupOffsets()
        self.removed_by: object | None = None
        """Who has a tombstone of it on the way to the log; until it is there nobody else may touch the group."""
        self.is_storing_assignment = False
        """The leader's assignment of this generation is on the way to the log."""
        self.held_bytes = 0
        """What its members take, and those that are to come."""
        self._memory = GroupMemory()
        self._awaiting_join = 0
        self._pending_sync: dict[MemberId, None] = {}
        self._protocol_votes: dict[str, int] = {}

    @property
    def is_being_removed(self) -> bool:
        return self.removed_by is not None

    # States

    @property
    def state(self) -> GroupState:
        return self._state

    def is_(self, state: GroupState) -> bool:
        return self._state is state

    @property
    def can_rebalance(self) -> bool:
        return self._state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def transition_to(self, state: GroupState) -> None:
        if self._state not in VALID_PREVIOUS_STATES[state]:
            raise IllegalState(f"group {self.group_id} cannot go from {self._state} to {state}")
        self._state = state
        self.current_state_timestamp = self._clock.now_ms()

    def init_next_generation(self) -> None:
        """The rebalance is over: everybody waits for the assignment, or nobody is left."""
        self.generation_id = GenerationId(self.generation_id + 1 if self.generation_id < _LAST_GENERATION else 1)
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self._compute_subscribed_topics()
        self._pending_sync.clear()
        self.is_storing_assignment = False
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY)
        self.offsets.begin_generation()

    # Memory

    def count_in(self, memory: GroupMemory) -> None:
        """What it holds is counted there from now on."""
        self._memory.held -= self.held_bytes
        self._memory = memory
        memory.held += self.held_bytes

    def _hold(self, change: int) -> None:
        self.held_bytes += change
        self._memory.held += change

    # Members

    def add(self, member: MemberMetadata, callback: JoinCallback | None = None) -> None:
        """The first member decides on the protocol type and is the leader."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.protocol_type != member.protocol_type:
            raise IllegalState(f"a {member.protocol_type} member in the {self.protocol_type} group {self.group_id}")
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._hold(member.size)
        self._count_votes(member, 1)
        member.awaiting_join = callback
        if callback is not None:
            self._awaiting_join += 1

    def remove(self, member_id: MemberId) -> None:
        """Whatever the member waits for is answered: it is not one any more."""
        member = self.members.get(member_id)
        if member is None:
            return
        self.invoke_join_callback(member, JoinGroupResult(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
        self.invoke_sync_callback(member, SyncGroupResult(ErrorCode.UNKNOWN_MEMBER_ID))
        del self.members[member_id]
        self._hold(-member.size)
        self._count_votes(member, -1)
        self._pending_sync.pop(member_id, None)
        if member.group_instance_id is not None and self.static_members.get(member.group_instance_id) == member_id:
            del self.static_members[member.group_instance_id]
        member.end_session()
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def update_member(
        self,
        member: MemberMetadata,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        callback: JoinCallback | None,
    ) -> None:
        """The member has joined again. If an earlier join of its own is still parked, that one is outdated."""
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._count_votes(member, -1)
        before = member.size
        member.supported_protocols = protocols
        self._hold(member.size - before)
        self._count_votes(member, 1)
        outdated = JoinGroupResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        self.invoke_join_callback(member, outdated)
        member.awaiting_join = callback
        if callback is not None:
            self._awaiting_join += 1

    def replace_group_instance(
        self, old_id: MemberId, new_id: MemberId, group_instance_id: str | None
    ) -> MemberMetadata:
        """A static member came back without its id: it gets a new one and keeps all else; whoever waits is fenced."""
        if group_instance_id is None:
            raise IllegalState(f"member {old_id} of group {self.group_id} has no group.instance.id to be replaced by")
        member = self.members.get(old_id)
        if member is None:
            raise IllegalState(f"there is no member {old_id} in group {self.group_id} to be replaced")
        self.invoke_join_callback(member, JoinGroupResult(ErrorCode.FENCED_INSTANCE_ID, old_id))
        self.invoke_sync_callback(member, SyncGroupResult(ErrorCode.FENCED_INSTANCE_ID))
        del self.members[old_id]
        self._hold(len(new_id) - len(old_id))
        member.member_id = new_id
        self.members[new_id] = member
        if old_id in self._pending_sync:
            del self._pending_sync[old_id]
            self._pending_sync[new_id] = None
        if self.leader_id == old_id:
            self.leader_id = new_id
        self.static_members[group_instance_id] = new_id
        return member

    @property
    def leader_or_unknown(self) -> MemberId:
        return UNKNOWN_MEMBER_ID if self.leader_id is None else self.leader_id

    def is_leader(self, member_id: MemberId) -> bool:
        return self.leader_id == member_id

    def has_static_member(self, group_instance_id: str | None) -> bool:
        return group_instance_id is not None and group_instance_id in self.static_members

    def is_static_member_fenced(self, member_id: MemberId, group_instance_id: str | None) -> bool:
        """Whether that instance is known under another member id: somebody else has taken its place."""
        return group_instance_id is not None and self.static_members.get(group_instance_id, member_id) != member_id

    def is_pending_member(self, member_id: MemberId) -> bool:
        return member_id in self.pending_members and member_id not in self.members

    def assign(self, member: MemberMetadata, assignment: bytes) -> None:
        """This is what the member has now."""
        self._hold(len(assignment) - len(member.assignment))
        member.assignment = assignment

    def add_pending_member(self, member_id: MemberId, expiration: Timer) -> None:
        self._hold(MEMBER_OVERHEAD + len(member_id))
        self.pending_members[member_id] = expiration

    def remove_pending_member(self, member_id: MemberId) -> None:
        expiration = self.pending_members.pop(member_id, None)
        if expiration is not None:
            self._hold(-MEMBER_OVERHEAD - len(member_id))
            expiration.discard()

    def maybe_elect_new_joined_leader(self) -> bool:
        """If the leader has not joined again, somebody who has becomes it. False if there is nobody."""
        if self.leader_id is None:
            return False
        if not self.members[self.leader_id].is_awaiting_join:
            joined = next((member.member_id for member in self.members.values() if member.is_awaiting_join), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    @property
    def awaiting_join(self) -> int:
        """How many members have joined and wait for the others."""
        return self._awaiting_join

    @property
    def has_all_members_joined(self) -> bool:
        return len(self.members) == self._awaiting_join and not self.pending_members

    def not_yet_rejoined(self) -> list[MemberMetadata]:
        return [member for member in self.members.values() if member.awaiting_join is None]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The most patient member's."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def current_member_metadata(self) -> tuple[JoinGroupMember, ...]:
        """The members as the leader gets to know them."""
        if self._state in (GroupState.DEAD, GroupState.PREPARING_REBALANCE) or self.protocol_name is None:
            raise IllegalState(f"group {self.group_id} has no protocol in state {self._state}")
        protocol = self.protocol_name
        return tuple(
            JoinGroupMember(member.member_id, member.group_instance_id, member.metadata(protocol))
            for member in self.members.values()
        )

    # Who has not asked for its assignment yet (KAFKA-12890)

    def add_pending_sync_member(self, member_id: MemberId) -> None:
        if member_id not in self.members:
            raise IllegalState(f"{member_id} is no member of group {self.group_id}")
        self._pending_sync[member_id] = None

    def remove_pending_sync_member(self, member_id: MemberId) -> None:
        if member_id not in self.members:
            raise IllegalState(f"{member_id} is no member of group {self.group_id}")
        self._pending_sync.pop(member_id, None)

    @property
    def pending_sync_members(self) -> tuple[MemberId, ...]:
        return tuple(self._pending_sync)

    @property
    def has_received_sync_from_all_members(self) -> bool:
        return not self._pending_sync

    # Answers

    def invoke_join_callback(self, member: MemberMetadata, result: JoinGroupResult) -> None:
        """Answer the member's parked join, if there is one."""
        callback = self.release_join_callback(member)
        if callback is not None:
            callback(result)

    def release_join_callback(self, member: MemberMetadata) -> JoinCallback | None:
        """Take the member's parked join from it: whoever takes it answers it."""
        callback = member.awaiting_join
        if callback is not None:
            member.awaiting_join = None
            self._awaiting_join -= 1
        return callback

    def await_sync(self, member: MemberMetadata, callback: SyncCallback) -> None:
        """Park a sync. If an earlier one of the member is still parked, that one is outdated."""
        self.invoke_sync_callback(member, SyncGroupResult(ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = callback

    def invoke_sync_callback(self, member: MemberMetadata, result: SyncGroupResult) -> bool:
        """Answer the member's parked sync; whether there was one."""
        callback = member.awaiting_sync
        if callback is None:
            return False
        member.awaiting_sync = None
        callback(result)
        return True

    def cancel_timers(self) -> None:
        """Nothing will happen to this group by itself any more."""
        for member in self.members.values():
            member.end_session()
        for expiration in self.pending_members.values():
            expiration.discard()
        if self.delayed_join is not None:
            self.delayed_join.timer.discard()
            self.delayed_join = None
        if self.delayed_sync is not None:
            self.delayed_sync.discard()
            self.delayed_sync = None

    # Protocols and topics

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these could join: it must share a protocol with all who are here."""
        if self._state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        members = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._protocol_votes.get(name, 0) == members for name in names
        )

    def _count_votes(self, member: MemberMetadata, change: int) -> None:
        votes = self._protocol_votes
        for name in member.protocol_names:
            votes[name] = votes.get(name, 0) + change
            if not votes[name]:
                del votes[name]

    def select_protocol(self) -> str:
        """Each member votes for the one it likes best of those that all support; a tie goes to the first voted for."""
        if not self.members:
            raise IllegalState(f"group {self.group_id} has no members to select a protocol")
        everybody = len(self.members)
        candidates = {name for name, votes in self._protocol_votes.items() if votes == everybody}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """What is not known counts as subscribed, to be safe."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def refresh_subscribed_topics(self) -> None:
        """A member's subscription has changed without a new generation."""
        self.subscribed_topics = self._compute_subscribed_topics()

    def _compute_subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                topics.update(decode_topics(member.metadata(self.protocol_name)))
        except Malformed:
            return None
        return frozenset(topics)

    def restore(
        self,
        *,
        generation_id: int,
        protocol_type: str | None,
        protocol_name: str | None,
        leader_id: str | None,
        state_timestamp: int | None,
        members: Iterable[MemberMetadata],
    ) -> None:
        """Make it what its record says. If the leader is no member, the first member leads in its place."""
        self.protocol_type = protocol_type
        for member in {member.member_id: member for member in members}.values():
            self.add(member)
        self.generation_id = GenerationId(generation_id)
        self.protocol_name = (protocol_name or "") if self.members else protocol_name
        if leader_id is not None and leader_id in self.members:
            self.leader_id = MemberId(leader_id)
        self._state = GroupState.STABLE if self.members else GroupState.EMPTY
        self.current_state_timestamp = state_timestamp
        self.subscribed_topics = self._compute_subscribed_topics()

    # What people see

    def summary(self) -> GroupSummary:
        protocol = self.protocol_name if self._state is GroupState.STABLE else None
        members = tuple(member.summary(protocol) for member in self.members.values())
        return GroupSummary(self._state.value, self.protocol_type or "", protocol or "", members)

    def overview(self) -> GroupOverview:
        return GroupOverview(self.group_id, self.protocol_type or "", self._state.value)
