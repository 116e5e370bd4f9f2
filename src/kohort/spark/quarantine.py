"""The table `quarantine`: one row for each damaged batch, with what can be told of it."""

from kohort.errors import CorruptLog
from kohort.log.place import OpenFile
from kohort.records.batch import LOG_OVERHEAD, SMALLEST_RECORD, claimed_end, read_header
from kohort.spark.inputs import Stretch

_RAW_BYTES = 1024


def quarantine_row(damage: CorruptLog, stretch: Stretch, file: OpenFile, size: int) -> dict[str, object]:
    """The row of a damaged batch that begins at `damage.position`."""
    file.seek(damage.position)
    raw = file.read(_RAW_BYTES) or b""
    offset, records = _claims(raw, size - damage.position)
    return {
        "path": stretch.segment.path,
        "partition": stretch.partition,
        "position": damage.position,
        "offset": offset,
        "records": records,
        "reason": damage.reason,
        "raw": raw,
    }


def affected_records(damage: CorruptLog, file: OpenFile, size: int) -> int:
    """How many records that row would tell of."""
    file.seek(damage.position)
    return _claims(file.read(_RAW_BYTES) or b"", size - damage.position)[1]


def _claims(raw: bytes, left: int) -> tuple[int | None, int]:
    """The first offset and the number of records that a damaged batch claims, as far as that can be true."""
    end = claimed_end(raw, 0)
    if end is None or end > left:
        return None, 1
    # Only the header is looked at, so the rest of the batch may as well be zeros.
    try:
        header = read_header(raw + bytes(max(0, end - len(raw))), verify=False)
    except CorruptLog:
        return None, 1
    if header.magic < 2 or not 0 < header.record_count * SMALLEST_RECORD <= end - LOG_OVERHEAD:
        return header.base_offset, 1
    return header.base_offset, header.record_count
