"""Many members of many groups, all at once: in which order things happen is drawn from a seed.

One task applies the requests, so there are no threads to race; what can differ is the order of requests and when
appends are confirmed. `Traffic` draws both. Everything that is answered is noted down: `digest` tells two lives apart.
"""

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Any

from kohort.errors import ErrorCode
from kohort.group.requests import (
    GenerationId,
    GroupId,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResult,
    LeaveGroupRequest,
    LeaveMemberResult,
    MemberId,
    MemberIdentity,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResult,
    TxnOffsetCommitRequest,
)
from kohort.log.names import TopicPartition
from tests.group.context import PROTOCOLS, Context, value
from tests.group.log_builder import marker

MINUTE = 60_000
PARTITIONS = 2
PRODUCER, PRODUCER_EPOCH = 1000, 2


class Member:
    """A client and what it was told last."""

    def __init__(self, group: str, name: str) -> None:
        self.group = GroupId(group)
        self.name = name
        self.member_id = MemberId("")
        self.generation = GenerationId(-1)
        self.is_leader = False

    def __str__(self) -> str:
        return f"{self.group}/{self.name}"


class Traffic:
    """A coordinator of all groups, on a log whose appends are confirmed whenever chance has it."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.random = random.Random(seed)
        told = {"group_max_size": 1_000, "offsets_commit_timeout_ms": 10 * MINUTE, "offsets_retention_minutes": 60}
        self._settings = told | settings
        self.c = Context(own=False, **self._settings)
        for partition in range(PARTITIONS):
            self.c.elect(partition)
        self.c.topic.hold()
        self.trace: list[str] = []
        self.unanswered = 0

    # Answers

    def note(self, what: str, member: Member, answer: object) -> None:
        self.trace.append(f"{what} {member} {answer}")

    def awaited(self, what: str, member: Member, then: Callable[[Any], None]) -> Callable[[Any], None]:
        """A callback that must be called, once."""
        self.unanswered += 1
        answers: list[Any] = []

        def answered(answer: Any) -> None:
            assert not answers, f"{what} of {member} answered twice: {answers[0]}, {answer}"
            answers.append(answer)
            self.unanswered -= 1
            self.note(what, member, answer)
            then(answer)

        return answered

    # The log

    def confirm_some(self) -> None:
        while self.random.random() < 0.4 and self.c.topic.held:
            self.c.topic.release_one()

    def confirm_all(self) -> None:
        while self.c.topic.held:
            self.c.topic.release_one()

    def end_transactions(self, *, is_commit: bool) -> None:
        """A marker for each partition, of which the coordinator hears when it is safe."""
        for partition in range(PARTITIONS):
            self.c.topic.append(
                partition,
                marker(PRODUCER, is_commit=is_commit, producer_epoch=PRODUCER_EPOCH),
                lambda _error, _, partition=partition: self.c.coordinator.handle_txn_completion(
                    PRODUCER, [partition], is_commit=is_commit
                ),
            )

    # Time

    def all_at_once(self, what: Callable[["Traffic", Member, bool], None], members: Sequence[Member]) -> None:
        """Everybody does the same, in any order, and everybody is answered well."""
        for member in self.random.sample(members, len(members)):
            what(self, member, True)
            self.confirm_some()
        self.wait()

    def wait(self) -> None:
        for _ in range(MINUTE // 10):
            self.confirm_all()
            if not self.unanswered:
                return
            self.c.sleep(10)
        raise AssertionError(f"{self.unanswered} requests are not answered")

    # What can be told apart

    def in_memory(self, c: Context) -> dict[str, Any]:
        """Everything that a coordinator has of its groups and that the log must tell."""
        return {
            group.group_id: (
                dict(group.offsets.items()),
                {p: dict(group.offsets.pending(p)) for p in group.offsets.producers},
            )
            for group in c.manager.current_groups
            if group.offsets.has_any
        }

    def assert_log_tells_the_same(self) -> None:
        assert self.in_memory(self.c) == self.in_memory(self.restarted())

    def restarted(self) -> Context:
        """Another coordinator on the same log."""
        return self.c.restarted(**self._settings)

    def digest(self) -> str:
        """Of all answers in their order and of all bytes in the log."""
        told = hashlib.sha256("\n".join(self.trace).encode())
        for partition in range(PARTITIONS):
            for batch in self.c.topic.batches(partition):
                told.update(batch.encode())
        return told.hexdigest()


# What a member can do; the last argument says whether it must succeed.


def join(traffic: Traffic, member: Member, must_succeed: bool) -> None:
    def then(answer: JoinGroupResult) -> None:
        assert not must_succeed or answer.error is ErrorCode.NONE
        if answer.error is ErrorCode.NONE:
            member.member_id, member.generation = answer.member_id, answer.generation_id
            member.is_leader = answer.leader_id == answer.member_id

    request = JoinGroupRequest(
        member.group, member.member_id, None, "client", "host", MINUTE, MINUTE, "consumer", PROTOCOLS
    )
    traffic.c.coordinator.handle_join_group(request, traffic.awaited("join", member, then))


def sync(traffic: Traffic, member: Member, must_succeed: bool) -> None:
    def then(answer: SyncGroupResult) -> None:
        assert not must_succeed or (answer.error, answer.assignment) == (ErrorCode.NONE, b"")

    assignment = {member.member_id: b""} if member.is_leader else {}
    request = SyncGroupRequest(member.group, member.generation, member.member_id, None, "consumer", "range", assignment)
    traffic.c.coordinator.handle_sync_group(request, traffic.awaited("sync", member, then))


def fetch(traffic: Traffic, member: Member, must_succeed: bool) -> None:
    answer = traffic.c.fetch_all(member.group, require_stable=True)
    traffic.note("fetch", member, answer)
    assert not must_succeed or answer == (ErrorCode.NONE, {})


def commit(traffic: Traffic, member: Member, must_succeed: bool) -> None:
    offsets = {TopicPartition("topic", 0): value(1, time=traffic.c.clock.now_ms())}

    def then(answer: dict[TopicPartition, ErrorCode]) -> None:
        assert not must_succeed or answer == dict.fromkeys(offsets, ErrorCode.NONE)

    request = OffsetCommitRequest(member.group, offsets, member.member_id, member.generation)
    traffic.c.coordinator.handle_commit_offsets(request, traffic.awaited("commit", member, then))


def txn_commit(traffic: Traffic, member: Member, must_succeed: bool) -> None:
    """The transaction is ended from within the answer."""
    offsets = {TopicPartition("topic", 0): value(1, time=traffic.c.clock.now_ms())}

    def then(answer: dict[TopicPartition, ErrorCode]) -> None:
        traffic.end_transactions(is_commit=traffic.random.random() < 0.5)
        assert not must_succeed or answer == dict.fromkeys(offsets, ErrorCode.NONE)

    request = TxnOffsetCommitRequest(member.group, PRODUCER, PRODUCER_EPOCH, offsets)
    traffic.c.coordinator.handle_txn_commit_offsets(request, traffic.awaited("txn commit", member, then))


def complete_txn(traffic: Traffic, member: Member, _: bool) -> None:
    traffic.note("complete", member, "")
    traffic.end_transactions(is_commit=traffic.random.random() < 0.5)


def heartbeat(traffic: Traffic, member: Member, must_succeed: bool) -> None:
    request = HeartbeatRequest(member.group, member.member_id, member.generation)
    error = traffic.c.coordinator.handle_heartbeat(request)
    traffic.note("heartbeat", member, error)
    assert not must_succeed or error is ErrorCode.NONE


def leave(traffic: Traffic, member: Member, must_succeed: bool) -> None:
    request = LeaveGroupRequest(member.group, (MemberIdentity(member.member_id),))
    answer = traffic.c.coordinator.handle_leave_group(request)
    traffic.note("leave", member, answer)
    left = (LeaveMemberResult(member.member_id, None, ErrorCode.NONE),)
    assert not must_succeed or (answer.error, answer.members) == (ErrorCode.NONE, left)


GOOD_PATH = (join, sync, fetch, commit, heartbeat, leave)
GOOD_PATH_OF_TRANSACTIONS = (join, sync, fetch, txn_commit, complete_txn, heartbeat, leave)
