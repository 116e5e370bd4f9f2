"""AddPartitionsToTxn (24): partitions that a transaction is about to write to (KIP-98).

1 throttle time · 2 PRODUCER_FENCED (KIP-588) · 3 flexible. Version 4 is for brokers among themselves.
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.transactions import fenced_as_told
from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.requests import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_FENCED_FROM = 2


@api(24, 0, 3)
def add_partitions_to_txn(broker: "Broker", call: "Call") -> None:
    request = call.request
    topics = request.v3_and_below_topics
    wanted = [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]
    unknown = {partition for partition in wanted if broker.topics.log(*partition) is None}

    def respond(error: ErrorCode) -> None:
        """As in Kafka a topic or a partition that is named twice is answered once."""
        told = fenced_as_told(error, is_known=call.version >= _FENCED_FROM)
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for partition in dict.fromkeys(wanted):
            of_it = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition in unknown else told
            result = {"partition_index": partition.partition, "partition_error_code": of_it}
            by_topic.setdefault(partition.topic, []).append(result)
        results = [{"name": name, "results_by_partition": partitions} for name, partitions in by_topic.items()]
        call.answer({"results_by_topic_v3_and_below": results})

    if unknown:
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
