"""What settings belong to, as the requests about settings name it: a topic, or this broker."""

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kohort.broker.api.refusal import Refused, refusal_of
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import is_topic_name

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.topics import Topic


class ResourceType(IntEnum):
    """Kafka's numbers."""

    TOPIC = 2
    BROKER = 4


def change_settings(
    broker: "Broker", call: "Call", settings_after: Callable[[Mapping[str, str], list[Any]], dict[str, str]]
) -> None:
    """Answer a request that changes settings; `settings_after` says what those of a topic become."""
    resources = call.request.resources
    named = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    answers = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        told: dict[str, Any] = {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
        }
        try:
            if named[key] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "a resource stands in the request more than once")
            _check_names(resource.configs)
            if resource.resource_type == ResourceType.BROKER:
                _refuse_broker(broker, resource)
            else:
                topic = existing_topic(broker, resource)
                settings = settings_after(topic.settings, resource.configs)
                broker.topics.check_config(topic.name, settings)
                if not call.request.validate_only:
                    broker.topics.change_settings(topic, settings)
        except (ClientError, StorageFailed) as error:
            told |= refusal_of(error)
        answers[key] = told
    call.answer({"responses": list(answers.values())})


def existing_topic(broker: "Broker", resource: Any) -> "Topic":
    """The topic that a resource names."""
    if resource.resource_type != ResourceType.TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} have no settings here")
    name = resource.resource_name
    if not is_topic_name(name):
        raise Refused(ErrorCode.INVALID_TOPIC, f"{name!r} is no name for a topic")
    topic = broker.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    return topic


def check_broker(broker: "Broker", name: str) -> None:
    """Only this broker can be asked for, by its id."""
    if name != str(broker.config.broker_id):
        raise Refused(ErrorCode.INVALID_REQUEST, f"this is broker {broker.config.broker_id}, not {name!r}")


def _check_names(configs: list[Any]) -> None:
    twice = [name for name, count in Counter(entry.name for entry in configs).items() if count > 1]
    if twice:
        raise Refused(ErrorCode.INVALID_REQUEST, f"settings that are named twice: {', '.join(twice)}")


def _refuse_broker(broker: "Broker", resource: Any) -> None:
    """An empty name means all brokers. Settings are given when a broker starts."""
    if resource.resource_name:
        check_broker(broker, resource.resource_name)
    if resource.configs:
        names = ", ".join(entry.name for entry in resource.configs)
        raise Refused(ErrorCode.INVALID_REQUEST, f"cannot be changed while the broker runs: {names}")
