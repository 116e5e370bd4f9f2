"""DescribeTopicPartitions (75): what Metadata tells, page by page (KIP-966).

Topics come in the order of their names. The answer has so many partitions at most; where it ends before the last one,
it tells where the next page begins.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kohort.broker.api import api
from kohort.broker.api.metadata import partition_told
from kohort.broker.api.operations import NOT_ASKED, topic_operations
from kohort.broker.security.permission import ALL_OF_TOPICS, DESCRIBE_TOPIC
from kohort.broker.topics import INTERNAL_TOPICS
from kohort.errors import ErrorCode
from kohort.log.names import is_topic_name

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_MOST_PARTITIONS = 2_000
"""Kafka's `max.request.partition.size.limit`."""


@api(75, 0, 0, permissions=(DESCRIBE_TOPIC,), tells=ALL_OF_TOPICS)
def describe_topic_partitions(broker: "Broker", call: "Call") -> None:
    request = call.request
    cursor = request.cursor
    named = {topic.name for topic in request.topics}
    start = "" if cursor is None else cursor.topic_name
    names = sorted(name for name in named or {topic.name for topic in broker.topics} if name >= start)
    if cursor is not None and (cursor.partition_index < 0 or (named and start not in names)):
        told = [_failed(topic.name, ErrorCode.INVALID_REQUEST) for topic in request.topics]
        call.answer({"topics": told, "next_cursor": None})
        return
    first = 0 if cursor is None else cursor.partition_index
    room = max(1, min(request.response_partition_limit, _MOST_PARTITIONS))
    if named:
        hidden = call.refused(DESCRIBE_TOPIC, names)
    else:
        hidden = {name for name in names if not call.might(DESCRIBE_TOPIC, name)}
    seen = [name for name in names if name not in hidden]
    topics, next_cursor = _page(broker, call, seen, {start: first}, room)
    if named:
        is_here = [name for name in names if next_cursor is None or name < next_cursor["topic_name"]]
        topics += [_failed(name, DESCRIBE_TOPIC.refusal) for name in is_here if name in hidden]
    call.answer({"topics": topics, "next_cursor": next_cursor})


def _page(
    broker: "Broker", call: "Call", names: Sequence[str], begins: dict[str, int], room: int
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """What fits, and where the rest begins."""
    topics: list[dict[str, Any]] = []
    for name in names:
        if not room:
            return topics, {"topic_name": name, "partition_index": 0}
        topic = broker.topics.get(name)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC
            topics.append(_failed(name, error) | {"topic_authorized_operations": topic_operations(call, name)})
            continue
        first = begins.get(name, 0)
        end = min(topic.partition_count, first + room)
        topics.append(
            {
                "error_code": ErrorCode.NONE,
                "name": name,
                "topic_id": topic.topic_id,
                "is_internal": topic.is_internal,
                "partitions": [
                    partition_told(broker, topic, index) | {"eligible_leader_replicas": [], "last_known_elr": []}
                    for index in range(first, end)
                ],
                "topic_authorized_operations": topic_operations(call, name),
            }
        )
        if end < topic.partition_count:
            return topics, {"topic_name": name, "partition_index": end}
        room -= max(0, end - first)
    return topics, None


def _failed(name: str, error: ErrorCode) -> dict[str, Any]:
    return {
        "error_code": error,
        "name": name,
        "topic_id": UUID(int=0),
        "is_internal": name in INTERNAL_TOPICS and error is not DESCRIBE_TOPIC.refusal,
        "partitions": [],
        "topic_authorized_operations": NOT_ASKED,
    }
