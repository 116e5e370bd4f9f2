"""Where an append goes: the offsets that its batches get, and whether a new segment must begin for it."""

from collections.abc import Sequence

from kohort.config import LogConfig
from kohort.log.producer_state import PlacedBatch
from kohort.log.scan import MAX_RELATIVE_OFFSET
from kohort.log.segment import Segment
from kohort.records.batch import BatchHeader, read_header, stamp, stamp_append_time


def place(
    headers: Sequence[BatchHeader], records: bytes, offset: int, leader_epoch: int, append_time: int | None
) -> list[PlacedBatch]:
    """The batches in `records`, numbered from `offset` on and stamped with the leader's epoch.

    With `append_time` (LogAppendTime) they bear that time instead of the producer's.
    """
    placed = []
    for header in headers:
        data = bytearray(records[header.position : header.end])
        stamp(data, base_offset=offset, partition_leader_epoch=leader_epoch)
        if append_time is not None:
            stamp_append_time(data, append_time)
        stamped = bytes(data)
        placed.append(PlacedBatch(read_header(stamped, verify=False), stamped))
        offset = placed[-1].header.next_offset
    return placed


def needs_new_segment(
    segment: Segment, config: LogConfig, size: int, max_timestamp: int, last_offset: int, now_ms: int
) -> bool:
    """Whether an append does not go into the active segment: it is too large, too old, or its indexes are full.

    A segment's age counts in the times of its batches, from the first one to those that are to come (KIP-33).
    """
    if segment.size == 0:
        return False
    began_ms, reached_ms = segment.first_timestamp, max_timestamp
    if began_ms < 0:
        began_ms, reached_ms = segment.created_ms, now_ms
    return (
        segment.size > config.segment_bytes - size
        or reached_ms - began_ms > config.segment_ms
        or segment.is_index_full(config.segment_index_bytes)
        or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
    )
