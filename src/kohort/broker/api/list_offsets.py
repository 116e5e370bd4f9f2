"""ListOffsets (2): where a log begins, where it ends, and the first record from some time on.

1 one offset with its time (KIP-79) · 2 isolation levels · 4 leader epochs (KIP-320) · 6 flexible · 7 the youngest
record (KIP-734) · 8 the first offset on the broker's own disk, which is the first of all here (KIP-405) · 9 the last
that was moved elsewhere, which is none here (KIP-1005) · 10 a timeout for those · 11 the first that is still to be
moved, which is none either (KIP-1023)
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.partitions import topic_partitions
from kohort.broker.api.replicas import refused_topics
from kohort.broker.leading import leader_epoch, led_log
from kohort.broker.security.permission import CLUSTER_ACTION, DESCRIBE_TOPIC
from kohort.errors import ClientError, CorruptLog, ErrorCode, StorageFailed
from kohort.log.answers import OffsetAndTimestamp
from kohort.log.failures import storage_errors
from kohort.records.batch import NO_LEADER_EPOCH, NO_TIMESTAMP

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.log.partition import Log

_CONSUMER = -1
_READ_COMMITTED = 1

_LATEST, _EARLIEST, _YOUNGEST, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
_FROM = {_YOUNGEST: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING: 11}
"""The versions that know of these times; below 0 there are no others."""

_NOTHING = OffsetAndTimestamp(-1, NO_TIMESTAMP, NO_LEADER_EPOCH)


class UnknownTime(ClientError):
    """A time that stands for something that this version does not know."""

    code = ErrorCode.UNSUPPORTED_VERSION


class NamedTwice(ClientError):
    """A partition with two questions in one request."""

    code = ErrorCode.INVALID_REQUEST


class NotForThem(ClientError):
    """A topic that who asks may not know of."""

    code = DESCRIBE_TOPIC.refusal


@api(2, 1, 11, permissions=(DESCRIBE_TOPIC, CLUSTER_ACTION))
def list_offsets(broker: "Broker", call: "Call") -> None:
    request = call.request
    times_named = Counter(partition for partition, _ in topic_partitions(request.topics))
    refused = refused_topics(call, request.replica_id, DESCRIBE_TOPIC, (topic.name for topic in request.topics))
    by_topic: dict[str, dict[int, dict[str, Any]]] = {topic.name: {} for topic in request.topics}
    for partition, wanted in topic_partitions(request.topics):
        error = ErrorCode.NONE
        try:
            if partition.topic in refused:
                raise NotForThem(f"{partition} is not for everybody")
            if times_named[partition] > 1:
                raise NamedTwice(f"{partition} is named {times_named[partition]} times")
            log = led_log(broker.topics, partition, getattr(wanted, "current_leader_epoch", NO_LEADER_EPOCH))
            with storage_errors(log.path):
                found = _find(log, wanted.timestamp, _end(log, request), call.version)
        except (ClientError, StorageFailed) as refusal:
            error, found = refusal.code, _NOTHING
        except CorruptLog:
            error, found = ErrorCode.CORRUPT_MESSAGE, _NOTHING
        by_topic[partition.topic][partition.partition] = {
            "partition_index": partition.partition,
            "error_code": error,
            "timestamp": found.timestamp,
            "offset": found.offset,
            "leader_epoch": found.leader_epoch,
        }
    topics = [{"name": name, "partitions": list(partitions.values())} for name, partitions in by_topic.items()]
    call.answer({"topics": topics})


def _end(log: "Log", request: Any) -> int:
    """How far whoever asks may read."""
    if request.replica_id != _CONSUMER:
        return log.log_end_offset
    if getattr(request, "isolation_level", 0) == _READ_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark


def _find(log: "Log", timestamp: int, end: int, version: int) -> OffsetAndTimestamp:
    if timestamp == _LATEST:
        return OffsetAndTimestamp(end, NO_TIMESTAMP, leader_epoch(log))
    if timestamp < _EARLIEST and version < _FROM.get(timestamp, version + 1):
        raise UnknownTime(f"time {timestamp} in version {version}")
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        start = log.log_start_offset
        epoch = leader_epoch(log) if start == log.log_end_offset else log.leader_epochs.epoch_of(start)
        return OffsetAndTimestamp(start, NO_TIMESTAMP, epoch)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING):
        return _NOTHING
    if timestamp == _YOUNGEST:
        timestamp = max(segment.max_timestamp for segment in log.segments)
    found = log.offset_for_timestamp(timestamp)
    return found if found is not None and found.offset < end else _NOTHING
