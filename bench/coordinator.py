"""The coordinator alone: in one process, without sockets, on a log in memory.

python -m bench.coordinator WHAT prints one measurement as JSON, in a process of its own because it measures memory.
"""

import gc
import json
import os
import struct
import sys
import time
from collections.abc import Callable

import numpy as np

from kohort.clock import VirtualClock
from kohort.config import GroupConfig
from kohort.errors import ErrorCode
from kohort.group.coordinator import GroupCoordinator
from kohort.group.group_metadata import GroupMetadata
from kohort.group.member_metadata import MemberMetadata
from kohort.group.offsets_log import AppendCallback, LoadCallback
from kohort.group.placement import partition_for
from kohort.group.records import GroupRecords
from kohort.group.requests import (
    GroupId,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResult,
    MemberId,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from kohort.log.names import TopicPartition
from kohort.records.columns import decode
from kohort.records.finish import finish
from kohort.records.offsets_topic import OffsetCommitValue
from kohort.records.replay import Piece

PARTITIONS = 50
GROUP = GroupId("bench")
HOUR_MS = 3_600_000


class MemoryLog:
    """Batches in lists, numbered as a log would number them."""

    def __init__(self) -> None:
        self.batches: dict[int, list[bytes]] = {}
        self._ends: dict[int, int] = {}

    def append(self, partition: int, records: bytes, done: AppendCallback) -> None:
        offset = self._ends.get(partition, 0)
        (last_offset_delta,) = struct.unpack_from(">i", records, 23)
        self._ends[partition] = offset + last_offset_delta + 1
        self.batches.setdefault(partition, []).append(struct.pack(">q", offset) + records[8:])
        done(ErrorCode.NONE, offset)

    def load(self, partition: int, done: LoadCallback) -> None:
        piece = Piece()
        data = np.frombuffer(b"".join(self.batches.get(partition, [])), np.uint8)
        while len(data):
            window = decode(data, piece.keys)
            piece.append(window.columns)
            data = data[window.consumed :]
        done(finish([piece]))


class Bench:
    """A coordinator that owns everything."""

    def __init__(self, log: MemoryLog | None = None) -> None:
        self.clock = VirtualClock()
        self.coordinator = GroupCoordinator(GroupConfig(), self.clock, log or MemoryLog())
        self.coordinator.startup(enable_metadata_expiration=False)
        for partition in range(PARTITIONS):
            self.coordinator.on_election(partition, 0)

    def join(self, members: list[MemberId]) -> list[JoinGroupResult]:
        """All of them, and time passes until they are answered."""
        answers: list[JoinGroupResult] = []
        for member in members:
            request = JoinGroupRequest(
                GROUP, member, None, "bench", "/127.0.0.1", 30_000, 60_000, "consumer", (("range", b"m" * 40),)
            )
            self.coordinator.handle_join_group(request, answers.append)
        while not answers:
            self.clock.advance(3_001)
            self.coordinator.timers.run_due()
        return answers

    def sync(self, joined: list[JoinGroupResult]) -> None:
        """The leader last, as it happens in life: it has the most to do."""
        answers: list[ErrorCode] = []
        leader = joined[0].leader_id
        assignment = {answer.member_id: b"a" * 40 for answer in joined}
        for answer in sorted(joined, key=lambda answer: answer.member_id == leader):
            given = assignment if answer.member_id == leader else {}
            request = SyncGroupRequest(GROUP, answer.generation_id, answer.member_id, group_assignment=given)
            self.coordinator.handle_sync_group(request, lambda result: answers.append(result.error))
        assert answers == [ErrorCode.NONE] * len(joined)


def best(run: Callable[[], float], times: int = 5) -> float:
    """The machines are noisy."""
    return min(run() for _ in range(times))


def commits() -> dict[str, float]:
    """Microseconds for a commit of 10 partitions by a member."""
    bench = Bench()
    joined = bench.join([MemberId("")])
    bench.sync(joined)
    topic = [TopicPartition("a-topic-of-usual-length", n) for n in range(10)]

    def run() -> float:
        answered = 0

        def respond(_: object) -> None:
            nonlocal answered
            answered += 1

        requests = [
            OffsetCommitRequest(
                GROUP,
                {partition: OffsetCommitValue(offset, "", bench.clock.now_ms()) for partition in topic},
                joined[0].member_id,
                joined[0].generation_id,
            )
            for offset in range(2_000)
        ]
        began = time.perf_counter()
        for request in requests:
            bench.coordinator.handle_commit_offsets(request, respond)
        took = time.perf_counter() - began
        assert answered == len(requests)
        return took / len(requests)

    return {"microseconds": best(run) * 1e6}


def heartbeats() -> dict[str, float]:
    bench = Bench()
    joined = bench.join([MemberId("")] * 100)
    bench.sync(joined)
    requests = [HeartbeatRequest(GROUP, answer.member_id, answer.generation_id) for answer in joined] * 100

    def run() -> float:
        handle = bench.coordinator.handle_heartbeat
        began = time.perf_counter()
        for request in requests:
            handle(request)
        return (time.perf_counter() - began) / len(requests)

    return {"microseconds": best(run) * 1e6}


def rebalance(members: int) -> dict[str, float]:
    """Microseconds per member: everybody joins again and syncs."""
    bench = Bench()
    joined = bench.join([MemberId("")] * members)
    bench.sync(joined)

    def run() -> float:
        nonlocal joined
        rounds = max(1, 2_000 // members)
        ids = [answer.member_id for answer in joined]
        began = time.perf_counter()
        for _ in range(rounds):
            joined = bench.join(ids)
            bench.sync(joined)
        return (time.perf_counter() - began) / rounds / members

    return {"microseconds": best(run) * 1e6}


def written_groups(log: MemoryLog, groups: int, offsets: int) -> None:
    """A log of groups with one member each, and their offsets."""
    clock, records = VirtualClock(), GroupRecords(GroupConfig())
    value = OffsetCommitValue(1_234_567, "", clock.now_ms())
    for number in range(groups):
        group_id = GroupId(f"group-of-bench-{number:06}")
        partition = partition_for(group_id, PARTITIONS)
        group = GroupMetadata(group_id, clock)
        member = MemberMetadata(
            MemberId(f"consumer-{number}"), None, "c", "/127.0.0.1", 60_000, 30_000, "consumer", (("range", b"m" * 40),)
        )
        group.restore(
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader_id=member.member_id,
            state_timestamp=clock.now_ms(),
            members=[member],
        )
        batch = records.group_metadata(group, {member.member_id: b"a" * 40}, clock.now_ms())
        log.append(partition, batch, lambda *_: None)
        if offsets:
            committed = {TopicPartition("a-topic-of-usual-length", n): value for n in range(offsets)}
            log.append(partition, records.offset_commits(group_id, committed, clock.now_ms()), lambda *_: None)


def load(groups: int, offsets: int) -> dict[str, float]:
    """Seconds to load, and bytes of memory that the groups take."""
    log = MemoryLog()
    written_groups(log, groups, offsets)
    Bench(_warm_log())
    gc.collect()
    before = _resident_bytes()
    began = time.perf_counter()
    bench = Bench(log)
    took = time.perf_counter() - began
    gc.collect()
    assert len(bench.coordinator.manager.current_groups) == groups
    return {"seconds": took, "bytes": _resident_bytes() - before}


def _warm_log() -> MemoryLog:
    log = MemoryLog()
    written_groups(log, 100, 1)
    return log


def _resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def expiry(groups: int, offsets: int) -> dict[str, float]:
    """A million expired offsets: seconds altogether, and milliseconds of the longest stretch without a pause.

    These are of the thread's own time, for what other programs take on a busy machine says nothing of ours.
    """
    bench = Bench()
    coordinator = bench.coordinator
    now = bench.clock.now_ms()
    for number in range(groups):
        committed = {
            TopicPartition("a-topic-of-usual-length", n): OffsetCommitValue(n, "", now) for n in range(offsets)
        }
        coordinator.manager.store_offsets(
            coordinator.manager.get_or_create_group(GroupId(f"group-{number}")), committed, lambda _: None
        )
    bench.clock.advance(8 * 24 * HOUR_MS)
    began = time.perf_counter()
    step_began = time.thread_time()
    coordinator.cleanup_group_metadata()
    longest = time.thread_time() - step_began
    while coordinator.manager.current_groups:
        bench.clock.advance(1)
        step_began = time.thread_time()
        coordinator.timers.run_due()
        longest = max(longest, time.thread_time() - step_began)
    assert coordinator.snapshot()["offset-expiration-count"] == groups * offsets
    return {"seconds": time.perf_counter() - began, "longest_ms": longest * 1000}


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "commits": commits,
    "heartbeats": heartbeats,
    **{f"rebalance-{n}": lambda n=n: rebalance(n) for n in (10, 100, 1000)},
    "load-groups": lambda: load(100_000, 0),
    "load-offsets": lambda: load(100_000, 10),
    "expiry-many-groups": lambda: expiry(100_000, 10),
    "expiry-one-group": lambda: expiry(1, 1_000_000),
}


if __name__ == "__main__":
    print(json.dumps(MEASUREMENTS[sys.argv[1]]()))
