"""OffsetDelete (47): forget offsets of topics that a group does not read any more (KIP-496).

0 the only version
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.api.partitions import answer_by_topic, topic_partitions
from kohort.broker.security.permission import DELETE_GROUP, READ_TOPIC
from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(47, 0, 0, permissions=(DELETE_GROUP, READ_TOPIC))
def offset_delete(broker: "Broker", call: "Call") -> None:
    request = call.request
    if not call.may(DELETE_GROUP, request.group_id):
        call.answer({"error_code": DELETE_GROUP.refusal, "topics": ()})
        return
    wanted = [partition for partition, _ in topic_partitions(request.topics)]
    refused = call.refused(READ_TOPIC, (topic.name for topic in request.topics))
    failed = {
        partition: READ_TOPIC.refusal if partition.topic in refused else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for partition in wanted
        if partition.topic in refused or broker.topics.log(*partition) is None
    }

    def respond(error: ErrorCode, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        topics = [] if error is not ErrorCode.NONE else answer_by_topic(request.topics, failed | dict(errors))
        call.answer({"error_code": error, "topics": topics})

    known = [partition for partition in wanted if partition not in failed]
    broker.groups.handle_delete_offsets(request.group_id, known, respond)
