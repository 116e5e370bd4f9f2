"""TxnOffsetCommit (28): offsets that count when the transaction commits (KIP-98).

1 throttle time · 2 leader epochs (KIP-320) · 3 flexible, member and generation (KIP-447) · 4 an error that is not
given here (KIP-890)
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.api.offset_commit import committed_values
from kohort.broker.api.partitions import answer_by_topic, topic_partitions
from kohort.broker.security.permission import READ_GROUP, READ_TOPIC, WRITE_TRANSACTIONAL_ID
from kohort.errors import ErrorCode
from kohort.group.requests import NO_GENERATION, UNKNOWN_MEMBER_ID, TxnOffsetCommitRequest
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_OLD_ERRORS_BELOW = 2


@api(28, 0, 4, permissions=(WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC))
def txn_offset_commit(broker: "Broker", call: "Call") -> None:
    request = call.request
    for permission, name in ((WRITE_TRANSACTIONAL_ID, request.transactional_id), (READ_GROUP, request.group_id)):
        if not call.may(permission, name):
            refused = dict.fromkeys((found for found, _ in topic_partitions(request.topics)), permission.refusal)
            call.answer({"topics": answer_by_topic(request.topics, refused)})
            return
    not_for_them = call.refused(READ_TOPIC, (topic.name for topic in request.topics))
    offsets, failed = committed_values(broker, request, not_for_them)

    def respond(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        told = {partition: _as_told(error, call.version) for partition, error in errors.items()}
        call.answer({"topics": answer_by_topic(request.topics, failed | told)})

    if not offsets:
        respond({})
        return
    broker.groups.handle_txn_commit_offsets(
        TxnOffsetCommitRequest(
            request.group_id,
            request.producer_id,
            request.producer_epoch,
            offsets,
            getattr(request, "member_id", UNKNOWN_MEMBER_ID),
            getattr(request, "generation_id", NO_GENERATION),
            getattr(request, "group_instance_id", None),
        ),
        respond,
    )


def _as_told(error: ErrorCode, version: int) -> ErrorCode:
    """Older clients take COORDINATOR_LOAD_IN_PROGRESS as fatal and try again after COORDINATOR_NOT_AVAILABLE."""
    if version < _OLD_ERRORS_BELOW and error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error
