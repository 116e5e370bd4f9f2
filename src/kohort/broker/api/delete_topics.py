"""DeleteTopics (20): topics go, with their records and what groups have committed for them.

1 throttle time · 3 an error of its own where deletion is switched off · 4 flexible · 5 a message (KIP-599) · 6 topics
by their ids (KIP-516)
"""

from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kohort.broker.api import api
from kohort.broker.api.refusal import Refused, not_allowed, refusal_of
from kohort.broker.security.permission import DELETE_TOPIC, DESCRIBE_TOPIC
from kohort.errors import ClientError, ErrorCode, StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.topics import Topic

_DISABLED_FROM = 3
_IDS_FROM = 6
_NO_ID = UUID(int=0)


@api(20, 1, 6, permissions=(DELETE_TOPIC, DESCRIBE_TOPIC))
def delete_topics(broker: "Broker", call: "Call") -> None:
    if call.version < _IDS_FROM:
        wanted: list[tuple[str | None, UUID]] = [(name, _NO_ID) for name in call.request.topic_names]
    else:
        wanted = [(topic.name, topic.topic_id) for topic in call.request.topics]
    named, answers = Counter(wanted), []
    for name, topic_id in dict.fromkeys(wanted):
        told: dict[str, Any] = {"name": name, "topic_id": topic_id, "error_code": ErrorCode.NONE, "error_message": None}
        try:
            if not broker.config.delete_topic_enable:
                raise Refused(
                    ErrorCode.INVALID_REQUEST if call.version < _DISABLED_FROM else ErrorCode.TOPIC_DELETION_DISABLED,
                    "topics are not deleted here: delete.topic.enable is false",
                )
            if named[name, topic_id] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "a topic stands in the request more than once")
            topic = _wanted(broker, call, told)
            broker.delete_topic(topic)
            told["name"], told["topic_id"] = topic.name, topic.topic_id
        except (ClientError, StorageFailed) as error:
            told |= refusal_of(error)
        answers.append(told)
    call.answer({"responses": answers})


def _wanted(broker: "Broker", call: "Call", told: dict[str, Any]) -> "Topic":
    """The topic, if who asks may delete it. Whose id it is is told to whoever may describe it."""
    name, topic_id = told["name"], told["topic_id"]
    if name is not None:
        if topic_id != _NO_ID:
            raise Refused(ErrorCode.INVALID_REQUEST, "either a name or an id, not both")
        if not call.may(DELETE_TOPIC, name):
            raise not_allowed(DELETE_TOPIC)
        topic = broker.topics.get(name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
        return topic
    if topic_id == _NO_ID:
        raise Refused(ErrorCode.INVALID_REQUEST, "neither a name nor an id")
    topic = broker.topics.by_id(topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    if not call.may(DESCRIBE_TOPIC, topic.name):
        raise not_allowed(DESCRIBE_TOPIC)
    told["name"] = topic.name
    if not call.may(DELETE_TOPIC, topic.name):
        raise not_allowed(DELETE_TOPIC)
    return topic
