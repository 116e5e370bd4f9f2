"""Who is in a group, and how its members agree on a generation: joins, syncs, leaves, and the clocks that run on them.

The order of effects is Kafka's: change the group, write it, then confirm or take back. Each step may make the group
ready for the next one, so whatever adds, removes or parks a member ends by looking whether a rebalance must begin or
can end.
"""

import logging
from collections.abc import Callable, Mapping

from kohort.config import GroupConfig
from kohort.errors import ErrorCode, IllegalState
from kohort.group.delayed import Timer, Timers
from kohort.group.group_metadata import DelayedJoin, GroupMetadata
from kohort.group.group_metadata_manager import GroupMetadataManager
from kohort.group.member_metadata import MemberMetadata, WrittenIdentity
from kohort.group.memory import MEMBER_OVERHEAD, newcomer_size, protocols_size
from kohort.group.metrics import GroupMetrics
from kohort.group.records import is_writable
from kohort.group.requests import (
    UNKNOWN_MEMBER_ID,
    GenerationId,
    JoinCallback,
    JoinGroupRequest,
    JoinGroupResult,
    MemberId,
    MemberIdentity,
    SyncCallback,
    SyncGroupRequest,
    SyncGroupResult,
)
from kohort.group.states import GroupState

logger = logging.getLogger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member's first join may be parked: it has no id yet, so it cannot send heartbeats."""

_NOBODY_JOINED_PAUSE_MS = 100
"""How often to look again, at most, when members that are away allow no time at all."""


