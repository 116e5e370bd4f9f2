"""What others wrote to `__consumer_offsets`: batches built by hand, and topics that hold them when a test begins."""

from collections.abc import Mapping, Sequence
from typing import Any

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import Record, RecordBatch
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    MemberValue,
    OffsetCommitValue,
    OffsetKey,
    encode_key,
    encode_value,
)
from tests.group.context import GROUP, Context, Partition, value
from tests.group.offsets_topic import LOG_CONFIG, OffsetsTopic

TIME = VirtualClock().now_ms()
OFFSETS: dict[Partition, int] = {("foo", 0): 23, ("foo", 1): 455, ("bar", 0): 8992}

Pair = tuple[bytes, bytes | None]
"""Key and value of a record."""


def commits(
    offsets: Mapping[Partition, int | OffsetCommitValue], group: str = GROUP, *, version: int = 3, expire: int = -1
) -> list[Pair]:
    values = {
        partition: value(given, time=TIME, expire=expire) if isinstance(given, int) else given
        for partition, given in offsets.items()
    }
    return [
        (encode_key(OffsetKey(group, *partition)), encode_value(committed._replace(version=version)))
        for partition, committed in values.items()
    ]


def offset_tombstones(*partitions: Partition, group: str = GROUP) -> list[Pair]:
    return [(encode_key(OffsetKey(group, *partition)), None) for partition in partitions]


def member(member_id: str, **fields: Any) -> MemberValue:
    told: dict[str, Any] = {
        "client_id": "clientId",
        "client_host": "clientHost",
        "rebalance_timeout": 30_000,
        "session_timeout": 10_000,
        "subscription": b"",
        "assignment": b"",
    }
    return MemberValue(member_id, **told | fields)


def group_record(
    generation: int, *members: str | MemberValue, group: str = GROUP, protocol: str = "range", **fields: Any
) -> Pair:
    """A group with these members, the first of whom leads; without any it is Empty."""
    values = tuple(member(given) if isinstance(given, str) else given for given in members)
    told: dict[str, Any] = {
        "protocol_type": "consumer",
        "protocol": protocol if values else None,
        "leader": values[0].member_id if values else None,
        "current_state_timestamp": TIME,
    }
    written = GroupMetadataValue(generation=generation, members=values, **told | fields)
    return encode_key(GroupKey(group)), encode_value(written)


def group_tombstone(group: str = GROUP) -> Pair:
    return encode_key(GroupKey(group)), None


def batch(*pairs: Pair, producer_id: int | None = None, producer_epoch: int = 2) -> bytes:
    """One batch; with a producer it is part of a transaction."""
    records = [Record(number, TIME, key, value) for number, (key, value) in enumerate(pairs)]
    if producer_id is None:
        return RecordBatch.build(records).encode()
    return RecordBatch.build(
        records, transactional=True, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=0
    ).encode()


def marker(producer_id: int, *, is_commit: bool, producer_epoch: int = 2) -> bytes:
    end = Marker(ControlType.COMMIT if is_commit else ControlType.ABORT, 0)
    return marker_batch(end, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=TIME).encode()


def written(
    *batches: bytes, start: int = 15, group: str = GROUP, config: LogConfig = LOG_CONFIG, **asked: Any
) -> Context:
    """A coordinator that owns nothing yet; the log of `group` begins at `start` and holds these batches."""
    clock = VirtualClock(TIME)
    topic = OffsetsTopic(clock, config=config, read_size=asked.get("offsets_load_buffer_size", 5_242_880))
    c = Context(topic=topic, clock=clock, own=False, **asked)
    partition = c.partition(group)
    if start:
        topic.write(partition, batch(*commits({("before", n): n for n in range(start)}, group)))
        topic.log(partition).delete_records_before(start)
    for each in batches:
        topic.write(partition, each)
    return c


def loaded(*batches: bytes, start: int = 15, group: str = GROUP, epoch: int = 0, **asked: Any) -> Context:
    """A coordinator that has loaded these batches."""
    c = written(*batches, start=start, group=group, **asked)
    c.elect(c.partition(group), epoch)
    return c


def offsets_of(c: Context, group: str = GROUP) -> dict[Partition, int]:
    """Every committed offset of a group that the coordinator has in memory."""
    return {tuple(partition): at.value.offset for partition, at in c.group(group).offsets.items()}


class StoredTopic(OffsetsTopic):
    """A topic whose partitions were written by another broker: the bytes of the segments of each, by base offset."""

    def __init__(self, clock: VirtualClock, segments: Mapping[int, Sequence[tuple[int, bytes]]], **asked: Any) -> None:
        super().__init__(clock, **asked)
        image: dict[str, bytes | None] = {"/data": None}
        for partition, files in segments.items():
            image[f"/data/__consumer_offsets-{partition}"] = None
            for base, data in files:
                image[f"/data/__consumer_offsets-{partition}/{base:020}.log"] = data
        self._files = SimulatedFiles(image)
