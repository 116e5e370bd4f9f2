"""Logs to measure on: `__consumer_offsets` of any size, made in seconds.

A block of commits is encoded record by record, the way a coordinator writes them: 2,000 groups of 1 to 30 partitions,
a batch for each commit, a group record now and then, one commit in fifty inside a transaction. Each commit is further
than the one before it, as consumers go. A larger log is that block again and again, each time at the offsets and times
that follow, with commits that go on from those of the block before. Each partition has groups of its own.
"""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from kohort.records.batch import Record, RecordBatch
from kohort.records.columns import decode
from kohort.records.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.kernels import MAX_TIMESTAMP, POSITION, SIZE
from kohort.records.key_table import OFFSET_KIND, KeyTable
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    MemberValue,
    OffsetCommitValue,
    OffsetKey,
    encode_key,
    encode_value,
)

BLOCK_RECORDS = 300_000
GROUPS = 2_000
SEGMENT_BYTES = 104_857_600
START_MS = 1_790_000_000_000

_PREFIX = b"payments-service-"
"""What the names of groups begin with; those of another partition differ by a beginning of the same length."""

_FASTEST = 1_000
"""Messages from one commit of a consumer to the next, less than that."""

_BASE_TIMESTAMP, _MAX_TIMESTAMP, _CHECKSUM, _CHECKED = 27, 35, 17, 21
"""Where these stand in a batch."""
_COMMITTED, _COMMIT_TIMESTAMP = 2, 16
"""Where these stand in the value of a commit without metadata."""


def block(seed: int = 7, group_count: int = GROUPS) -> tuple[bytes, int]:
    """About `BLOCK_RECORDS` records, and how many offsets they take."""
    rng = random.Random(seed)
    groups = [(f"payments-service-{n:04d}", rng.choice(_TOPICS), rng.choice(_SIZES)) for n in range(group_count)]
    out, offset, commits = bytearray(), 0, 0
    reached: Counter[tuple[str, int]] = Counter()
    while offset < BLOCK_RECORDS:
        group, topic, partitions = rng.choice(groups)
        now = START_MS + commits
        commits += 1
        if commits % 500 == 0:
            batch = RecordBatch.build([_group_record(offset, now, group)])
        else:
            transactional = commits % 50 == 0
            producer_id = commits % 1000 if transactional else -1
            for n in range(partitions):
                reached[group, n] += rng.randrange(_FASTEST)
            batch = RecordBatch.build(
                [
                    Record(
                        offset + n,
                        now,
                        encode_key(OffsetKey(group, topic, n)),
                        encode_value(OffsetCommitValue(reached[group, n], "", now, leader_epoch=3)),
                    )
                    for n in range(partitions)
                ],
                transactional=transactional,
                producer_id=producer_id,
                producer_epoch=0 if transactional else -1,
                base_sequence=0,
            )
            if transactional:
                out += batch.encode()
                offset = batch.header.next_offset
                marker = Marker(ControlType.COMMIT if commits % 100 else ControlType.ABORT, 1)
                control = marker_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=now)
                batch = RecordBatch.build(
                    [control.records[0]._replace(offset=offset)],
                    transactional=True,
                    control=True,
                    producer_id=producer_id,
                    producer_epoch=0,
                )
        out += batch.encode()
        offset = batch.header.next_offset
    return bytes(out), offset


_TOPICS = ["orders", "payments.completed", "inventory-changes", "clickstream"]
_SIZES = [1, 1, 2, 3, 6, 12, 12, 30]


def _group_record(offset: int, now: int, group: str) -> Record:
    members = tuple(
        MemberValue(
            member_id=f"consumer-{n}-5bec17e7-5843-4530-bcf7-e0ae70892947",
            client_id=f"consumer-{n}",
            client_host="/10.0.0.1",
            session_timeout=45_000,
            rebalance_timeout=300_000,
            subscription=encode_subscription(Subscription(tuple(_TOPICS), version=1)),
            assignment=encode_assignment(Assignment((TopicPartitions("orders", (n, n + 3)),))),
        )
        for n in range(3)
    )
    value = GroupMetadataValue("consumer", 5, "range", members[0].member_id, members, now)
    return Record(offset, now, encode_key(GroupKey(group)), encode_value(value))


