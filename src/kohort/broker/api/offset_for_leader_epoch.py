"""OffsetForLeaderEpoch (23): where an epoch of leadership ended; consumers ask it to see whether a log was cut.

2 the epoch that the client believes in (KIP-320) · 3 a replica's id · 4 flexible
"""

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.replicas import refused_topics
from kohort.broker.leading import NO_EPOCH_END, EpochEnd, end_of_epoch, led_log
from kohort.broker.security.permission import CLUSTER_ACTION, DESCRIBE_TOPIC
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


_CONSUMER = -1


@api(23, 2, 4, permissions=(DESCRIBE_TOPIC, CLUSTER_ACTION))
def offset_for_leader_epoch(broker: "Broker", call: "Call") -> None:
    asked = call.request.topics
    refused: Container[str | None] = ()
    if not call.might(CLUSTER_ACTION):
        replica_id = getattr(call.request, "replica_id", _CONSUMER)
        refused = refused_topics(call, replica_id, DESCRIBE_TOPIC, (topic.topic for topic in asked))
    topics = [
        {
            "topic": topic.topic,
            "partitions": [
                _told(one.partition, DESCRIBE_TOPIC.refusal, NO_EPOCH_END)
                if topic.topic in refused
                else _end(broker, topic.topic, one)
                for one in topic.partitions
            ],
        }
        for topic in asked
    ]
    call.answer({"topics": topics})


def _end(broker: "Broker", topic: str, wanted: Any) -> dict[str, Any]:
    error = ErrorCode.NONE
    try:
        log = led_log(broker.topics, TopicPartition(topic, wanted.partition), wanted.current_leader_epoch)
        end = end_of_epoch(log, wanted.leader_epoch)
    except (ClientError, StorageFailed) as refusal:
        error, end = refusal.code, NO_EPOCH_END
    return _told(wanted.partition, error, end)


def _told(partition: int, error: ErrorCode, end: EpochEnd) -> dict[str, Any]:
    return {
        "error_code": error,
        "partition": partition,
        "leader_epoch": end.epoch,
        "end_offset": end.offset,
    }
