"""OffsetFetch (9): what a group has committed.

1 offsets of this broker · 2 all partitions, a top-level error · 3 throttle time · 5 leader epochs (KIP-320) ·
6 flexible · 7 only what is stable (KIP-447) · 8 several groups in one request (KIP-709) · 9 member and epoch, which are
for groups of newer kinds · 10 topics by their ids (KIP-848)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.security.permission import DESCRIBE_GROUP, DESCRIBE_TOPIC
from kohort.errors import ErrorCode
from kohort.group.requests import INVALID_OFFSET, PartitionData
from kohort.log.names import TopicPartition

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_GROUPS_FROM = 8
_IDS_FROM = 10
_TOP_LEVEL_ERROR_FROM = 2


@api(9, 1, 10, permissions=(DESCRIBE_GROUP, DESCRIBE_TOPIC))
def offset_fetch(broker: "Broker", call: "Call") -> None:
    request = call.request
    is_stable = getattr(request, "require_stable", False)
    if call.version >= _GROUPS_FROM:
        groups = [
            {"group_id": group.group_id, **_fetched(broker, call, group.group_id, group.topics, is_stable=is_stable)}
            for group in request.groups
        ]
        call.answer({"groups": groups})
        return
    fetched = _fetched(broker, call, request.group_id, request.topics, is_stable=is_stable)
    # Version 1 has no place for an error but at each partition.
    if call.version < _TOP_LEVEL_ERROR_FROM and fetched["error_code"] is not ErrorCode.NONE:
        fetched["topics"] = [_failed(call, topic, fetched["error_code"]) for topic in request.topics]
    call.answer(fetched)


def _fetched(broker: "Broker", call: "Call", group_id: Any, topics: Any, *, is_stable: bool) -> dict[str, Any]:
    if not call.may(DESCRIBE_GROUP, group_id):
        return {"topics": [], "error_code": DESCRIBE_GROUP.refusal}
    if topics is None:
        error, by_name = _offsets(broker, group_id, None, is_stable=is_stable)
        seen = {name: partitions for name, partitions in by_name.items() if call.might(DESCRIBE_TOPIC, name)}
        return {"topics": _named(broker, call, seen), "error_code": error}
    named = [_name_of(broker, call, topic) for topic in topics]
    refused = call.refused(DESCRIBE_TOPIC, named)
    wanted, failed = [], []
    for name, topic in zip(named, topics, strict=True):
        if name is None or name in refused:
            error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else DESCRIBE_TOPIC.refusal
            failed.append(_failed(call, topic, error))
        else:
            wanted += [TopicPartition(name, index) for index in topic.partition_indexes]
    error, by_name = _offsets(broker, group_id, wanted, is_stable=is_stable)
    found = _named(broker, call, by_name)
    return {"topics": found + failed if error is ErrorCode.NONE else found, "error_code": error}


def _name_of(broker: "Broker", call: "Call", topic: Any) -> str | None:
    name: str | None = topic.name if call.version < _IDS_FROM else broker.topics.name_of(topic.topic_id)
    return name


def _named(broker: "Broker", call: "Call", by_name: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A topic that is not there any more has no id to be told by, whatever was committed for it."""
    if call.version < _IDS_FROM:
        return [{"name": name, "partitions": partitions} for name, partitions in by_name.items()]
    return [
        {"topic_id": found.topic_id, "partitions": partitions}
        for name, partitions in by_name.items()
        if (found := broker.topics.get(name)) is not None
    ]


def _failed(call: "Call", topic: Any, error: ErrorCode) -> dict[str, Any]:
    """The same for all partitions of a topic, which is told as it was asked for."""
    failed = PartitionData(INVALID_OFFSET, error=error)
    called = {"name": topic.name} if call.version < _IDS_FROM else {"topic_id": topic.topic_id}
    return {**called, "partitions": [_told(index, failed) for index in topic.partition_indexes]}


def _offsets(
    broker: "Broker", group_id: Any, wanted: list[TopicPartition] | None, *, is_stable: bool
) -> tuple[ErrorCode, dict[str, list[dict[str, Any]]]]:
    """What is told of each partition, by the names of topics; None wants all that there is."""
    error, found = broker.groups.handle_fetch_offsets(group_id, wanted, require_stable=is_stable)
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
