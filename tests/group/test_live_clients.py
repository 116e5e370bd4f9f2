"""Clients that live by their own rules: each asks again from within its last answer, and in the end they all agree."""

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResult,
    LeaveGroupRequest,
    MemberId,
    MemberIdentity,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResult,
)
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from tests.group.context import value
from tests.group.traffic import PARTITIONS, Member, Traffic

SESSION, REBALANCE, TICK = 3_000, 2_000, 100
TOPIC_0 = TopicPartition("topic", 0)
FAULTS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.KAFKA_STORAGE_ERROR)


def assignment(name: str, generation: int) -> bytes:
    return f"{name} in {generation}".encode()


class Client(Member):
    """Joins, syncs and commits as fast as it is answered, then sends heartbeats; every tenth one is static.

    The leader assigns to each member its own name and the generation.
    """

    def __init__(self, traffic: Traffic, group: str, name: str) -> None:
        super().__init__(group, name)
        self._traffic = traffic
        self._coordinator = traffic.c.coordinator
        self.instance_id = f"instance-{name}" if name.endswith("0") else None
        self.is_alive = True
        self.is_waiting = False
        self.assignment: bytes | None = None

    def tick(self) -> None:
        """Whatever a client does from time to time."""
        if not self.is_alive or self.is_waiting:
            return
        if self.assignment is None:
            self._join()
            return
        request = HeartbeatRequest(self.group, self.member_id, self.generation, self.instance_id)
        self._react(self._coordinator.handle_heartbeat(request))

    def stop(self, *, politely: bool) -> None:
        self.is_alive, self.assignment = False, None
        if politely:
            identity = MemberIdentity(self.member_id, self.instance_id)
            answer = self._coordinator.handle_leave_group(LeaveGroupRequest(self.group, (identity,)))
            self._traffic.note("leave", self, answer)

    def start(self) -> None:
        self.is_alive, self.member_id = True, MemberId("")

    def _join(self) -> None:
        request = JoinGroupRequest(
            self.group,
            self.member_id,
            self.instance_id,
            self.name,
            "host",
            SESSION,
            REBALANCE,
            "consumer",
            (("range", b""),),
            require_known_member_id=True,
        )
        self.is_waiting, self.assignment = True, None
        self._coordinator.handle_join_group(request, self._traffic.awaited("join", self, self._joined))

    def _joined(self, answer: JoinGroupResult) -> None:
        self.is_waiting = False
        if not self.is_alive:
            return
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._join()
        elif answer.error is not ErrorCode.NONE:
            self._react(answer.error)
        else:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            assigned = {
                member.member_id: assignment(member.group_instance_id or member.member_id, self.generation)
                for member in answer.members
            }
            request = SyncGroupRequest(
                self.group, self.generation, self.member_id, self.instance_id, "consumer", "range", assigned
            )
            self.is_waiting = True
            self._coordinator.handle_sync_group(request, self._traffic.awaited("sync", self, self._synced))

    def _synced(self, answer: SyncGroupResult) -> None:
        self.is_waiting = False
        if not self.is_alive:
            return
        if answer.error is not ErrorCode.NONE:
            self._react(answer.error)
            return
        self.assignment = answer.assignment
        offsets = {TOPIC_0: value(self.generation, time=self._traffic.c.clock.now_ms())}
        request = OffsetCommitRequest(self.group, offsets, self.member_id, self.generation, self.instance_id)
        self.is_waiting = True
        self._coordinator.handle_commit_offsets(request, self._traffic.awaited("commit", self, self._committed))

    def _committed(self, answer: dict[TopicPartition, ErrorCode]) -> None:
        self.is_waiting = False
        if self.is_alive:
            self._react(answer[TOPIC_0])

    def _react(self, error: ErrorCode) -> None:
        match error:
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                self.member_id = MemberId("")
                self._join()
            case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION:
                self._join()
            case ErrorCode.NONE:
                pass
            case _:
                self._traffic.note("error", self, error)


def live(seed: int, ticks: int) -> tuple[Traffic, list[Client]]:
    """Clients come, go and die, appends fail, partitions move away and back; then calm."""
    traffic = Traffic(seed, group_initial_rebalance_delay_ms=300)
    chance, c = traffic.random, traffic.c
    clients = [Client(traffic, f"group-{group}", f"{group}{number}") for group in range(6) for number in range(8)]
    epoch = 0
    for _ in range(ticks):
        for client in chance.sample(clients, len(clients)):
            if chance.random() < 0.02:
                client.stop(politely=chance.random() < 0.5) if client.is_alive else client.start()
            client.tick()
            traffic.confirm_some()
        if chance.random() < 0.1:
            c.topic.fail_next(chance.choice(FAULTS))
        if chance.random() < 0.02:
            epoch += 1
            partition = chance.randrange(PARTITIONS)
            traffic.confirm_all()
            c.resign(partition, epoch)
            c.elect(partition, epoch)
        if chance.random() < 0.3:
            traffic.confirm_all()
        c.sleep(chance.randrange(2 * TICK))
    for client in clients:
        if not client.is_alive:
            client.start()
    for _ in range(4 * SESSION // TICK):
        for client in chance.sample(clients, len(clients)):
            client.tick()
        traffic.confirm_all()
        c.sleep(TICK)
    return traffic, clients


@pytest.mark.parametrize("seed", range(12))
def test_clients_agree_in_the_end_whatever_has_happened(seed: int) -> None:
    traffic, clients = live(seed, ticks=150)
    assert traffic.unanswered == 0
    for group in traffic.c.manager.current_groups:
        members = [client for client in clients if client.group == group.group_id]
        assert group.state is GroupState.STABLE
        assert {client.member_id for client in members} == group.members.keys()
        assert {client.generation for client in members} == {group.generation_id}
        for client in members:
            assert client.assignment == assignment(client.instance_id or client.member_id, client.generation)
        assert not group.pending_members
    assert len(traffic.c.manager.current_groups) == 6
    traffic.assert_log_tells_the_same()
    successor = traffic.restarted()
    for client in clients:
        described = {m.member_id: m.assignment for m in successor.describe(client.group)[1].members}
        assert described[client.member_id] == client.assignment


def test_the_same_seed_gives_the_same_life() -> None:
    assert live(99, ticks=60)[0].digest() == live(99, ticks=60)[0].digest()
