"""OffsetFetch (9): what a group has committed.

1 offsets of this broker · 2 all partitions, a top-level error · 3 throttle time · 5 leader epochs (KIP-320) ·
6 flexible · 7 only what is stable (KIP-447) · 8 several groups in one request (KIP-709) · 9 member and epoch, which are
for groups of newer kinds · 10 topics by their ids (KIP-848)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.errors import ErrorCode
from kohort.group.requests import INVALID_OFFSET, PartitionData
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_GROUPS_FROM = 8
_IDS_FROM = 10
_TOP_LEVEL_ERROR_FROM = 2


@api(9, 1, 10)
def offset_fetch(broker: "Broker", call: "Call") -> None:
    request = call.request
    is_stable = getattr(request, "require_stable", False)
    if call.version >= _GROUPS_FROM:
        fetched_of = _fetched if call.version < _IDS_FROM else _fetched_by_id
        groups = [
            {"group_id": group.group_id, **fetched_of(broker, group.group_id, group.topics, require_stable=is_stable)}
            for group in request.groups
        ]
        call.answer({"groups": groups})
        return
    fetched = _fetched(broker, request.group_id, request.topics, require_stable=is_stable)
    if call.version < _TOP_LEVEL_ERROR_FROM and fetched["error_code"] is not ErrorCode.NONE:
        fetched["topics"] = _all_failed(request.topics, fetched["error_code"])
    call.answer(fetched)


def _fetched(broker: "Broker", group_id: Any, topics: Any, *, require_stable: bool) -> dict[str, Any]:
    wanted = None
    if topics is not None:
        wanted = [TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes]
    error, by_name = _offsets(broker, group_id, wanted, require_stable=require_stable)
    return {
        "topics": [{"name": name, "partitions": partitions} for name, partitions in by_name.items()],
        "error_code": error,
    }


def _fetched_by_id(broker: "Broker", group_id: Any, topics: Any, *, require_stable: bool) -> dict[str, Any]:
    """A topic that is not there any more has no id to be told by, whatever was committed for it."""
    wanted, unknown = None, []
    if topics is not None:
        wanted = []
        for topic in topics:
            name = broker.topics.name_of(topic.topic_id)
            if name is None:
                failed = PartitionData(INVALID_OFFSET, error=ErrorCode.UNKNOWN_TOPIC_ID)
                partitions = [_told(index, failed) for index in topic.partition_indexes]
                unknown.append({"topic_id": topic.topic_id, "partitions": partitions})
            else:
                wanted += [TopicPartition(name, index) for index in topic.partition_indexes]
    error, by_name = _offsets(broker, group_id, wanted, require_stable=require_stable)
    known = [
        {"topic_id": found.topic_id, "partitions": partitions}
        for name, partitions in by_name.items()
        if (found := broker.topics.get(name)) is not None
    ]
    return {"topics": known + unknown if error is ErrorCode.NONE else known, "error_code": error}


def _offsets(
    broker: "Broker", group_id: Any, wanted: list[TopicPartition] | None, *, require_stable: bool
) -> tuple[ErrorCode, dict[str, list[dict[str, Any]]]]:
    """What is told of each partition, by the names of topics; None wants all that there is."""
    error, found = broker.groups.handle_fetch_offsets(group_id, wanted, require_stable=require_stable)
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for partition, data in found.items():
        by_topic.setdefault(partition.topic, []).append(_told(partition.partition, data))
    return error, by_topic


def _told(index: int, data: PartitionData) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": data.offset,
        "committed_leader_epoch": data.leader_epoch,
        "metadata": data.metadata,
        "error_code": data.error,
    }


def _all_failed(topics: Any, error: ErrorCode) -> list[dict[str, Any]]:
    """Version 1 has no place for an error but at each partition."""
    failed = PartitionData(INVALID_OFFSET, error=error)
    return [
        {"name": topic.name, "partitions": [_told(index, failed) for index in topic.partition_indexes]}
        for topic in topics or ()
    ]
