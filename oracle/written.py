"""What a conversation left in `__consumer_offsets`, as plain values."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tests.broker.wire_client import WireClient

from kohort.records.batch import NO_PRODUCER_ID, Record, RecordBatch, read_batches
from kohort.records.control import decode_marker
from kohort.records.offsets_topic import (
    NO_EXPIRE_TIMESTAMP,
    GroupMetadataValue,
    OffsetCommitValue,
    OffsetKey,
    decode_key,
    decode_value,
)
from oracle.apis import Api
from oracle.plain import Names, clock_time, in_order

OFFSETS_TOPIC = "__consumer_offsets"
_EVERYTHING = 1 << 30


def read_log(client: WireClient, partition: int, offset: int) -> list[RecordBatch]:
    """All batches from an offset on; none if there is no such topic yet."""
    batches: list[RecordBatch] = []
    while True:
        wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": _EVERYTHING}
        answer = client.ask(
            Api.FETCH,
            11,
            replica_id=-1,
            max_bytes=_EVERYTHING,
            session_epoch=-1,
            topics=[{"topic": OFFSETS_TOPIC, "partitions": [{**wanted, "current_leader_epoch": -1}]}],
        )
        found = answer.responses[0].partitions[0]
        if found.error_code.value or found.high_watermark <= offset:
            return batches
        new = [batch for batch in read_batches(found.records) if batch.header.base_offset >= offset]
        batches += new
        offset = new[-1].header.next_offset


def of_conversation(batches: list[RecordBatch], name: str, names: Names) -> Iterator[dict[str, Any]]:
    """The batches that concern the groups or the producers of a conversation, without ids, offsets and times."""
    for batch in batches:
        head = batch.header
        if head.is_control:
            if head.producer_id not in names.producers:
                continue
        elif not any(_is_of(name, record) for record in batch.records):
            continue
        yield {
            "magic": head.magic,
            "codec": head.codec,
            "is_log_append_time": head.is_log_append_time,
            "is_transactional": head.is_transactional,
            "is_control": head.is_control,
            "partition_leader_epoch": head.partition_leader_epoch,
            "producer": names.producer(head.producer_id) if head.producer_id != NO_PRODUCER_ID else None,
            "producer_epoch": head.producer_epoch,
            "base_sequence": head.base_sequence,
            "records": in_order([_plain(record, names, is_control=head.is_control) for record in batch.records]),
        }


def _is_of(name: str, record: Record) -> bool:
    group = getattr(decode_key(record.key), "group", None)
    return group == name or (group or "").startswith(f"{name}.")


def _plain(record: Record, names: Names, *, is_control: bool) -> dict[str, Any]:
    told = {"timestamp": clock_time(record.timestamp), "headers": list(record.headers)}
    if is_control:
        marker = decode_marker(record)
        return told | {"marker": None if marker is None else asdict(marker)}
    key = decode_key(record.key)
    value = decode_value(key, record.value)
    told["key"] = key._asdict() if isinstance(key, OffsetKey) else asdict(key)
    if isinstance(value, OffsetCommitValue):
        expire = value.expire_timestamp
        return told | {
            "value": value._asdict()
            | {
                "commit_timestamp": clock_time(value.commit_timestamp),
                "expire_timestamp": expire
                if expire == NO_EXPIRE_TIMESTAMP
                else f"commit + {expire - value.commit_timestamp}",
            }
        }
    if isinstance(value, GroupMetadataValue):
        fields = asdict(value)
        fields["current_state_timestamp"] = clock_time(value.current_state_timestamp)
        return told | {"value": names.plain(fields)}
    return told | {"value": value}