def write_log(
    directory: Path,
    records: int,
    *,
    partitions: int = 1,
    seed: int = 7,
    groups: int = GROUPS,
    segment_bytes: int = SEGMENT_BYTES,
) -> int:
    """A log of at least so many records under `directory`; returns how many there are."""
    data, span = block(seed, groups)
    repeats = -(-records // (span * partitions))
    for partition in range(partitions):
        path = directory / f"__consumer_offsets-{partition}"
        path.mkdir(parents=True, exist_ok=True)
        blocks = _Blocks(data, f"payments-{partition:07d}-".encode() if partition else _PREFIX)
        segment, size = None, 0
        for repeat in range(repeats):
            whole = blocks.at(repeat, span)
            for offset, part in blocks.parts(whole, segment_bytes):
                if segment is None or size + len(part) > segment_bytes:
                    if segment is not None:
                        segment.close()
                    segment, size = (path / f"{repeat * span + offset:020d}.log").open("wb"), 0
                segment.write(part)
                size += len(part)
        if segment is not None:
            segment.close()
    return repeats * span * partitions


class _Blocks:
    """A block at any place of a log."""

    def __init__(self, data: bytes, prefix: bytes) -> None:
        columns = decode(np.frombuffer(bytearray(data), np.uint8), KeyTable()).columns
        self._data = np.frombuffer(bytearray(data.replace(_PREFIX, prefix)), np.uint8)
        self._positions, self._sizes = columns.heads[:, POSITION], columns.heads[:, SIZE]
        rows = columns.of_kind(OFFSET_KIND)
        commits, keys = columns.value_starts[rows], columns.key_ids[rows]
        times = [(self._positions + place) for place in (_BASE_TIMESTAMP, _MAX_TIMESTAMP)]
        self._offsets = _Field(self._data, self._positions)
        self._committed = _Field(self._data, commits + _COMMITTED)
        reached = np.zeros(columns.keys.size, np.int64)
        np.maximum.at(reached, keys, self._committed.first)
        self._ahead = reached[keys]
        self._times = [_Field(self._data, places) for places in (*times, commits + _COMMIT_TIMESTAMP)]
        self._took_ms = int(columns.heads[:, MAX_TIMESTAMP].max()) - START_MS + 1

    def parts(self, whole: memoryview, most: int) -> Iterator[tuple[int, memoryview]]:
        """The block in parts of about so many bytes at most, each of whole batches, and the offset within the block
        with which it begins."""
        ends = [*range(most, len(whole), most), len(whole)]
        cuts = np.searchsorted(self._positions, ends).tolist()
        for first, behind in pairwise([0, *cuts]):
            if first < behind:
                end = self._positions[behind] if behind < len(self._positions) else len(whole)
                yield int(self._offsets.first[first]), whole[self._positions[first] : end]

    def at(self, repeat: int, span: int) -> memoryview:
        """The block as it stands behind so many others."""
        self._offsets.move(repeat * span)
        self._committed.move(repeat * self._ahead)
        for field in self._times:
            field.move(repeat * self._took_ms)
        for position, size in zip(self._positions.tolist(), self._sizes.tolist(), strict=True):
            checksum = crc32c(self._data.data[position + _CHECKED : position + size])
            self._data.data[position + _CHECKSUM : position + _CHECKED] = checksum.to_bytes(4, "big")
        return self._data.data


class _Field:
    """A number of eight bytes that stands at many places of a block."""

    def __init__(self, data: NDArray[np.uint8], places: NDArray[np.int64]) -> None:
        self._data, self._places = data, places[:, None] + np.arange(8)
        self.first = np.ascontiguousarray(data[self._places]).view(">i8")[:, 0].astype(np.int64)

    def move(self, distance: int | NDArray[np.int64]) -> None:
        """Let it be so much more than it was at first, everywhere or at each place."""
        self._data[self._places] = (self.first + distance).astype(">i8").view(np.uint8).reshape(-1, 8)
