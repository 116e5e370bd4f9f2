"""Control records: the markers that end a transaction in a partition."""

from dataclasses import dataclass
from enum import IntEnum

from kohort.records.batch import Record, RecordBatch
from kohort.records.primitives import Malformed, Reader, Writer


class ControlType(IntEnum):
    """What a control record says. Others exist (leader changes and the like); to a transaction they mean nothing."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction."""

    type: ControlType
    coordinator_epoch: int


def marker_batch(
    marker: Marker, *, producer_id: int, producer_epoch: int, timestamp: int, partition_leader_epoch: int = -1
) -> RecordBatch:
    """The control batch that a transaction coordinator has written."""
    key = Writer().int16(0).int16(marker.type).done()
    value = Writer().int16(0).int32(marker.coordinator_epoch).done()
    return RecordBatch.build(
        [Record(0, timestamp, key, value)],
        transactional=True,
        control=True,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
    )


def decode_control_type(key: bytes | None) -> int | None:
    """The type that a control record's key names, known or not; None where it names none."""
    if key is None or len(key) < 4:
        return None
    return int.from_bytes(key[2:4], "big", signed=True)


def decode_marker(record: Record) -> Marker | None:
    """The marker in a control record, or None if it is another kind of control record."""
    control_type = decode_control_type(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT) or record.value is None:
        return None
    reader = Reader(record.value)
    try:
        reader.int16()
        return Marker(ControlType(control_type), reader.int32())
    except Malformed:
        return None
