"""DeleteRecords (21): move the begin of a log, so that older records are gone (KIP-107).

0 · 1 throttling only · 2 flexible
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.leading import led_log
from kohort.broker.security.permission import DELETE_TOPIC
from kohort.broker.topics import INTERNAL_TOPICS
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_ALL = -1
"""Stands for the high watermark."""
_NO_OFFSET = -1


class NotDeletable(ClientError):
    """A topic that is compacted only: its records go when younger ones have their keys."""

    code = ErrorCode.POLICY_VIOLATION


class Internal(ClientError):
    """A topic that is the coordinators' own."""

    code = ErrorCode.INVALID_TOPIC


@api(21, 0, 2, permissions=(DELETE_TOPIC,))
def delete_records(broker: "Broker", call: "Call") -> None:
    refused = call.refused(DELETE_TOPIC, (topic.name for topic in call.request.topics))
    topics = []
    for topic in call.request.topics:
        results = [
            _told(wanted.partition_index, DELETE_TOPIC.refusal, _NO_OFFSET)
            if topic.name in refused
            else _deleted(broker, TopicPartition(topic.name, wanted.partition_index), wanted.offset)
            for wanted in topic.partitions
        ]
        topics.append({"name": topic.name, "partitions": results})
    call.answer({"topics": topics})


def _deleted(broker: "Broker", partition: TopicPartition, offset: int) -> dict[str, Any]:
    error = ErrorCode.NONE
    try:
        low_watermark = _delete(broker, partition, offset)
    except (ClientError, StorageFailed) as refusal:
        error, low_watermark = refusal.code, _NO_OFFSET
    return _told(partition.partition, error, low_watermark)


def _told(index: int, error: ErrorCode, low_watermark: int) -> dict[str, Any]:
    return {"partition_index": index, "low_watermark": low_watermark, "error_code": error}


def _delete(broker: "Broker", partition: TopicPartition, offset: int) -> int:
    log = led_log(broker.topics, partition)
    if partition.topic in INTERNAL_TOPICS:
        raise Internal(f"{partition.topic} is internal")
    if "delete" not in log.config.cleanup_policy:
        raise NotDeletable(f"{partition.topic} is compacted")
    return log.delete_records_before(log.high_watermark if offset == _ALL else offset)
