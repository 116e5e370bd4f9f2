"""CreatePartitions (37): topics grow.

0, 1 as before · 2 flexible · 3 may be throttled (KIP-599), which is not done
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.create_topics import MOST_NEW_PARTITIONS, check_replicas
from kohort.broker.api.refusal import Refused, not_allowed, refusal_of
from kohort.broker.security.permission import ALTER_TOPIC
from kohort.errors import ClientError, ErrorCode, StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.topics import Topic


@api(37, 0, 3, permissions=(ALTER_TOPIC,))
def create_partitions(broker: "Broker", call: "Call") -> None:
    broker.maker.serve(call, _create_all(broker, call, call.request))


async def _create_all(broker: "Broker", call: "Call", request: Any) -> None:
    named = Counter(topic.name for topic in request.topics)
    refused = call.refused(ALTER_TOPIC, named)
    left = MOST_NEW_PARTITIONS
    answers = {}
    for wanted in request.topics:
        told: dict[str, Any] = {"name": wanted.name, "error_code": ErrorCode.NONE, "error_message": None}
        try:
            if named[wanted.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"topic '{wanted.name}' stands in the request more than once")
            if wanted.name in refused:
                raise not_allowed(ALTER_TOPIC)
            await broker.maker.wait_for(wanted.name)
            topic = _checked(broker, wanted)
            more = wanted.count - topic.partition_count
            if more > left:
                raise Refused(ErrorCode.POLICY_VIOLATION, f"more than {MOST_NEW_PARTITIONS} new partitions at once")
            left -= more
            if not request.validate_only:
                await broker.maker.grow(topic, wanted.count)
        except (ClientError, StorageFailed) as error:
            told |= refusal_of(error)
        answers[wanted.name] = told
    call.answer({"results": list(answers.values())})


def _checked(broker: "Broker", wanted: Any) -> "Topic":
    """The topic, if it can grow as wanted."""
    topic = broker.topics.get(wanted.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{wanted.name}'")
    more = wanted.count - topic.partition_count
    if more <= 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS, f"topic '{topic.name}' has {topic.partition_count} partitions already"
        )
    if topic.is_internal:  # their number says which group or transaction lives where
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"'{topic.name}' cannot grow: what is in it would not be found")
    if wanted.assignments is not None:
        if len(wanted.assignments) != more:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{len(wanted.assignments)} assignments for {more} new partitions"
            )
        for number, given in enumerate(wanted.assignments, topic.partition_count):
            check_replicas(broker, number, given.broker_ids)
    return topic
