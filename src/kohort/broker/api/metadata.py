"""Metadata (3): brokers, topics, and who leads which partition.

0 an empty list asks for all topics · 1 the controller, internal topics, null asks for all · 2 the cluster's id ·
3 throttle time · 4 whether topics may be made · 5 offline replicas · 7 leader epochs (KIP-320) · 8 what the client may
do (KIP-430) · 9 flexible · 10 topic ids in the answer (KIP-516) · 11 no operations on the cluster · 12 topics by their
ids · 13 an error for the whole (KIP-1102)
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from kohort.broker.api import api
from kohort.broker.api.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from kohort.broker.leading import leader_epoch
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


@api(3, 0, 13)
def metadata(broker: "Broker", call: "Call") -> None:
    request = call.request
    if request.topics is None or (not request.topics and call.version < _EMPTY_IS_ALL_BELOW):
        topics = [_told(broker, topic) for topic in broker.topics]
    else:
        wanted = dict.fromkeys((topic.name, getattr(topic, "topic_id", _NO_ID)) for topic in request.topics)
        if call.version < _IDS_FROM and any(name is None or topic_id != _NO_ID for name, topic_id in wanted):
            topics = [_unknown(name or "", ErrorCode.INVALID_REQUEST) for name, _ in wanted]
        else:
            may_create = getattr(request, "allow_auto_topic_creation", True)
            topics = [_wanted(broker, name, topic_id, may_create=may_create) for name, topic_id in wanted]
    if getattr(request, "include_topic_authorized_operations", False):
        for topic in topics:
            topic["topic_authorized_operations"] = TOPIC_OPERATIONS
    is_asked = getattr(request, "include_cluster_authorized_operations", False)
    node = {"node_id": broker.config.broker_id, "host": broker.host, "port": broker.port, "rack": None}
    call.answer(
        {
            "brokers": [node],
            "cluster_id": broker.config.cluster_id,
            "controller_id": broker.config.broker_id,
            "topics": topics,
            "cluster_authorized_operations": CLUSTER_OPERATIONS if is_asked else NOT_ASKED,
            "error_code": ErrorCode.NONE,
        }
    )


def _wanted(broker: "Broker", name: str | None, topic_id: UUID, *, may_create: bool) -> dict[str, Any]:
    if name is None or topic_id != _NO_ID:
        topic = broker.topics.by_id(topic_id)
        return _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, topic_id) if topic is None else _told(broker, topic)
    topic = broker.topics.get(name)
    if topic is not None:
        return _told(broker, topic)
    if not is_topic_name(name):
        return _unknown(name, ErrorCode.INVALID_TOPIC)
    if not may_create or not broker.config.auto_create_topics_enable:
        return _unknown(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        return _told(broker, broker.auto_create(name))
    except (ClientError, StorageFailed) as error:
        return _unknown(name, error.code)


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
    me = broker.config.broker_id
    partitions = []
    for index in range(topic.partition_count):
        log = broker.topics.log(topic.name, index)
        is_here = log is not None
        partitions.append(
            {
                "error_code": ErrorCode.NONE if is_here else ErrorCode.LEADER_NOT_AVAILABLE,
                "partition_index": index,
                "leader_id": me if is_here else -1,
                "leader_epoch": 0 if log is None else leader_epoch(log),
                "replica_nodes": [me],
                "isr_nodes": [me] if is_here else [],
                "offline_replicas": [] if is_here else [me],
            }
        )
    return {
        "error_code": ErrorCode.NONE,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": partitions,
        "topic_authorized_operations": NOT_ASKED,
    }
