"""What a log demands of the batches that are to be appended, before any of them gets an offset (Kafka's LogValidator).

A client's batch is opened and every record looked at; what the coordinators write was built here and is checked as far
as its header and its checksum go. Only batches of format 2 are written. A batch is taken or refused as a whole; where
single records are the reason, the refusal tells which (KIP-467).
"""

from collections.abc import Sequence

from kohort.config import LONGEST_MS, LogConfig
from kohort.errors import (
    CorruptLog,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    RecordError,
    RecordListTooLarge,
    RecordTooLarge,
)
from kohort.log.producer_entry import AppendOrigin
from kohort.records.batch import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Record,
    decode_records,
    open_body,
    read_header,
)
from kohort.records.skimming import is_plain

LOG_APPEND_TIME = "LogAppendTime"


def validate(records: bytes, config: LogConfig, origin: AppendOrigin, now_ms: int) -> list[BatchHeader]:
    """The headers of the batches in `records`, or the refusal that fits."""
    headers = read_headers(records)
    for header in headers:
        _validate_batch(header, config)
        if origin is AppendOrigin.CLIENT:
            _validate_client_batch(header, records, config, now_ms)
    if origin is AppendOrigin.CLIENT and len(headers) > 1:
        raise InvalidRecord(f"{len(headers)} batches where a client may send one")
    _validate_fit(len(records), config)
    return headers


def validate_size(size: int, config: LogConfig) -> None:
    """Whether a batch of this many bytes is taken."""
    if size > config.max_message_bytes:
        raise RecordTooLarge(f"a batch of {size} bytes, {config.max_message_bytes} are allowed")
    _validate_fit(size, config)


def _validate_fit(size: int, config: LogConfig) -> None:
    if size > config.segment_bytes:
        raise RecordListTooLarge(f"{size} bytes do not fit into a segment of {config.segment_bytes}")


def read_headers(records: bytes) -> list[BatchHeader]:
    """The headers of the batches that follow on each other in `records`."""
    headers: list[BatchHeader] = []
    position = 0
    try:
        while position < len(records):
            headers.append(read_header(records, position))
            position = headers[-1].end
    except CorruptLog as damage:
        raise CorruptMessage(str(damage)) from None
    if not headers:
        raise InvalidRecord("nothing to append")
    return headers


def _validate_batch(header: BatchHeader, config: LogConfig) -> None:
    if header.magic != 2:
        raise InvalidRecord(f"batches of format {header.magic} are read, but not written")
    validate_size(header.size, config)
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecord(f"{header.record_count} records with a last offset delta of {header.last_offset_delta}")
    if header.is_log_append_time and config.message_timestamp_type != LOG_APPEND_TIME:
        raise InvalidTimestamp("the producer has set LogAppendTime, which is the broker's to set")


def _validate_client_batch(header: BatchHeader, records: bytes, config: LogConfig, now_ms: int) -> None:
    if header.is_control:
        raise InvalidRecord("clients may not write control records")
    if header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        raise InvalidRecord(f"sequence {header.base_sequence} of producer {header.producer_id}")
    if header.producer_id == NO_PRODUCER_ID and header.is_transactional:
        raise InvalidRecord("a transactional batch without a producer id")
    try:
        body = open_body(header, records)
        if _is_plain(header, body, config, now_ms):
            return
        opened = tuple(decode_records(header, body))
    except CorruptLog as damage:
        raise InvalidRecord(str(damage)) from None
    if [record.offset - header.base_offset for record in opened] != list(range(len(opened))):
        raise InvalidRecord("the records are not numbered from 0")
    _validate_records(opened, config, now_ms)


def _times(config: LogConfig, now_ms: int) -> tuple[int, int]:
    """The oldest and the youngest time that a record may have."""
    if config.message_timestamp_type == LOG_APPEND_TIME:
        return -LONGEST_MS, 2 * LONGEST_MS
    return now_ms - config.max_age_ms, now_ms + config.max_lead_ms


def _is_plain(header: BatchHeader, body: bytes, config: LogConfig, now_ms: int) -> bool:
    """Whether a quick look is enough to take the batch."""
    oldest, youngest = _times(config, now_ms)
    return header.base_timestamp >= oldest and is_plain(
        body,
        header.record_count,
        most_time_delta=youngest - header.base_timestamp,
        needs_keys="compact" in config.cleanup_policy,
    )


def _validate_records(opened: Sequence[Record], config: LogConfig, now_ms: int) -> None:
    needs_key = "compact" in config.cleanup_policy
    oldest, youngest = _times(config, now_ms)
    wrong, is_time_wrong = [], False
    for index, record in enumerate(opened):
        if needs_key and record.key is None:
            wrong.append(RecordError(index, "a compacted topic takes no record without a key"))
        elif not oldest <= record.timestamp <= youngest and record.timestamp != NO_TIMESTAMP:
            is_time_wrong = True
            wrong.append(
                RecordError(index, f"a time of {record.timestamp}, taken are those from {oldest} to {youngest}")
            )
    if wrong:
        kind = InvalidTimestamp if is_time_wrong else InvalidRecord
        raise kind(f"{len(wrong)} of {len(opened)} records: {wrong[0].message}", wrong)