class Rebalances:
    """Membership of all groups of a coordinator."""

    def __init__(
        self,
        config: GroupConfig,
        timers: Timers,
        manager: GroupMetadataManager,
        metrics: GroupMetrics,
        new_uuid: Callable[[], str],
    ) -> None:
        self._config = config
        self._timers = timers
        self._manager = manager
        self._metrics = metrics
        self._new_uuid = new_uuid
        self._expire_heartbeat = self._on_expire_heartbeat  # bound once: every member's timer has it

    # Joining

    def join(self, group: GroupMetadata, request: JoinGroupRequest, respond: JoinCallback) -> None:
        """A member comes, or comes again."""
        if not self._accepts(group, request.member_id):
            group.remove(request.member_id)
            group.remove_pending_member(request.member_id)
            respond(JoinGroupResult(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
        elif group.is_(GroupState.DEAD):
            respond(JoinGroupResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
        elif (error := self._memory_error(group, self._growth(group, request))) is not ErrorCode.NONE:
            logger.warning("a member of group %r wants more memory than there is for it", group.group_id)
            group.remove_pending_member(request.member_id)
            respond(JoinGroupResult(error, request.member_id))
        elif not group.supports_protocols(request.protocol_type, [name for name, _ in request.protocols]):
            respond(JoinGroupResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        elif request.member_id == UNKNOWN_MEMBER_ID:
            self._join_unknown(group, request, respond)
        else:
            self._join_known(group, request, respond)
        self._try_complete_join(group)

    def _accepts(self, group: GroupMetadata, member_id: MemberId) -> bool:
        """Whether there is room (`group.max.size`).

        During a rebalance those who wait are counted: a group that is too large, because the limit was lowered, sends
        away the last who join again (KAFKA-9885).
        """
        limit = self._config.group_max_size
        member = group.members.get(member_id)
        match group.state:
            case GroupState.EMPTY | GroupState.DEAD:
                return True
            case GroupState.PREPARING_REBALANCE:
                return (member is not None and member.is_awaiting_join) or group.awaiting_join < limit
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                return member is not None or len(group.members) < limit

    def _memory_error(self, group: GroupMetadata, growth: int) -> ErrorCode:
        """Whether the group may become so much larger. If only all together are too large, that may pass."""
        if growth <= 0:
            return ErrorCode.NONE
        if group.held_bytes + growth > self._config.group_max_bytes:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if self._manager.memory.held + growth > self._config.group_coordinator_max_bytes:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    def _growth(self, group: GroupMetadata, request: JoinGroupRequest) -> int:
        """By how many bytes a join makes its group larger."""
        member = group.members.get(request.member_id)
        if member is None and group.has_static_member(request.group_instance_id):
            member = group.members.get(group.static_members[request.group_instance_id or ""])
        if member is None:
            given = MEMBER_OVERHEAD + len(request.member_id) if group.is_pending_member(request.member_id) else 0
            return newcomer_size(request) - given
        return protocols_size(request.protocols) - protocols_size(member.supported_protocols)

    def _join_unknown(self, group: GroupMetadata, request: JoinGroupRequest, respond: JoinCallback) -> None:
        """Without an id: a new member, or a static one that has lost its own."""
        new_id = self._new_member_id(request)
        if new_id is None:
            logger.error("a member id made of client id or instance id in group %r would be too long", group.group_id)
            respond(JoinGroupResult(ErrorCode.UNKNOWN_SERVER_ERROR, UNKNOWN_MEMBER_ID))
        elif group.has_static_member(request.group_instance_id):
            self._replace_static_member(group, new_id, request, respond)
        elif request.require_known_member_id and request.group_instance_id is None:
            expiration = self._timers.after(request.session_timeout_ms, self._on_expire_pending_member, group, new_id)
            group.add_pending_member(new_id, expiration)
            respond(JoinGroupResult(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        else:
            self._add_member(group, new_id, request, respond)

    def _new_member_id(self, request: JoinGroupRequest) -> MemberId | None:
        """Named after the instance or the client, so that people recognise it; None if that cannot be written."""
        owner = request.client_id if request.group_instance_id is None else request.group_instance_id
        member_id = self._new_uuid() if owner is None else f"{owner}-{self._new_uuid()}"
        return MemberId(member_id) if is_writable(member_id) else None

    def _join_known(self, group: GroupMetadata, request: JoinGroupRequest, respond: JoinCallback) -> None:
        """With an id: it was handed out to a newcomer, or it is a member's."""
        member_id, instance_id = request.member_id, request.group_instance_id
        if group.is_pending_member(member_id):
            if instance_id is not None:
                raise IllegalState(f"static member {instance_id!r} was not expected to be pending, as {member_id!r}")
            self._add_member(group, member_id, request, respond)
            return
        if group.is_static_member_fenced(member_id, instance_id):
            respond(JoinGroupResult(ErrorCode.FENCED_INSTANCE_ID, member_id))
            return
        member = group.members.get(member_id)
        if member is None or (instance_id is not None and not group.has_static_member(instance_id)):
            respond(JoinGroupResult(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            return
        is_unchanged = member.matches(request.protocols)
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                self._update_member(group, member, request, respond)
            case GroupState.COMPLETING_REBALANCE if is_unchanged:
                respond(self._join_result(group, member_id))  # it may have missed the first answer
            case GroupState.STABLE if is_unchanged and not group.is_leader(member_id):
                respond(self._join_result(group, member_id))
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                # A leader that joins again wants a rebalance even without a change: it has seen one in the topics.
                self._update_member(group, member, request, respond)
            case GroupState.EMPTY | GroupState.DEAD:
                respond(JoinGroupResult(ErrorCode.UNKNOWN_MEMBER_ID, member_id))

    def _join_result(self, group: GroupMetadata, member_id: MemberId) -> JoinGroupResult:
        return JoinGroupResult(
            ErrorCode.NONE,
            member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader_or_unknown,
            group.current_member_metadata() if group.is_leader(member_id) else (),
        )

    def _add_member(
        self, group: GroupMetadata, member_id: MemberId, request: JoinGroupRequest, respond: JoinCallback
    ) -> None:
        member = MemberMetadata(
            member_id,
            request.group_instance_id,
            request.client_id or "",
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
        )
        member.is_new = True
        if group.is_(GroupState.PREPARING_REBALANCE) and group.generation_id == 0:
            group.new_member_added = True
        group.add(member, respond)
        self._schedule_expiration(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        group.remove_pending_member(member_id)
        self._maybe_prepare_rebalance(group, f"new member {member_id!r}")

    def _update_member(
        self, group: GroupMetadata, member: MemberMetadata, request: JoinGroupRequest, respond: JoinCallback
    ) -> None:
        group.update_member(
            member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms, respond
        )
        self._maybe_prepare_rebalance(group, f"member {member.member_id!r} joins again")

    def _replace_static_member(
        self, group: GroupMetadata, new_id: MemberId, request: JoinGroupRequest, respond: JoinCallback
    ) -> None:
        """A static member came back under a new id. If nothing else changes, a Stable group is not disturbed."""
        instance_id = request.group_instance_id
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            raise IllegalState(
                f"group {group.group_id!r} is {group.state} and has a static member {instance_id!r} all the same"
            )
        old_id = group.static_members[instance_id or ""]
        leader_before = group.leader_or_unknown
        before = group.members[old_id].identity if old_id in group.members else None
        member = group.replace_group_instance(old_id, new_id, instance_id)
        group.update_member(
            member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms, respond
        )
        self.schedule_next_heartbeat(group, member)
        match group.state:
            case GroupState.STABLE if group.select_protocol() == group.protocol_name:
                member.identities = member.identities or ([] if before is None else [before])
                self._store_static_member(group, member, leader_before)
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                # The leader may already be at an assignment for the old id.
                self._prepare_rebalance(group, f"static member {instance_id!r} is back as {new_id!r}")
            case _:
                pass  # the group is rebalancing: the join is parked with those of the others

    def _store_static_member(self, group: GroupMetadata, member: MemberMetadata, leader_before: MemberId) -> None:
        """Write the new id (KAFKA-10284). If that fails, the member is again who it was in the log.

        The answer names the leader of before: a returning leader must not make an assignment that nobody asked for.
        """
        identity, generation_id = member.identity, group.generation_id

        def is_outdated() -> bool:
            is_in = group.members.get(member.member_id) is member
            return not is_in or not group.is_(GroupState.STABLE) or group.generation_id != generation_id

        def answer(error: ErrorCode) -> None:
            if is_outdated() or member.member_id != identity.member_id:
                return  # the parked join was answered, or will be by the rebalance
            self.schedule_next_heartbeat(group, member)
            member_id = identity.member_id if error is ErrorCode.NONE else UNKNOWN_MEMBER_ID
            type_and_name = group.protocol_type, group.protocol_name
            result = JoinGroupResult(error, member_id, generation_id, *type_and_name, leader_before)
            group.invoke_join_callback(member, result)

        def settled(error: ErrorCode) -> None:
            if is_outdated() or identity not in member.identities:
                return
            identities = member.identities
            if error is ErrorCode.NONE:
                del identities[: identities.index(identity)]
                group.refresh_subscribed_topics()
            else:
                is_latest = identities[-1] is identity
                identities.remove(identity)
                if is_latest:
                    self._take_back(group, member, identities[-1])
                    group.refresh_subscribed_topics()
            if len(identities) == 1:
                identities.clear()

        member.identities.append(identity)
        assignment = {other.member_id: other.assignment for other in group.members.values()}
        self._manager.store_group(group, assignment, answer, settled)

    def _take_back(self, group: GroupMetadata, member: MemberMetadata, written: WrittenIdentity) -> None:
        group.update_member(member, written.protocols, written.rebalance_timeout_ms, written.session_timeout_ms, None)
        group.replace_group_instance(member.member_id, written.member_id, member.group_instance_id)
        self.schedule_next_heartbeat(group, member)

    # The rebalance

    def _maybe_prepare_rebalance(self, group: GroupMetadata, reason: str) -> None:
        if group.can_rebalance:
            self._prepare_rebalance(group, reason)

    def _prepare_rebalance(self, group: GroupMetadata, reason: str) -> None:
        """Everybody is to join again. An empty group waits a little for others to come with the first."""
        if group.is_(GroupState.COMPLETING_REBALANCE):
            self._fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._cancel_delayed_sync(group)
        is_initial = group.is_(GroupState.EMPTY)
        group.transition_to(GroupState.PREPARING_REBALANCE)
        logger.info("group %r, generation %d begins to rebalance: %s", group.group_id, group.generation_id, reason)
        if is_initial:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            self._delay_initial_join(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        else:
            self._delay_join(group)

    def _delay_join(self, group: GroupMetadata, at_least_ms: int = 0) -> None:
        delay_ms = max(group.rebalance_timeout_ms, at_least_ms)
        timer = self._timers.after(delay_ms, self._complete_join, group)
        group.delayed_join = DelayedJoin(timer)
        self._try_complete_join(group)

    def _delay_initial_join(self, group: GroupMetadata, delay_ms: int, remaining_ms: int) -> None:
        timer = self._timers.after(delay_ms, self._complete_initial_join, group)
        group.delayed_join = DelayedJoin(timer, is_initial=True, delay_ms=delay_ms, remaining_ms=remaining_ms)

    def _complete_initial_join(self, group: GroupMetadata) -> None:
        """As long as members keep coming it waits on, up to their rebalance timeout."""
        delayed = group.delayed_join
        if delayed is None:
            return
        if group.new_member_added and delayed.remaining_ms > 0:
            group.new_member_added = False
            delay_ms = min(self._config.group_initial_rebalance_delay_ms, delayed.remaining_ms)
            self._delay_initial_join(group, delay_ms, max(delayed.remaining_ms - delayed.delay_ms, 0))
        else:
            self._complete_join(group)

    def _try_complete_join(self, group: GroupMetadata) -> None:
        delayed = group.delayed_join
        if delayed is not None and not delayed.is_initial and group.has_all_members_joined:
            self._complete_join(group)

    def _complete_join(self, group: GroupMetadata) -> None:
        """All have joined, or the time is up: whoever has not is out, unless it is static."""
        if group.delayed_join is not None:
            group.delayed_join.timer.discard()
            group.delayed_join = None
        for member in group.not_yet_rejoined():
            if not member.is_static_member:
                group.remove(member.member_id)
        if group.members and not group.maybe_elect_new_joined_leader():
            # Only static members that are away are left: wait until they come or their sessions end.
            logger.info("group %r cannot complete its rebalance: nobody has joined again", group.group_id)
            self._delay_join(group, _NOBODY_JOINED_PAUSE_MS)
            return
        group.init_next_generation()
        if group.is_(GroupState.EMPTY):
            logger.info("group %r, generation %d is empty", group.group_id, group.generation_id)
            # Should this fail, the generation before it comes back after a restart, and its sessions run out.
            self._manager.store_group(group, {}, lambda _: None)
            return
        logger.info("group %r, generation %d has %d members", group.group_id, group.generation_id, len(group.members))
        members = list(group.members.values())
        results = [self._join_result(group, member.member_id) for member in members]
        for member in members:
            member.is_new = False
            member.identities.clear()
            self.schedule_next_heartbeat(group, member)
            group.add_pending_sync_member(member.member_id)
        self._delay_sync(group)
        for member, result in zip(members, results, strict=True):
            group.invoke_join_callback(member, result)

    # Synchronising

    def sync(self, group: GroupMetadata, request: SyncGroupRequest, respond: SyncCallback) -> None:
        """A member asks for its assignment; the leader's request brings it."""
        error = self._sync_error(group, request)
        if error is not ErrorCode.NONE:
            respond(SyncGroupResult(error))
            return
        member = group.members[request.member_id]
        group.remove_pending_sync_member(member.member_id)
        if group.has_received_sync_from_all_members:
            self._cancel_delayed_sync(group)
        if group.is_(GroupState.STABLE):
            self.schedule_next_heartbeat(group, member)
            respond(SyncGroupResult(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment))
            return
        group.await_sync(member, respond)
        if group.is_leader(member.member_id) and not group.is_storing_assignment:
            self._store_assignment(group, request.group_assignment)

    def _sync_error(self, group: GroupMetadata, request: SyncGroupRequest) -> ErrorCode:
        if group.is_(GroupState.DEAD):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if group.is_static_member_fenced(request.member_id, request.group_instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        if request.member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, group.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol_name not in (None, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.is_(GroupState.EMPTY):
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group.is_(GroupState.PREPARING_REBALANCE):
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _store_assignment(self, group: GroupMetadata, leaders: Mapping[MemberId, bytes]) -> None:
        """The leader has spoken. Members that it forgot get nothing."""
        generation_id = group.generation_id
        assignment = {member_id: leaders.get(member_id, b"") for member_id in group.members}
        growth = sum(len(assignment[member_id]) - len(group.members[member_id].assignment) for member_id in assignment)
        if self._memory_error(group, growth) is not ErrorCode.NONE:
            # As if it were too large for the log.
            self._fail_syncs(group, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._maybe_prepare_rebalance(group, "the assignment is larger than there is memory for")
            return

        def stored(error: ErrorCode) -> None:
            if group.generation_id == generation_id:
                group.is_storing_assignment = False
            # Somebody may have come or gone meanwhile; then the next generation is already on its way.
            if not group.is_(GroupState.COMPLETING_REBALANCE) or group.generation_id != generation_id:
                return
            if error is not ErrorCode.NONE:
                self._fail_syncs(group, error)
                self._maybe_prepare_rebalance(group, f"the assignment could not be written: {error.name}")
                return
            group.transition_to(GroupState.STABLE)
            for member in group.members.values():
                group.assign(member, assignment.get(member.member_id, b""))
            self._propagate_assignment(group, ErrorCode.NONE)

        group.is_storing_assignment = True
        self._metrics.rebalance_completed(group)
        self._manager.store_group(group, assignment, stored)

    def _fail_syncs(self, group: GroupMetadata, error: ErrorCode) -> None:
        for member in group.members.values():
            group.assign(member, b"")
        self._propagate_assignment(group, error)

    def _propagate_assignment(self, group: GroupMetadata, error: ErrorCode) -> None:
        """Answer everybody who waits; their sessions begin anew, for they could not send heartbeats."""
        is_good = error is ErrorCode.NONE
        protocol_type = group.protocol_type if is_good else None
        protocol_name = group.protocol_name if is_good else None
        waiting = [member for member in group.members.values() if member.is_awaiting_sync]
        for member in waiting:
            self.schedule_next_heartbeat(group, member)
        for member in waiting:
            group.invoke_sync_callback(member, SyncGroupResult(error, protocol_type, protocol_name, member.assignment))

    def _delay_sync(self, group: GroupMetadata) -> None:
        generation_id = group.generation_id
        group.delayed_sync = self._timers.after(
            group.rebalance_timeout_ms, self._on_expire_pending_sync, group, generation_id
        )

    def _cancel_delayed_sync(self, group: GroupMetadata) -> None:
        if group.delayed_sync is not None:
            group.delayed_sync.discard()
            group.delayed_sync = None

    def _on_expire_pending_sync(self, group: GroupMetadata, generation_id: GenerationId) -> None:
        """Members that joined and never asked for their assignment are out (KAFKA-12890)."""
        group.delayed_sync = None
        late = group.pending_sync_members
        if group.generation_id != generation_id or not group.can_rebalance or not late:
            return
        for member_id in late:
            group.remove(member_id)
        self._prepare_rebalance(group, f"{len(late)} members never asked for their assignment")

    # Leaving

    def leave(self, group: GroupMetadata, leaving: MemberIdentity) -> ErrorCode:
        """One member goes; a static one may be named by its instance id alone."""
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if member_id != UNKNOWN_MEMBER_ID and group.is_static_member_fenced(member_id, instance_id):
            return ErrorCode.FENCED_INSTANCE_ID
        if group.is_pending_member(member_id):
            if instance_id is not None:
                raise IllegalState(f"static member {instance_id!r} was not expected to be pending, as {member_id!r}")
            self._remove_pending_member(group, member_id)
            return ErrorCode.NONE
        if instance_id is not None and instance_id in group.static_members:
            member_id = group.static_members[instance_id]
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._remove_member(group, member, f"member {member_id!r} left")
        return ErrorCode.NONE

    def _remove_member(self, group: GroupMetadata, member: MemberMetadata, reason: str) -> None:
        group.remove(member.member_id)
        if group.is_(GroupState.PREPARING_REBALANCE):
            self._try_complete_join(group)
        elif not group.is_(GroupState.EMPTY):
            self._maybe_prepare_rebalance(group, reason)

    def _remove_pending_member(self, group: GroupMetadata, member_id: MemberId) -> None:
        group.remove_pending_member(member_id)
        self._try_complete_join(group)

    # Sessions

    def schedule_next_heartbeat(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """A sign of life: the session begins anew."""
        self._schedule_expiration(group, member, member.session_timeout_ms)

    def _schedule_expiration(self, group: GroupMetadata, member: MemberMetadata, timeout_ms: int) -> None:
        timer = member.session_timer
        if timer is None:
            timer = member.session_timer = Timer(self._expire_heartbeat, group, member)
        self._timers.schedule(timer, timeout_ms)

    def _on_expire_heartbeat(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """Nothing was heard of a member for too long."""
        is_gone = group.members.get(member.member_id) is not member
        if group.is_(GroupState.DEAD) or is_gone or member.is_excused:
            return
        logger.info("member %r of group %r has failed", member.member_id, group.group_id)
        self._remove_member(group, member, f"member {member.member_id!r} failed")

    def _on_expire_pending_member(self, group: GroupMetadata, member_id: MemberId) -> None:
        """An id was handed out and nobody came with it."""
        if not group.is_(GroupState.DEAD):
            self._remove_pending_member(group, member_id)

    # The partition comes or goes

    def on_group_loaded(self, group: GroupMetadata) -> None:
        """Sessions begin anew. A group that is larger than allowed rebalances, so that its members can commit first."""
        if len(group.members) > self._config.group_max_size:
            self._prepare_rebalance(group, f"it has more than {self._config.group_max_size} members")
        for member in group.members.values():
            self.schedule_next_heartbeat(group, member)

    def on_group_unloaded(self, group: GroupMetadata, error: ErrorCode) -> None:
        """Everybody who waits is told to look elsewhere, and nothing happens to the group any more."""
        group.transition_to(GroupState.DEAD)
        group.cancel_timers()
        for member in list(group.members.values()):
            group.invoke_join_callback(member, JoinGroupResult(error, member.member_id))
            group.invoke_sync_callback(member, SyncGroupResult(error))
