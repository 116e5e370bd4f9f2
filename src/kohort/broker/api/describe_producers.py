"""DescribeProducers (61): whom partitions remember, and who of them has a transaction open (KIP-664)."""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.refusal import refusal_of
from kohort.broker.leading import led_log
from kohort.broker.security.permission import READ_TOPIC
from kohort.broker.topics import InvalidTopic
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import TopicPartition, is_topic_name
from kohort.records.batch import NO_SEQUENCE

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.log.producer_entry import ProducerEntry

_NO_TRANSACTION = -1


@api(61, 0, 0, permissions=(READ_TOPIC,))
def describe_producers(broker: "Broker", call: "Call") -> None:
    wanted = call.request.topics
    refused = call.refused(READ_TOPIC, (topic.name for topic in wanted if is_topic_name(topic.name)))
    topics = [
        {
            "name": topic.name,
            "partitions": [
                _told(broker, TopicPartition(topic.name, index), is_refused=topic.name in refused)
                for index in topic.partition_indexes
            ],
        }
        for topic in wanted
    ]
    call.answer({"topics": topics})


def _told(broker: "Broker", partition: TopicPartition, *, is_refused: bool) -> dict[str, Any]:
    told = {"partition_index": partition.partition, "error_code": ErrorCode.NONE, "active_producers": []}
    if is_refused:
        return told | {"error_code": READ_TOPIC.refusal}
    try:
        if not is_topic_name(partition.topic):
            raise InvalidTopic(f"{partition.topic!r} is no name for a topic")
        log = led_log(broker.topics, partition)
    except (ClientError, StorageFailed) as error:
        return told | refusal_of(error)
    return told | {"active_producers": [_producer(entry) for entry in log.producer_state.entries.values()]}


def _producer(entry: "ProducerEntry") -> dict[str, int]:
    start = entry.current_txn_first_offset
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "last_sequence": entry.batches[-1].last_sequence if entry.batches else NO_SEQUENCE,
        "last_timestamp": entry.last_timestamp,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_start_offset": _NO_TRANSACTION if start is None else start,
    }
