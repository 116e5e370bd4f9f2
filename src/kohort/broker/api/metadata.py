"""Metadata (3): brokers, topics, and who leads which partition.

0 an empty list asks for all topics · 1 the controller, internal topics, null asks for all · 2 the cluster's id ·
3 throttle time · 4 whether topics may be made · 5 offline replicas · 7 leader epochs (KIP-320) · 8 what the client may
do (KIP-430) · 9 flexible · 10 topic ids in the answer (KIP-516) · 11 no operations on the cluster · 12 topics by their
ids · 13 an error for the whole (KIP-1102)
"""

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kohort.broker.api import api
from kohort.broker.api.operations import NOT_ASKED, cluster_operations, topic_operations
from kohort.broker.leading import leader_epoch
from kohort.broker.security.permission import (
    ALL_OF_CLUSTER,
    ALL_OF_TOPICS,
    CREATE_ON_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_TOPIC,
)
from kohort.broker.topics import INTERNAL_TOPICS
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import is_topic_name

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.topics import Topic

_NO_ID = UUID(int=0)
_EMPTY_IS_ALL_BELOW = 1
_IDS_FROM = 12


@api(
    3,
    0,
    13,
    permissions=(DESCRIBE_TOPIC, CREATE_TOPIC, CREATE_ON_CLUSTER),
    tells=(*ALL_OF_TOPICS, *ALL_OF_CLUSTER),
)
def metadata(broker: "Broker", call: "Call") -> None:
    hidden = _hidden(broker, call)
    missing = [name for name in _to_be_made(broker, call) if name not in hidden]
    failed: dict[str, ErrorCode] = {}
    if missing and not call.might(CREATE_ON_CLUSTER):
        not_for_them = call.refused(CREATE_TOPIC, missing)
        failed = {name: CREATE_TOPIC.refusal for name in missing if name in not_for_them}
    if missing := [name for name in missing if name not in failed and is_topic_name(name)]:
        broker.maker.serve(call, _make_and_answer(broker, call, missing, hidden, failed))
    else:
        _answer(broker, call, hidden, failed)


def _asks_for_all(call: "Call") -> bool:
    topics = call.request.topics
    return topics is None or (not topics and call.version < _EMPTY_IS_ALL_BELOW)


def _hidden(broker: "Broker", call: "Call") -> Container[str | None]:
    """Topics that who asks may not know of, whether they are there or not."""
    if call.authorizer is None:
        return ()
    if _asks_for_all(call):
        return {topic.name for topic in broker.topics if not call.might(DESCRIBE_TOPIC, topic.name)}
    by_id = (broker.topics.name_of(_id_of(topic)) for topic in call.request.topics)
    return call.refused(DESCRIBE_TOPIC, {topic.name for topic in call.request.topics} | set(by_id))


def _to_be_made(broker: "Broker", call: "Call") -> list[str]:
    """Topics that are made because somebody asks for them, if that can be."""
    request = call.request
    may_create = getattr(request, "allow_auto_topic_creation", True) and broker.config.auto_create_topics_enable
    if not may_create or any(topic.name is None or _id_of(topic) != _NO_ID for topic in request.topics or ()):
        return []
    names = dict.fromkeys(topic.name for topic in request.topics or ())
    return [name for name in names if broker.topics.get(name) is None]


async def _make_and_answer(
    broker: "Broker", call: "Call", missing: list[str], hidden: Container[str | None], failed: dict[str, ErrorCode]
) -> None:
    for name in missing:
        try:
            await broker.maker.ensure(name)
        except (ClientError, StorageFailed) as error:
            failed[name] = error.code
    _answer(broker, call, hidden, failed)


def _answer(broker: "Broker", call: "Call", hidden: Container[str | None], failed: Mapping[str, ErrorCode]) -> None:
    request = call.request
    if _asks_for_all(call):
        topics = [_told(broker, topic) for topic in broker.topics if topic.name not in hidden]
    else:
        wanted = dict.fromkeys((topic.name, _id_of(topic)) for topic in request.topics)
        if call.version < _IDS_FROM and any(name is None or topic_id != _NO_ID for name, topic_id in wanted):
            topics = [_unknown(name or "", ErrorCode.INVALID_REQUEST) for name, _ in wanted]
        else:
            topics = [_wanted(broker, name, topic_id, hidden, failed) for name, topic_id in wanted]
    if getattr(request, "include_topic_authorized_operations", False):
        for topic in topics:
            if topic["name"] is not None and topic["error_code"] is not DESCRIBE_TOPIC.refusal:
                topic["topic_authorized_operations"] = topic_operations(call, topic["name"])
    is_asked = getattr(request, "include_cluster_authorized_operations", False)
    call.answer(
        {
            "brokers": [broker.node_for(call)],
            "cluster_id": broker.config.cluster_id,
            "controller_id": broker.config.broker_id,
            "topics": topics,
            "cluster_authorized_operations": cluster_operations(call) if is_asked else NOT_ASKED,
            "error_code": ErrorCode.NONE,
        }
    )


def _id_of(topic: Any) -> UUID:
    topic_id: UUID = getattr(topic, "topic_id", _NO_ID)
    return topic_id


def _wanted(
    broker: "Broker",
    name: str | None,
    topic_id: UUID,
    hidden: Container[str | None],
    failed: Mapping[str, ErrorCode],
) -> dict[str, Any]:
    if name is None or topic_id != _NO_ID:
        topic = broker.topics.by_id(topic_id)
        if topic is None:
            return _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id)
        # As in Kafka an id is no secret, but what it is the id of.
        return _unknown(None, DESCRIBE_TOPIC.refusal, topic_id) if topic.name in hidden else _told(broker, topic)
    if name in hidden:
        return _unknown(name, DESCRIBE_TOPIC.refusal) | {"is_internal": False}
    topic = broker.topics.get(name)
    if topic is not None:
        return _told(broker, topic)
    if name in failed:
        return _unknown(name, failed[name])
    return _unknown(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC)


def _unknown(name: str | None, error: ErrorCode, topic_id: UUID = _NO_ID) -> dict[str, Any]:
    return {
        "error_code": error,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS and error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "partitions": [],
        "topic_authorized_operations": NOT_ASKED,
    }


def _told(broker: "Broker", topic: "Topic") -> dict[str, Any]:
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": [partition_told(broker, topic, index) for index in range(topic.partition_count)],
        "topic_authorized_operations": NOT_ASKED,
    }


def partition_told(broker: "Broker", topic: "Topic", index: int) -> dict[str, Any]:
    """Who leads a partition and who has it: this broker, if it could be opened."""
    me = broker.config.broker_id
    log = broker.topics.log(topic.name, index)
    is_here = log is not None
    return {
        "error_code": ErrorCode.NONE if is_here else ErrorCode.LEADER_NOT_AVAILABLE,
        "partition_index": index,
        "leader_id": me if is_here else -1,
        "leader_epoch": 0 if log is None else leader_epoch(log),
        "replica_nodes": [me],
        "isr_nodes": [me] if is_here else [],
        "offline_replicas": [] if is_here else [me],
    }
