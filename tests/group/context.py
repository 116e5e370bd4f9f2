"""A coordinator in virtual time, and short words to talk to it.

    c = Context()
    leader = c.dynamic_join("group")        # two requests, and the initial delay passes
    c.sync("group", leader.generation_id, leader.member_id, {leader.member_id: b"\\0"})
    c.sleep(501)                            # its session (500 ms) runs out
    assert c.state("group") == "Empty"

Requests that may be parked return an `Answer`; those that are answered at once return the answer itself. Settings are
those of Kafka's own tests: sessions of 10 ms to 10 min, at most 4 members, an initial delay of 50 ms, 2 partitions.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from kohort.clock import VirtualClock
from kohort.config import GroupConfig
from kohort.errors import ErrorCode
from kohort.group.coordinator import GroupCoordinator
from kohort.group.group_metadata import GroupMetadata
from kohort.group.records import GroupRecords
from kohort.group.requests import (
    Committer,
    GenerationId,
    GroupId,
    GroupSummary,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResult,
    LeaveGroupRequest,
    LeaveGroupResult,
    MemberId,
    MemberIdentity,
    OffsetCommitRequest,
    Offsets,
    PartitionData,
    Protocols,
    SameForAll,
    SyncGroupRequest,
    SyncGroupResult,
    TxnOffsetCommitRequest,
)
from kohort.group.written_commits import WrittenCommits
from kohort.log.names import TopicPartition
from kohort.records.consumer_protocol import Subscription, encode_subscription
from kohort.records.finished_batch import FinishedBatch
from kohort.records.offsets_topic import Key, OffsetCommitValue, Value, decode_key, decode_value
from tests.group.offsets_topic import OffsetsTopic

GROUP = "groupId"
OTHER_GROUP = "otherGroup"
"""On the partition that is not owned."""

CONFIG = GroupConfig(
    group_min_session_timeout_ms=10,
    group_max_session_timeout_ms=600_000,
    group_max_size=4,
    group_initial_rebalance_delay_ms=50,
    offsets_topic_num_partitions=2,
)
INITIAL_DELAY = 50
SESSION_TIMEOUT = 500
REBALANCE_TIMEOUT = 500
PROTOCOLS: Protocols = (("range", b"metadata"),)
PROTOCOL_SUPERSET: Protocols = (("range", b"metadata"), ("roundrobin", b"metadata"))

T = TypeVar("T")
Partition = tuple[str, int]


class Answer(Generic[T]):
    """What becomes of a request: it is answered once or not yet."""

    def __init__(self) -> None:
        self._answers: list[T] = []

    def __call__(self, answer: T) -> None:
        assert not self._answers, f"answered twice: {self._answers[0]}, then {answer}"
        self._answers.append(answer)

    @property
    def is_done(self) -> bool:
        return bool(self._answers)

    @property
    def result(self) -> T:
        assert self._answers, "not answered yet"
        return self._answers[0]


def value(
    offset: int, metadata: str = "", *, leader_epoch: int = -1, time: int = 0, expire: int = -1
) -> OffsetCommitValue:
    return OffsetCommitValue(offset, metadata, time, leader_epoch, expire)


def written(group: GroupId, offsets: Offsets, now_ms: int) -> WrittenCommits:
    """What a client's request becomes on the broker's short way."""
    data = bytearray(GroupRecords(GroupConfig()).offset_commits(group, offsets, now_ms))
    return WrittenCommits(FinishedBatch(data, len(offsets), now_ms), repr(list(offsets)).encode())


def subscription(*topics: str) -> bytes:
    return encode_subscription(Subscription(topics))


class Context:
    """A coordinator with its clock and its log."""

    def __init__(
        self, *, topic: OffsetsTopic | None = None, clock: VirtualClock | None = None, own: bool = True, **settings: Any
    ) -> None:
        self.clock = clock or VirtualClock()
        self.config = replace(CONFIG, **settings)
        self.topic = topic or OffsetsTopic(self.clock, read_size=self.config.offsets_load_buffer_size)
        numbers = itertools.count(1)
        self.coordinator = GroupCoordinator(
            self.config, self.clock, self.topic, new_uuid=lambda: f"{next(numbers):08x}-0000"
        )
        self.manager = self.coordinator.manager
        self.coordinator.startup(enable_metadata_expiration=False)
        if own:
            self.elect(self.coordinator.partition_for(GroupId(GROUP)))

    # Time and the log

    def sleep(self, ms: int) -> None:
        """Time passes, all at once, as on a busy machine; then whatever is due happens."""
        self.clock.advance(ms)
        self.coordinator.timers.run_due()

    def settle(self, ms: int = 1) -> None:
        """Let everything happen that is done in steps."""
        for _ in range(10_000):
            self.clock.advance(ms)
            if not self.coordinator.timers.run_due():
                return
        raise AssertionError("it goes on and on")

    def elect(self, partition: int, epoch: int = 0) -> None:
        self.coordinator.on_election(partition, epoch)

    def resign(self, partition: int, epoch: int | None = None) -> None:
        self.coordinator.on_resignation(partition, epoch)

    def partition(self, group: str = GROUP) -> int:
        return self.coordinator.partition_for(GroupId(group))

    def end_offset(self, group: str = GROUP) -> int:
        return self.topic.log(self.partition(group)).log_end_offset

    def records(self, group: str = GROUP, start: int = 0) -> list[tuple[Key, Value | None]]:
        """What was written to the group's partition, decoded: keys, and values or None for tombstones."""
        records = self.topic.records(self.partition(group), start)
        return [(key := decode_key(record.key), decode_value(key, record.value)) for record in records]

    def restarted(self, **settings: Any) -> "Context":
        """Another coordinator on the same log and clock, which has loaded the same partitions."""
        successor = Context(topic=self.topic, clock=self.clock, own=False, **settings)
        for partition in self.manager.partitions:
            successor.elect(partition)
        return successor

    # Looking

    def group(self, group: str = GROUP) -> GroupMetadata:
        found = self.manager.get_group(GroupId(group))
        assert found is not None, f"no group {group}"
        return found

    def find(self, group: str = GROUP) -> GroupMetadata | None:
        return self.manager.get_group(GroupId(group))

    def state(self, group: str = GROUP) -> str:
        return self.group(group).state.value

    # Membership

    def join(
        self,
        group: str = GROUP,
        member: str = "",
        *,
        instance: str | None = None,
        protocols: Protocols = PROTOCOLS,
        protocol_type: str = "consumer",
        session: int = SESSION_TIMEOUT,
        rebalance: int = REBALANCE_TIMEOUT,
        require_known_id: bool = False,
        client_id: str | None = "consumer-test",
        client_host: str = "localhost",
    ) -> Answer[JoinGroupResult]:
        """One JoinGroup; without `require_known_id` a new member is added at once (versions below 4)."""
        answer: Answer[JoinGroupResult] = Answer()
        request = JoinGroupRequest(
            GroupId(group),
            MemberId(member),
            instance,
            client_id,
            client_host,
            session,
            rebalance,
            protocol_type,
            protocols,
            require_known_id,
        )
        self.coordinator.handle_join_group(request, answer)
        return answer

    def dynamic_join(self, group: str = GROUP, **asked: Any) -> JoinGroupResult:
        """A dynamic member joins as newer clients do: it is given an id, comes again with it, the delay passes."""
        first = self.join(group, require_known_id=True, **asked).result
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        second = self.join(group, first.member_id, require_known_id=True, **asked)
        if not second.is_done:
            self.sleep(INITIAL_DELAY + 1)
        return second.result

    def sync(
        self,
        group: str,
        generation: int,
        member: str,
        assignment: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = None,
    ) -> Answer[SyncGroupResult]:
        answer: Answer[SyncGroupResult] = Answer()
        assigned = {MemberId(member): blob for member, blob in (assignment or {}).items()}
        request = SyncGroupRequest(
            GroupId(group), GenerationId(generation), MemberId(member), instance, protocol_type, protocol_name, assigned
        )
        self.coordinator.handle_sync_group(request, answer)
        return answer

    def heartbeat(self, group: str, member: str, generation: int, *, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(GroupId(group), MemberId(member), GenerationId(generation), instance)
        return self.coordinator.handle_heartbeat(request)

    def leave(self, group: str, *members: str | tuple[str, str | None]) -> LeaveGroupResult:
        """Members by id, or by (id, instance id)."""
        identities = [
            MemberIdentity(MemberId(m)) if isinstance(m, str) else MemberIdentity(MemberId(m[0]), m[1]) for m in members
        ]
        return self.coordinator.handle_leave_group(LeaveGroupRequest(GroupId(group), tuple(identities)))

    def stable_group(self, group: str = GROUP, **asked: Any) -> JoinGroupResult:
        """A group with one dynamic member that has synced."""
        joined = self.dynamic_join(group, **asked)
        self.sync(group, joined.generation_id, joined.member_id, {joined.member_id: b""})
        return joined

    def static_pair(
        self, leader: str = "leader", follower: str = "follower", *, session: int = SESSION_TIMEOUT, **asked: Any
    ) -> tuple[JoinGroupResult, JoinGroupResult]:
        """Two static members with both protocols, joined and synced: generation 1, Stable. Leader first."""
        asked = {"protocols": PROTOCOL_SUPERSET, "session": session} | asked
        first = self.join(instance=leader, **asked)
        second = self.join(instance=follower, **asked)
        self.sleep(INITIAL_DELAY + 1)
        if not first.is_done:
            self.sleep(INITIAL_DELAY + 1)
        one, two = first.result, second.result
        assigned = {one.member_id: b"leader's", two.member_id: b"follower's"}
        self.sync(GROUP, one.generation_id, one.member_id, assigned, instance=leader)
        self.sync(GROUP, two.generation_id, two.member_id, instance=follower)
        return one, two

    # Offsets

    def commit(
        self,
        offsets: Mapping[Partition, int | OffsetCommitValue],
        group: str = GROUP,
        member: str = "",
        generation: int = -1,
        *,
        instance: str | None = None,
        as_bytes: bool = False,
    ) -> Answer[Mapping[TopicPartition, ErrorCode]]:
        """With `as_bytes` as it comes from the broker's short way."""
        answer: Answer[Mapping[TopicPartition, ErrorCode]] = Answer()
        values: Offsets = self._values(offsets)
        if as_bytes:
            values = written(GroupId(group), values, self.clock.now_ms())
        who = Committer(GroupId(group), MemberId(member), GenerationId(generation), instance)
        if isinstance(values, WrittenCommits):
            if self.coordinator.commit_at_once(who, values):
                answer(SameForAll(values, ErrorCode.NONE))
                return answer
            if self.coordinator.commit_soon(who, values, lambda error: answer(SameForAll(values, error))):
                return answer
        request = OffsetCommitRequest(who.group_id, values, who.member_id, who.generation_id, who.group_instance_id)
        self.coordinator.handle_commit_offsets(request, answer)
        return answer

    def txn_commit(
        self,
        producer_id: int,
        offsets: Mapping[Partition, int | OffsetCommitValue],
        group: str = GROUP,
        member: str = "",
        generation: int = -1,
        *,
        instance: str | None = None,
        producer_epoch: int = 0,
    ) -> Answer[Mapping[TopicPartition, ErrorCode]]:
        answer: Answer[Mapping[TopicPartition, ErrorCode]] = Answer()
        request = TxnOffsetCommitRequest(
            GroupId(group),
            producer_id,
            producer_epoch,
            self._values(offsets),
            MemberId(member),
            GenerationId(generation),
            instance,
        )
        self.coordinator.handle_txn_commit_offsets(request, answer)
        return answer

    def _values(self, offsets: Mapping[Partition, int | OffsetCommitValue]) -> dict[TopicPartition, OffsetCommitValue]:
        now = self.clock.now_ms()
        return {
            TopicPartition(*partition): value(given, time=now) if isinstance(given, int) else given
            for partition, given in offsets.items()
        }

    def end_txn(self, producer_id: int, *partitions: int, is_commit: bool, producer_epoch: int = 0) -> None:
        """Markers are written to these partitions of the offsets topic and the coordinator hears of it."""
        for partition in partitions:
            self.topic.write_marker(partition, producer_id, is_commit=is_commit, producer_epoch=producer_epoch)
        self.coordinator.handle_txn_completion(producer_id, partitions, is_commit=is_commit)

    def fetch(
        self, *partitions: Partition, group: str = GROUP, require_stable: bool = False
    ) -> tuple[ErrorCode, Mapping[TopicPartition, PartitionData]]:
        """Of these partitions."""
        asked = [TopicPartition(*partition) for partition in partitions]
        return self.coordinator.handle_fetch_offsets(GroupId(group), asked, require_stable=require_stable)

    def fetch_all(
        self, group: str = GROUP, *, require_stable: bool = False
    ) -> tuple[ErrorCode, Mapping[TopicPartition, PartitionData]]:
        return self.coordinator.handle_fetch_offsets(GroupId(group), None, require_stable=require_stable)

    def offset(self, topic: str, partition: int, group: str = GROUP) -> int:
        """The committed offset, -1 if there is none."""
        error, found = self.fetch((topic, partition), group=group)
        assert error is ErrorCode.NONE
        return found[TopicPartition(topic, partition)].offset

    # Administration

    def describe(self, group: str = GROUP) -> tuple[ErrorCode, GroupSummary]:
        return self.coordinator.handle_describe_group(GroupId(group))

    def delete(self, *groups: str | None) -> Answer[Mapping[GroupId | None, ErrorCode]]:
        answer: Answer[Mapping[GroupId | None, ErrorCode]] = Answer()
        self.coordinator.handle_delete_groups([None if g is None else GroupId(g) for g in groups], answer)
        return answer

    def delete_offsets(
        self, partitions: Sequence[Partition], group: str = GROUP
    ) -> Answer[tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]]:
        answer: Answer[tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]] = Answer()
        asked = [TopicPartition(*partition) for partition in partitions]
        self.coordinator.handle_delete_offsets(GroupId(group), asked, lambda error, each: answer((error, each)))
        return answer


def only(errors: Mapping[Any, ErrorCode] | Iterable[ErrorCode]) -> ErrorCode:
    """The error that all of them are."""
    found = set(errors.values() if isinstance(errors, Mapping) else errors)
    assert len(found) == 1, found
    return found.pop()
