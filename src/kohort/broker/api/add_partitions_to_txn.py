"""AddPartitionsToTxn (24): partitions that a transaction is about to write to (KIP-98).

1 throttle time · 2 PRODUCER_FENCED (KIP-588) · 3 flexible. Version 4 is for brokers among themselves.
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.transactions import fenced_as_told
from kohort.broker.security.permission import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from kohort.broker.topics import INTERNAL_TOPICS
from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.requests import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_FENCED_FROM = 2


@api(24, 0, 3, permissions=(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC))
def add_partitions_to_txn(broker: "Broker", call: "Call") -> None:
    request = call.request
    topics = request.v3_and_below_topics
    wanted = [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]
    failed: dict[TopicPartition, ErrorCode] = {}

    def respond(error: ErrorCode) -> None:
        """As in Kafka a topic or a partition that is named twice is answered once."""
        told = fenced_as_told(error, is_known=call.version >= _FENCED_FROM)
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for partition in dict.fromkeys(wanted):
            result = {"partition_index": partition.partition, "partition_error_code": failed.get(partition, told)}
            by_topic.setdefault(partition.topic, []).append(result)
        results = [{"name": name, "results_by_partition": partitions} for name, partitions in by_topic.items()]
        call.answer({"results_by_topic_v3_and_below": results})

    if not call.may(WRITE_TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        respond(WRITE_TRANSACTIONAL_ID.refusal)
        return
    refused = call.refused(WRITE_TOPIC, {topic.name for topic in topics} - INTERNAL_TOPICS)
    for partition in wanted:
        if partition.topic in INTERNAL_TOPICS or partition.topic in refused:
            failed[partition] = WRITE_TOPIC.refusal
        elif broker.topics.log(*partition) is None:
            failed[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if failed:
        respond(ErrorCode.OPERATION_NOT_ATTEMPTED)  # all or nothing
        return
    broker.transactions.handle_add_partitions_to_txn(
        AddPartitionsToTxnRequest(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            tuple(wanted),
        ),
        respond,
    )
