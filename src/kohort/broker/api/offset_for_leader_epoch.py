"""OffsetForLeaderEpoch (23): where an epoch of leadership ended; consumers ask it to see whether a log was cut.

2 the epoch that the client believes in (KIP-320) · 3 a replica's id · 4 flexible
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.leading import NO_EPOCH_END, end_of_epoch, led_log
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(23, 2, 4)
def offset_for_leader_epoch(broker: "Broker", call: "Call") -> None:
    topics = [
        {"topic": topic.topic, "partitions": [_end(broker, topic.topic, wanted) for wanted in topic.partitions]}
        for topic in call.request.topics
    ]
    call.answer({"topics": topics})


def _end(broker: "Broker", topic: str, wanted: Any) -> dict[str, Any]:
    error = ErrorCode.NONE
    try:
        log = led_log(broker.topics, TopicPartition(topic, wanted.partition), wanted.current_leader_epoch)
        end = end_of_epoch(log, wanted.leader_epoch)
    except (ClientError, StorageFailed) as refusal:
        error, end = refusal.code, NO_EPOCH_END
    return {
        "error_code": error,
        "partition": wanted.partition,
        "leader_epoch": end.epoch,
        "end_offset": end.offset,
    }
