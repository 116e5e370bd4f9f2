"""Logs to measure on: `__consumer_offsets` of any size, made in seconds.

A block of commits is encoded record by record, the way a coordinator writes them: 2,000 groups of 1 to 30 partitions,
a batch for each commit, a group record now and then, one commit in fifty inside a transaction. A larger log is that
block again and again, each time with the offsets that follow; they stand outside of a batch's checksum.
"""

import random
from pathlib import Path

import numpy as np

from kohort.records.batch import Record, RecordBatch
from kohort.records.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.kernels import BASE_OFFSET, HEAD_WIDTH, POSITION, scan_batches
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
SEGMENT_BYTES = 104_857_600
START_MS = 1_790_000_000_000


def block(seed: int = 7) -> tuple[bytes, int]:
    """About `BLOCK_RECORDS` records, and how many offsets they take."""
    rng = random.Random(seed)
    groups = [(f"payments-service-{n:04d}", rng.choice(_TOPICS), rng.choice(_SIZES)) for n in range(2000)]
    out, offset, commits = bytearray(), 0, 0
    while offset < BLOCK_RECORDS:
        group, topic, partitions = rng.choice(groups)
        now = START_MS + commits
        commits += 1
        if commits % 500 == 0:
            batch = RecordBatch.build([_group_record(offset, now, group)])
        else:
            transactional = commits % 50 == 0
            producer_id = commits % 1000 if transactional else -1
            batch = RecordBatch.build(
                [
                    Record(
                        offset + n,
                        now,
                        encode_key(OffsetKey(group, topic, n)),
                        encode_value(OffsetCommitValue(rng.randrange(1 << 40), "", now, leader_epoch=3)),
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


def write_log(directory: Path, records: int, *, partitions: int = 1, seed: int = 7) -> int:
    """A log of at least so many records under `directory`; returns how many there are."""
    data, span = block(seed)
    stamped = np.frombuffer(bytearray(data), np.uint8)
    heads = np.empty((len(data) // 61, HEAD_WIDTH), np.int64)
    count, _, _ = scan_batches(stamped, 0, len(stamped), heads)
    places = heads[:count, POSITION, None] + np.arange(8)
    bases = heads[:count, BASE_OFFSET]
    repeats = -(-records // (span * partitions))
    for partition in range(partitions):
        path = directory / f"__consumer_offsets-{partition}"
        path.mkdir(parents=True, exist_ok=True)
        segment, size = None, 0
        for repeat in range(repeats):
            if segment is None or size + len(data) > SEGMENT_BYTES:
                if segment is not None:
                    segment.close()
                segment, size = (path / f"{repeat * span:020d}.log").open("wb"), 0
            offsets = (bases + repeat * span).astype(">i8").view(np.uint8).reshape(-1, 8)
            stamped[places] = offsets
            segment.write(stamped.data)
            size += len(data)
        if segment is not None:
            segment.close()
    return repeats * span * partitions
