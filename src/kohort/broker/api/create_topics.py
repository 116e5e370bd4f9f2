"""CreateTopics (19): new topics.

2, 3 as before · 4 -1 asks for the broker's number of partitions or replicas (KIP-464) · 5 flexible, the answer tells
partitions, replicas and settings (KIP-525) · 6 may be throttled (KIP-599), which is not done · 7 topic ids (KIP-516)
"""

from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kohort.broker.api import api
from kohort.broker.api.config_entries import topic_entries
from kohort.broker.api.refusal import Refused, not_allowed, refusal_of
from kohort.broker.security.permission import CREATE_ON_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS
from kohort.broker.topics import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kohort.errors import ClientError, ErrorCode, StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_DEFAULT = -1
_NO_ID = UUID(int=0)
_UNTOLD: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1, "configs": []}
MOST_NEW_PARTITIONS = 10_000
"""In one request; Kafka's controller does not take more either."""


@api(19, 2, 7, permissions=(CREATE_ON_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS))
def create_topics(broker: "Broker", call: "Call") -> None:
    broker.maker.serve(call, _create_all(broker, call, call.request))


async def _create_all(broker: "Broker", call: "Call", request: Any) -> None:
    named = Counter(topic.name for topic in request.topics)
    refused = () if call.might(CREATE_ON_CLUSTER) else call.refused(CREATE_TOPIC, named)
    left = MOST_NEW_PARTITIONS
    answers = {}
    for topic in request.topics:
        try:
            if named[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, f"topic '{topic.name}' stands in the request more than once")
            if topic.name in refused:
                raise not_allowed(CREATE_TOPIC)
            count, settings = _checked(broker, topic)
            if count > left:
                raise Refused(ErrorCode.POLICY_VIOLATION, f"more than {MOST_NEW_PARTITIONS} new partitions at once")
            left -= count
            topic_id = _NO_ID
            if not request.validate_only:
                topic_id = (await broker.maker.create(topic.name, count, settings)).topic_id
        except (ClientError, StorageFailed) as error:
            answers[topic.name] = _refused(topic.name, error)
        else:
            answers[topic.name] = {
                "name": topic.name,
                "topic_id": topic_id,
                "error_code": ErrorCode.NONE,
                "error_message": None,
                "num_partitions": count,
                "replication_factor": 1,
                "configs": topic_entries(broker, topic.name, settings),
            }
            if not call.might(DESCRIBE_TOPIC_CONFIGS, topic.name):
                answers[topic.name] |= _UNTOLD | {"topic_config_error_code": DESCRIBE_TOPIC_CONFIGS.refusal}
    call.answer({"topics": list(answers.values())})


def _refused(name: str, error: ClientError | StorageFailed) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": _NO_ID,
        **refusal_of(error),
        **_UNTOLD,
    }


def _checked(broker: "Broker", topic: Any) -> tuple[int, dict[str, str]]:
    """Partitions and settings of a topic that can be made; what stands in its way is found in Kafka's order."""
    if broker.topics.get(topic.name) is not None:
        broker.topics.check_new(topic.name)
    nulls = [entry.name for entry in topic.configs if entry.value is None]
    if nulls:
        raise Refused(ErrorCode.INVALID_REQUEST, f"settings without a value: {', '.join(nulls)}")
    settings = {entry.name: entry.value for entry in topic.configs}
    broker.topics.check_config(topic.name, settings)
    count = _assigned(broker, topic) if topic.assignments else _counted(broker, topic)
    broker.topics.check_new(topic.name)
    needed = _coordinator_partitions(broker).get(topic.name, count)
    if count != needed:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"{topic.name} must have {needed} partitions, not {count}")
    return count, settings


def _coordinator_partitions(broker: "Broker") -> dict[str, int]:
    """What the coordinators count on: the number says which group or transaction lives where."""
    transactions = broker.transactions.manager.config.transaction_state_log_num_partitions
    return {OFFSETS_TOPIC: broker.offsets_partitions, TRANSACTION_TOPIC: transactions}


def _counted(broker: "Broker", topic: Any) -> int:
    count = broker.config.num_partitions if topic.num_partitions == _DEFAULT else topic.num_partitions
    if count <= 0:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"{count} partitions: there must be one at least")
    replicas = 1 if topic.replication_factor == _DEFAULT else topic.replication_factor
    if replicas <= 0:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, f"{replicas} replicas: there must be one at least")
    if replicas > 1:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, f"{replicas} replicas, but there is 1 broker")
    return int(count)


def _assigned(broker: "Broker", topic: Any) -> int:
    """Partitions that were laid out by hand: there is one broker to lay them out on."""
    if topic.num_partitions != _DEFAULT or topic.replication_factor != _DEFAULT:
        raise Refused(ErrorCode.INVALID_REQUEST, "either numbers of partitions and replicas or assignments, not both")
    for given in topic.assignments:
        check_replicas(broker, given.partition_index, given.broker_ids)
    if sorted(given.partition_index for given in topic.assignments) != list(range(len(topic.assignments))):
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 on, each once")
    return len(topic.assignments)


def check_replicas(broker: "Broker", partition: int, replicas: list[int]) -> None:
    """A partition's replicas can be this broker and no other."""
    me = broker.config.broker_id
    strangers = sorted(set(replicas) - {me})
    if strangers:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {partition}: there is no broker {strangers[0]}")
    if replicas != [me]:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {partition}: {len(replicas)} replicas on one broker"
        )
